//! No program with set-id bits comes of a guest.
//!
//! Files that a guest's kernel makes on the host are the user's. One with its set-user-id bit lets everybody who can reach
//! it act as the user, and a guest's root decides what is in it. To take the bits away when the run ends would be too late,
//! and be missed after a crash; a mount that heeds no such bits (nosuid) says what happens in the jail, not what others see
//! of the same file. So the host's kernel refuses such a mode wherever one can be given, by a filter of system calls
//! (seccomp(2)), which the guest's kernel and all that it makes inherit, and which nobody can take off.
//!
//! A filter sees numbers, not memory, and knows the system calls of its day. So those that take a mode from memory (openat2,
//! io_uring) are refused as if the host had none of them, and so are those that are newer than this list, and those of
//! other calling conventions (i386, x32), which the kernel of a guest has no use for.
//!
//! A filter can also make the host hold back the CPU's speculation, which costs a guest more than the filter itself (the
//! default before Linux 5.16); SPEC_ALLOW says that it need not.

use core::ffi::{c_long, c_uint};

const ALLOW: c_uint = libc::SECCOMP_RET_ALLOW;
const NOT_PERMITTED: c_uint = libc::SECCOMP_RET_ERRNO | libc::EPERM as c_uint;
const NO_SUCH_CALL: c_uint = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as c_uint;

const X86_64: u32 = 0xc000_003e;
/// What Linux 6.12 has.
const NEWEST: u32 = libc::SYS_mseal as u32;

const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// The flags by which open(2) makes a file; O_TMPFILE contains O_DIRECTORY, which by itself makes none.
const MAKES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// The system calls that give a file its mode; which argument has which bits if they do; which argument is the mode. A
/// directory is no program: mkdir(2) is not among them.
const MODES: [(c_long, u32, u32, u32); 9] = [
    (libc::SYS_open, 1, MAKES, 2),
    (libc::SYS_openat, 2, MAKES, 3),
    (libc::SYS_creat, 1, SET_ID, 1),
    (libc::SYS_mknod, 1, SET_ID, 1),
    (libc::SYS_mknodat, 2, SET_ID, 2),
    (libc::SYS_chmod, 1, SET_ID, 1),
    (libc::SYS_fchmod, 1, SET_ID, 1),
    (libc::SYS_fchmodat, 2, SET_ID, 2),
    (libc::SYS_fchmodat2, 2, SET_ID, 2),
];

/// Where `struct seccomp_data` has the number of the call and the calling convention.
const NUMBER: u32 = 0;
const CONVENTION: u32 = 4;

/// The lower half of an argument, in which all that is asked for here is.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const fn step(code: u32, value: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_so, jf: if_not, k: value }
}

const fn load(offset: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

const fn skip(comparison: u32, value: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_K | comparison, value, if_so, if_not)
}

const fn answer(what: c_uint) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, what, 0, 0)
}

const BEGIN: [libc::sock_filter; 7] = [
    load(CONVENTION),
    skip(libc::BPF_JEQ, X86_64, 0, 4),
    load(NUMBER),
    skip(libc::BPF_JGT, NEWEST, 2, 0),
    skip(libc::BPF_JEQ, libc::SYS_openat2 as u32, 1, 0),
    skip(libc::BPF_JEQ, libc::SYS_io_uring_setup as u32, 0, 1),
    answer(NO_SUCH_CALL),
];

/// What is asked of one call; whoever asked for another goes on behind it.
const fn asked(call: c_long, bits_in: u32, bits: u32, mode_in: u32) -> [libc::sock_filter; 7] {
    [
        skip(libc::BPF_JEQ, call as u32, 0, 6),
        load(argument(bits_in)),
        skip(libc::BPF_JSET, bits, 0, 3),
        load(argument(mode_in)),
        skip(libc::BPF_JSET, SET_ID, 0, 1),
        answer(NOT_PERMITTED),
        answer(ALLOW),
    ]
}

const LENGTH: usize = BEGIN.len() + 7 * MODES.len() + 1;

/// Lets this process and all that come of it give no file such a mode from now on. A process that could still gain
/// rights, which is in no jail, is left as it is.
pub fn refuse() {
    let mut steps = [answer(ALLOW); LENGTH];
    steps[..BEGIN.len()].copy_from_slice(&BEGIN);
    for (place, (call, bits_in, bits, mode_in)) in steps[BEGIN.len()..].chunks_exact_mut(7).zip(MODES) {
        place.copy_from_slice(&asked(call, bits_in, bits, mode_in));
    }
    let filter = libc::sock_fprog { len: LENGTH as u16, filter: steps.as_mut_ptr() };
    // SAFETY: plain system calls; the host copies the filter.
    unsafe {
        if libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 {
            return;
        }
        let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
        if libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter) != 0 {
            crate::die(b"dilaton clock: the host has no filters of system calls (seccomp), which a jail needs\n");
        }
    }
}
