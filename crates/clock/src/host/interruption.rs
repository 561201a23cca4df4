//! What it costs on this host to interrupt what runs by a timer.
//!
//! A deadline that passes while user code runs is found either by the host timer's interrupt or, sooner or later, by the
//! kernel itself when the program enters it. Nobody knows which comes first. To wait for the program as long as an
//! interruption takes is never worse than twice the best that could have been done, in time lost and in lateness. On a
//! machine of its own that is a few microseconds; in a virtual machine, where arming a timer and its interrupt both go
//! through the hypervisor, tens. So it is measured, once, when the kernel starts.

use core::mem::zeroed;
use core::ptr::null_mut;

use crate::host::own_counter::host_now;
use crate::host::{real, sys};

/// How often it is measured. The least is taken: the host may do something else in between.
const TRIALS: usize = 5;

/// How far ahead the timer is armed.
const AHEAD_NS: u64 = 20_000;

/// How long its interrupt is waited for.
const PATIENCE_NS: u64 = 100_000;

/// What an interruption costs without the signal, of which nobody is told here; nanoseconds of host time, 0 if the host has
/// no timer for us.
pub fn measured_ns() -> u64 {
    // SAFETY: plain data; an event of no kind.
    let mut event: libc::sigevent = unsafe { zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    // Which is ignored by default.
    event.sigev_signo = libc::SIGURG;
    let mut timer: libc::timer_t = null_mut();
    // SAFETY: both structures are ours, and so is the timer.
    unsafe {
        if real::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
            return 0;
        }
        let least_ns = (0..TRIALS).map(|_| trial_ns(timer)).min();
        libc::timer_delete(timer);
        least_ns.unwrap_or(0)
    }
}

/// The time that arming takes, and the longest gap in which this thread then does not get on.
fn trial_ns(timer: libc::timer_t) -> u64 {
    let begin_ns = host_now().as_ns();
    sys::arm_timer(timer, host_now().ns_later(AHEAD_NS));
    let armed_ns = host_now().as_ns();
    let (mut before_ns, mut gap_ns) = (armed_ns, 0);
    while before_ns < armed_ns + PATIENCE_NS {
        let now_ns = host_now().as_ns();
        gap_ns = gap_ns.max(now_ns - before_ns);
        before_ns = now_ns;
    }
    armed_ns - begin_ns + gap_ns
}
