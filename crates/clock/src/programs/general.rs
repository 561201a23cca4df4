//! General registers of a traced process, which its kernel sets more often than they change.
//!
//! A kernel of Linux 6.1 turns to a program by telling the host where its thread-local storage is (arch_prctl(2), in
//! arch/x86/um/syscalls_64.c): it sets all registers of the process, makes that request, and reads them back; and when the
//! program goes on it sets them again. But where that storage is, is one of the registers. So what is set is held here,
//! and the host told when the process is to run, or is asked for something else; till then what is held is what it has. A
//! program that has waited, for a packet or a child, goes on with three requests less.
//!
//! Registers that the host refuses, which only a program that returns from a signal with made up ones can have, are refused when
//! it is to run. For its kernel either is the end of the program.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::MaybeUninit;

use interrupts::Id;

/// From linux/ptrace.h and asm/prctl.h (x86); not in every version of the libc crate.
pub const PTRACE_ARCH_PRCTL: c_uint = 30;
const ARCH_SET_FS: usize = 0x1002;

struct Held {
    /// The stopped process whose registers are held; 0: none.
    pid: Id,
    registers: UnsafeCell<MaybeUninit<libc::user_regs_struct>>,
}

// SAFETY: the kernel is one thread, and its signal handlers do not trace processes.
unsafe impl Sync for Held {}

static HELD: Held = Held { pid: Id::new(0), registers: UnsafeCell::new(MaybeUninit::zeroed()) };

/// What the host need not be asked of the stopped process `pid`: the answer, or `None` where it has to be. `tell` makes a
/// request of the host: what is held is told it before a request that needs it.
///
/// # Safety
/// As of ptrace(2).
pub unsafe fn answer(
    request: c_uint,
    pid: c_int,
    address: *mut c_void,
    data: *mut c_void,
    tell: impl Fn(c_uint, c_int, *mut c_void) -> c_long,
) -> Option<c_long> {
    let is_held = pid != 0 && HELD.pid.get() == pid;
    // SAFETY: the caller's structure; see `Held`, whose registers no reference outlives.
    unsafe {
        match request {
            libc::PTRACE_SETREGS => {
                if !is_held {
                    settle(&tell);
                }
                (*HELD.registers.get()).write(*data.cast());
                HELD.pid.set(pid);
                Some(0)
            }
            _ if !is_held => None,
            libc::PTRACE_GETREGS => {
                *data.cast() = (*HELD.registers.get()).assume_init();
                Some(0)
            }
            PTRACE_ARCH_PRCTL if data as usize == ARCH_SET_FS => {
                let registers = (*HELD.registers.get()).assume_init_ref();
                let is_there = registers.fs_base == address as u64 && registers.fs == 0;
                if is_there {
                    Some(0)
                } else {
                    refused(settle(&tell))
                }
            }
            libc::PTRACE_GETREGSET | libc::PTRACE_SETREGSET | libc::PTRACE_GETSIGINFO | libc::PTRACE_PEEKDATA => None,
            libc::PTRACE_KILL => {
                HELD.pid.set(0);
                None
            }
            _ => refused(settle(&tell)),
        }
    }
}

/// The process is killed, and its number may be another's next.
pub fn forget(pid: c_int) {
    if HELD.pid.get() == pid {
        HELD.pid.set(0);
    }
}

/// Tells the host what is held, if anything is.
fn settle(tell: impl Fn(c_uint, c_int, *mut c_void) -> c_long) -> c_long {
    match HELD.pid.swap(0) {
        0 => 0,
        pid => tell(libc::PTRACE_SETREGS, pid, HELD.registers.get().cast()),
    }
}

fn refused(answer: c_long) -> Option<c_long> {
    (answer != 0).then_some(answer)
}
