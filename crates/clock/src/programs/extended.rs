//! Extended CPU state of user code: what the kernel saves of it, and what it restores.
//!
//! - **Padded.** The kernel saves and restores it with a buffer of 2,696 bytes (FP_SIZE); a host with AMX demands more
//!   (PTRACE_SETREGSET wants the full size), and the first user process would panic the kernel. The buffer is padded with
//!   zeros: the components beyond are in their initial state, and user code has never touched them.
//! - **Read as far as it is used.** Linux 7.2 asks for all that the host has, of which AMX is three quarters. No program can use
//!   it (`programs/cpuid.rs`), and to copy and compare it takes a fifth of what a system call takes.
//! - **Not restored for nothing.** The kernel restores before every return to user code what it saved at the last entry. Most
//!   are the same bytes to the same process: these are left out.
//! - **Not looked at for nothing.** Between the two a process mostly makes mappings for the kernel, by code that the kernel has
//!   put there: a loop of system calls without an instruction that would change that state. So it is looked at after
//!   the first [`FIRST_LOOKS`] of such runs, and after each [`LOOK_EACH`]th from then on. One kernel whose code does
//!   change it is found out by the first, and is looked at always; a handler of a signal, by which a process is asked about a
//!   fault, does change it, and is always looked at, too.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Count, Flag};

use crate::host::page::{self, count};
use crate::programs::general::PTRACE_ARCH_PRCTL;
use crate::programs::stub;

/// The number of these registers (linux/elf.h).
pub const NT_X86_XSTATE: usize = 0x202;
/// How many runs for the kernel are looked at first, and which of the later ones.
const FIRST_LOOKS: usize = 64;
const LOOK_EACH: usize = 64;

/// Of what programs can use nothing is behind this, where AMX begins.
const USED_BYTES: usize = 2_696;

/// Room for the largest extended state; AMX needs 11,008 bytes.
const STATE_BYTES_MAX: usize = 16 * 1024;

/// How many stopped processes have their registers remembered. Those of others are restored more often.
const SAVED_SLOTS: usize = 64;

#[repr(C, align(64))]
struct State([u8; STATE_BYTES_MAX]);

/// What a process has run since its registers were read.
#[derive(Clone, Copy, PartialEq)]
enum Ran {
    Nothing,
    /// What the kernel has it make.
    KernelsCode,
    /// A handler of a signal.
    Handler,
}

/// Registers as last read from a process.
struct Saved {
    pid: c_int,
    length: usize,
    ran: Ran,
    bytes: [u8; USED_BYTES],
}

struct Registers {
    /// Size of the extended state that the host demands; 0: not asked yet.
    full_bytes: Count,
    /// Runs for the kernel so far, and whether any has changed the state.
    runs: Count,
    changes: Flag,
    padded: UnsafeCell<State>,
    saved: UnsafeCell<[Saved; SAVED_SLOTS]>,
    /// What a process is asked for to be compared: the kernel's stacks have no room for it.
    asked: UnsafeCell<[u8; USED_BYTES]>,
}

// SAFETY: the kernel is one thread, and its signal handlers do not trace processes.
unsafe impl Sync for Registers {}

static REGISTERS: Registers = Registers {
    full_bytes: Count::new(0),
    runs: Count::new(0),
    changes: Flag::new(false),
    padded: UnsafeCell::new(State([0; STATE_BYTES_MAX])),
    saved: UnsafeCell::new(
        [const { Saved { pid: 0, length: 0, ran: Ran::Nothing, bytes: [0; USED_BYTES] } }; SAVED_SLOTS],
    ),
    asked: UnsafeCell::new([0; USED_BYTES]),
};

fn saved(pid: c_int) -> &'static mut Saved {
    // SAFETY: see `Registers`; the reference does not outlive the call that asked for it.
    unsafe { &mut (*REGISTERS.saved.get())[pid as usize % SAVED_SLOTS] }
}

/// The kernel makes another request of `pid`, with which it resumes it by `signal`, if it does.
pub fn requested(request: c_uint, pid: c_int, signal: c_int) {
    // These leave a process where it is, and its extended state; after anything else it may have run, or be another one. By the
    // last the kernel tells it where its thread-local storage is, whenever it has turned to another one in between.
    if matches!(
        request,
        libc::PTRACE_GETREGS
            | libc::PTRACE_GETREGSET
            | libc::PTRACE_SETREGS
            | libc::PTRACE_GETSIGINFO
            | PTRACE_ARCH_PRCTL
    ) {
        return;
    }
    let entry = saved(pid);
    if request != libc::PTRACE_CONT || entry.pid != pid {
        entry.length = 0;
    } else if signal != 0 {
        entry.ran = Ran::Handler;
    } else if entry.ran == Ran::Nothing {
        entry.ran = Ran::KernelsCode;
    }
    stub::forget();
}

