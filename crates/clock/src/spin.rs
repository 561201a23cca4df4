//! Programs that spin on the event drive.
//!
//! There the CPU is infinitely fast and nothing preempts a program, so one that waits in a loop for memory to change
//! would wait for ever: whoever is to change it never runs. Whether a loop waits or computes cannot be told, so the rule is:
//! a program that has used [`SPIN_NS`] of CPU time without entering the kernel *spins*. From then on it is preempted as
//! on a machine as fast as the host: whenever it has used [`AGAIN_NS`], a tick of the kernel, virtual time moves on to the
//! guest's next timer, and what the host has sent is let in.
//!
//! The host asks the agent for the program's name, and the agent has to find it at work. But a few ticks may be all that it
//! has been waiting for, and they are over before the host has even looked. So the first time it goes on for [`ASKED_NS`].
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

/// The same for one that has been found spinning, before time moves on for the first time: four of the host's looks.
const ASKED_NS: u64 = 1_000_000_000;

/// The same from then on.
const AGAIN_NS: u64 = 10_000_000;

/// Host time between looks as long as nothing spins.
const LOOK_NS: u64 = 1_000_000_000;

/// The stub that was found spinning last, or 0, and the CPU time after which time moves on for it.
static SPINNER: AtomicI32 = AtomicI32::new(0);
static MOVES_AFTER_NS: AtomicU64 = AtomicU64::new(AGAIN_NS);

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
    if used_ns < if known { MOVES_AFTER_NS.load(Relaxed) } else { SPIN_NS } {
        return false;
    }
    if !known {
        SPINNER.store(pid, Relaxed);
        MOVES_AFTER_NS.store(ASKED_NS, Relaxed);
        SEEN_CPU_NS.store(cpu_ns, Relaxed);
        count(&page.spinners);
        return false;
    }
    MOVES_AFTER_NS.store(AGAIN_NS, Relaxed);
    SEEN_PID.store(0, Relaxed);
    true
}

/// When to look again.
pub fn next_look() -> HostInstant {
    let is_spinning = SPINNER.load(Relaxed) != 0;
    sys::host_now().ns_later(if is_spinning { AGAIN_NS } else { LOOK_NS })
}
