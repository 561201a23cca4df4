//! Programs that spin on the event drive.
//!
//! There the CPU is infinitely fast and nothing preempts a program, so one that waits in a loop for memory to change
//! would wait for ever: whoever is to change it never runs. Whether a loop waits or computes cannot be told, so the rule is:
//! a program that has used [`SPIN_NS`] of CPU time without entering the kernel *spins*. From then on it is preempted as
//! on a machine as fast as the host: whenever it has used [`AGAIN_NS`], a tick of the kernel, virtual time moves on to the
//! guest's next timer, and what the host has sent is let in.
//!
//! Where in the program that happens is up to the host, so the run may not be repeatable any more. It is counted in the
//! clock page, and the host says so.
//!
//! Every host timer on that drive is a look whether the kernel has turned to the stub since the last one; nothing is added
//! to entries and clock readings.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use virtual_time::HostInstant;

use crate::page::{count, ClockPage};
use crate::{drive, sys};

/// CPU time after which a program that has not entered the kernel is taken to spin.
const SPIN_NS: u64 = 5_000_000_000;

/// The same for one that has been found spinning.
const AGAIN_NS: u64 = 10_000_000;

/// Host time between looks as long as nothing spins.
const LOOK_NS: u64 = 1_000_000_000;

/// The stub that was found spinning last, or 0.
static SPINNER: AtomicI32 = AtomicI32::new(0);

/// What the last look saw: the stub that ran, its CPU time, and the steps made until then.
static SEEN_PID: AtomicI32 = AtomicI32::new(0);
static SEEN_CPU_NS: AtomicU64 = AtomicU64::new(0);
static SEEN_STEPS_NS: AtomicU64 = AtomicU64::new(0);

/// Looks at the stub that runs, 0 for none; tells whether virtual time has to move on because it spins.
pub fn look(page: &ClockPage, pid: c_int) -> bool {
    let steps_ns = drive::steps_ns();
    let cpu_ns = drive::stub_cpu_ns(pid).unwrap_or(0);
    if pid == 0 || pid != SEEN_PID.load(Relaxed) || steps_ns != SEEN_STEPS_NS.load(Relaxed) {
        SEEN_PID.store(pid, Relaxed);
        SEEN_CPU_NS.store(cpu_ns, Relaxed);
        SEEN_STEPS_NS.store(steps_ns, Relaxed);
        return false;
    }
    let known = SPINNER.load(Relaxed) == pid;
    let used_ns = cpu_ns.saturating_sub(SEEN_CPU_NS.load(Relaxed));
    if used_ns < if known { AGAIN_NS } else { SPIN_NS } {
        return false;
    }
    if !known {
        SPINNER.store(pid, Relaxed);
        count(&page.spinners);
    }
    SEEN_PID.store(0, Relaxed);
    true
}

/// When to look again.
pub fn next_look() -> HostInstant {
    let is_spinning = SPINNER.load(Relaxed) != 0;
    sys::host_now().ns_later(if is_spinning { AGAIN_NS } else { LOOK_NS })
}