/// PTRACE_GETREGSET.
///
/// # Safety
/// The kernel's iovec.
pub unsafe fn read(pid: c_int, buffer: *mut libc::iovec) -> c_long {
    if page::page().is_none() {
        // SAFETY: passed through.
        return unsafe { stub::request(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, buffer.cast()) };
    }
    // SAFETY: the buffer has room for `iov_len` bytes.
    unsafe {
        let room = (*buffer).iov_len;
        let bytes = (*buffer).iov_base.cast::<u8>();
        let whole = (room > USED_BYTES).then(|| full_bytes(pid).min(room));
        let entry = saved(pid);
        let is_new = entry.pid != pid;
        if is_new || entry.length == 0 || entry.ran != Ran::Nothing || entry.length > room {
            (*buffer).iov_len = whole.unwrap_or(room).min(USED_BYTES);
            entry.length = 0;
            if stub::request(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, buffer.cast()) != 0 {
                return -1;
            }
            entry.pid = pid;
            entry.length = (*buffer).iov_len;
            entry.ran = Ran::Nothing;
            core::ptr::copy_nonoverlapping(bytes, entry.bytes.as_mut_ptr(), entry.length);
        } else {
            core::ptr::copy_nonoverlapping(entry.bytes.as_ptr(), bytes, entry.length);
        }
        if let Some(whole) = whole.filter(|&whole| is_new && whole > entry.length) {
            bytes.add(entry.length).write_bytes(0, whole - entry.length);
        }
        (*buffer).iov_len = whole.unwrap_or(entry.length);
        0
    }
}

/// PTRACE_SETREGSET.
///
/// # Safety
/// The kernel's iovec.
pub unsafe fn write(pid: c_int, buffer: *mut libc::iovec) -> c_long {
    let Some(page) = page::page() else {
        // SAFETY: passed through.
        return unsafe { stub::request(libc::PTRACE_SETREGSET, pid, NT_X86_XSTATE as *mut c_void, buffer.cast()) };
    };
    count(&page.register_restores);
    // SAFETY: the kernel's buffer.
    let wanted = unsafe { core::slice::from_raw_parts((*buffer).iov_base.cast::<u8>(), (*buffer).iov_len) };
    let full = full_bytes(pid);
    let entry = saved(pid);
    // Of a buffer that is larger than this host's state its end means nothing.
    let state = &wanted[..wanted.len().min(full).min(USED_BYTES)];
    if entry.pid == pid && entry.length == state.len() && entry.bytes[..entry.length] == *state && is_left(pid, entry) {
        count(&page.register_restores_skipped);
        return 0;
    }
    entry.length = 0;
    // SAFETY: either the kernel's buffer, or ours with room for `full` bytes of which only the head is ever written.
    unsafe {
        if full <= wanted.len() {
            (*buffer).iov_len = full;
            return stub::request(libc::PTRACE_SETREGSET, pid, NT_X86_XSTATE as *mut c_void, buffer.cast());
        }
        let padded = (*REGISTERS.padded.get()).0.as_mut_ptr();
        core::ptr::copy_nonoverlapping(wanted.as_ptr(), padded, wanted.len());
        let mut whole = libc::iovec { iov_base: padded.cast(), iov_len: full };
        stub::request(libc::PTRACE_SETREGSET, pid, NT_X86_XSTATE as *mut c_void, (&raw mut whole).cast())
    }
}

/// Whether the extended state of `pid` is what it was when it was read.
fn is_left(pid: c_int, entry: &mut Saved) -> bool {
    match entry.ran {
        Ran::Nothing => true,
        Ran::Handler => is_as_it_was(pid, entry),
        Ran::KernelsCode => {
            let run = REGISTERS.runs.get();
            REGISTERS.runs.set(run.wrapping_add(1));
            let is_trusted = run >= FIRST_LOOKS && !REGISTERS.changes.get();
            if is_trusted && run % LOOK_EACH != 0 {
                return true;
            }
            let is_same = is_as_it_was(pid, entry);
            if !is_same {
                if is_trusted {
                    crate::die(b"dilaton clock: this kernel's code in a program has changed its extended CPU state\n");
                }
                REGISTERS.changes.set(true);
            }
            is_same
        }
    }
}

/// Whether the extended state of `pid`, which has run for the kernel, is what it was before: to ask takes half as long as to set
/// it. It is asked for as much as the kernel keeps; the header in that says whether more is in use.
fn is_as_it_was(pid: c_int, entry: &mut Saved) -> bool {
    let state = REGISTERS.asked.get();
    let mut known = libc::iovec { iov_base: state.cast(), iov_len: entry.length };
    // SAFETY: see `Registers`; the buffer is writable for its length.
    let is_same = unsafe {
        stub::request(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, (&raw mut known).cast()) == 0
            && (&(*state))[..known.iov_len] == entry.bytes[..entry.length]
    };
    if is_same {
        entry.ran = Ran::Nothing;
    }
    is_same
}

/// The size of the extended state of process `pid`, which is that of every process on this host.
fn full_bytes(pid: c_int) -> usize {
    let known = REGISTERS.full_bytes.get();
    if known > 0 {
        return known;
    }
    // SAFETY: the buffer is writable for its length; it is cleared again, since it pads later states with zeros.
    let full = unsafe {
        let state = REGISTERS.padded.get();
        let mut whole = libc::iovec { iov_base: state.cast(), iov_len: STATE_BYTES_MAX };
        let failed =
            stub::request(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, (&raw mut whole).cast()) != 0;
        (*state).0.fill(0);
        if failed || whole.iov_len == STATE_BYTES_MAX {
            crate::die(b"dilaton clock: the size of this host's extended CPU state cannot be told\n");
        }
        whole.iov_len
    };
    REGISTERS.full_bytes.set(full);
    if let Some(page) = page::page() {
        page.extended_state_bytes.store(full as u64, Relaxed);
    }
    full
}
