//! A child of the kernel has ended.
//!
//! **Killed from outside.** The host may kill a stub, as when its memory runs out. The kernel takes that for a fault of the task
//! that it is at work for, and ends this wherever it is: in the middle of mapping memory, with a lock that nobody frees any
//! more, so that programs wait for ever. Elsewhere a program ends by a signal that nobody in the guest has sent. So the guest
//! ends, and says why. What the kernel has killed itself is told by what it asks of it.
//!
//! **In seccomp mode.** The kernel that traces its stubs learns of their end by waiting for them. One that waits for a word in
//! memory has a handler of SIGCHLD instead, which would run at whatever instant the host sends that, also for each stub that
//! the kernel has ended itself, and make runs of the event drive differ. But one end alone is news: that of the stub which
//! is waited for. So our handler looks whether it is that one, and if so gives the kernel the turn, so that the wait is over;
//! the kernel's handler is called where it waited. Of another stub it is noticed when that is to run.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use interrupts::{Count, Flag, Id};

use crate::host::sys;
use crate::kernel::direct::{call_handler, free_signal_stack};
use crate::kernel::leavings::words_to_clear;
use crate::kernel::masks::exclusively;
use crate::occasions::serving::KERNEL;
use crate::time::present;

/// What is written in the word for the kernel to go on.
const KERNELS_TURN: u32 = 1;

struct Deaths {
    /// The stub that is waited for, and the address of the word; 0: none.
    awaited: Id,
    word: Count,
    /// It has ended.
    has_ended: Flag,
    /// Some child has ended while none was waited for. It may be the next that is: a stub mostly runs before it is.
    has_any: Flag,
}

static DEATHS: Deaths =
    Deaths { awaited: Id::new(0), word: Count::new(0), has_ended: Flag::new(false), has_any: Flag::new(false) };

/// Runs `wait`, which waits until `word` says that it is no more the turn of the stub `pid`; tells whether that has ended. One that
/// `is_suspect` may have ended before.
pub fn while_awaited(pid: c_int, word: &'static AtomicU32, is_suspect: bool, wait: impl FnOnce()) -> bool {
    DEATHS.has_ended.set(false);
    DEATHS.word.set(word.as_ptr() as usize);
    DEATHS.awaited.set(pid);
    if DEATHS.has_any.take() || is_suspect {
        look();
    }
    wait();
    DEATHS.awaited.set(0);
    DEATHS.has_ended.take()
}

/// A child has ended: looks whether it is the stub that is waited for; if so, it is waited for no more.
pub fn look() {
    let pid = DEATHS.awaited.get();
    if pid == 0 {
        DEATHS.has_any.set(true);
    } else if sys::was_killed(pid) {
        lost();
    } else if sys::has_ended(pid) {
        DEATHS.has_ended.set(true);
        // SAFETY: the word is in the kernel's memory, which stays.
        unsafe { (*(DEATHS.word.get() as *const AtomicU32)).store(KERNELS_TURN, SeqCst) };
    }
}

/// The kernel gets to know by `status` that a stub has stopped or ended. Of one that it has killed it does not want to know it.
pub fn told(status: c_int) {
    if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL {
        lost();
    }
}

/// A stub was killed from outside.
pub fn lost() -> ! {
    crate::die(b"dilaton clock: a process of a program was killed from outside\n")
}

/// Tells the kernel of it, which buries all that have ended.
pub fn tell() {
    let Some(top) = free_signal_stack() else { return };
    let handler = KERNEL.child.get();
    if handler != 0 {
        // SAFETY: the stack is free, and stays ours in the critical section; the handler takes what a signal's would.
        exclusively(|| unsafe { call_handler(top, words_to_clear(present::is_event()), libc::SIGCHLD, handler) });
    }
}
