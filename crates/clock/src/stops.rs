//! Stops of user code that the kernel asks for while none runs.
//!
//! At each interrupt of its timer the kernel has the stub of the present program stopped (os_alarm_process), so that it
//! gets to what the interrupt has left to do, as the turn of another program, before this one goes on. When user code was
//! interrupted there is no other way. But a busy kernel is mostly interrupted where it works on a system call of the
//! program, and then the host would resume the stub for it to stop again at once: a signal and two switches between
//! processes, ten microseconds, of which the program's part is charged to its node.
//!
//! So a stop that is asked for while no user code runs is *kept*, and made when the kernel resumes the stub, by not doing
//! so: the kernel is told that it has stopped. If another stub is resumed first, this one's program has been at the
//! scheduler since, and the stop is forgotten.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::page::{count, ClockPage};

/// What waitpid(2) says of a process that SIGALRM has stopped.
pub const STATUS: c_int = libc::SIGALRM << 8 | 0x7F;

/// The stub that is to stop; 0: none.
static KEPT: AtomicI32 = AtomicI32::new(0);
/// The stub that has stopped so, of which the kernel is yet to be told; 0: none.
static MADE: AtomicI32 = AtomicI32::new(0);

/// Keeps that the stub `pid` is to stop.
pub fn keep(pid: c_int) {
    KEPT.store(pid, Relaxed);
}

/// Makes the stop that is kept, if it is of the stub `pid`, which the kernel resumes; tells whether it did.
pub fn make(page: &ClockPage, pid: c_int) -> bool {
    let is_wanted = KEPT.swap(0, Relaxed) == pid;
    if is_wanted {
        MADE.store(pid, Relaxed);
        count(&page.stops_made);
    }
    is_wanted
}

/// Whether the stub `pid`, of which the kernel asks, has stopped so. That is told once.
pub fn take(pid: c_int) -> bool {
    MADE.load(Relaxed) == pid && pid != 0 && MADE.swap(0, Relaxed) == pid
}
