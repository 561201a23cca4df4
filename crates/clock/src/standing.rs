//! On the work drive interrupts are served at their instants, and virtual time stands meanwhile.
//!
//! **Problem.** Delays, queues and traces of links, and arrivals from other guests, are interrupts. If a handler's CPU time
//! passed as it is used, a packet would leave its link as much later as the kernel takes from its timer to its queue, ten
//! microseconds where caches are cold. And a deadline that is reached while user code runs, or kernel code that does not
//! read its clock, is noticed some microseconds late. Links do neither, and hardware interrupts what runs.
//!
//! **The rule.** An interrupt is served at its deadline, or at the last instant that was *shown*, to the guest or to others
//! (`bound.rs`), whichever is later. That instant is all that the kernel sees until the handler has returned; where the
//! guest was idle, until it idles again or lets user code run, since an idle kernel only notes an alarm. Then the clock is
//! where the drive is. So nothing that anybody has seen is contradicted, and the CPU does the same work in the same virtual
//! time as ever: what interrupts cost delays the programs, and the interrupts that come once the kernel has seen that.
//!
//! **Lateness** is how far the drive was past a deadline when it was noticed, whatever instant is shown: where the CPU has more
//! to do than it can, all instants of links are of little worth, and the verdict has to see it.
//!
//! What runs when an interrupt is noticed has thus run a little before it and not after, by no more than the host timer is
//! late or the kernel does not look (`keeper.rs`).
//!
//! **What bounds it.** A kernel that waited for time to pass would wait for ever, and interrupts that are more than the CPU
//! can do would all be served at their instants, at the programs' expense. So what the kernel does about interrupts brings
//! the drive at most [`STANDS_WORK_NS`] of work before what is shown, which is longer than a packet mostly takes.
//!
//! **What it costs.** A look at the drive is most of what a reading costs, and while the clock stands it shows nothing new. So
//! only every fourth reading looks; the clock may stand for three readings longer than that bound, which are a few microseconds.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use virtual_time::VirtualInstant;

use crate::present;

/// Work about interrupts by which what is shown is behind the drive at most, nanoseconds of the host.
const STANDS_WORK_NS: u64 = 50_000;

/// How many readings in a row do not look at the drive while the clock stands; see above.
const UNSEEN_READINGS: u32 = 3;

/// The instant at which the clock stands, and up to which one of its drive; nanoseconds. It goes when the latter is 0.
static STANDS_NS: AtomicU64 = AtomicU64::new(0);
static UNTIL_NS: AtomicU64 = AtomicU64::new(0);
/// The last instant that was shown, nanoseconds.
static SHOWN_NS: AtomicU64 = AtomicU64::new(0);
/// How many readings more will show it without a look at the drive.
static UNSEEN: AtomicU32 = AtomicU32::new(0);

/// Where the drive was when a handler returned last, as an instant of the clock, nanoseconds.
static SERVED_NS: AtomicU64 = AtomicU64::new(0);

/// What is to be shown when the clock has come to `now`: never less than before, though the drive may take back work.
pub fn limit(now: VirtualInstant) -> VirtualInstant {
    let limited = if stands(now) { now.min(VirtualInstant::from_ns(STANDS_NS.load(Relaxed))) } else { now };
    limited.max(shown())
}

/// Whether it stands when the clock has come to `now`.
fn stands(now: VirtualInstant) -> bool {
    now.as_ns() < UNTIL_NS.load(Relaxed)
}

/// The same, and it is shown.
pub fn show(now: VirtualInstant) -> VirtualInstant {
    let shown = limit(now);
    SHOWN_NS.store(shown.as_ns(), Relaxed);
    UNSEEN.store(if stands(now) { UNSEEN_READINGS } else { 0 }, Relaxed);
    shown
}

/// What a reading is to show that need not look at the drive; `None` where it has to.
pub fn show_again() -> Option<VirtualInstant> {
    let left = UNSEEN.load(Relaxed).checked_sub(1)?;
    UNSEEN.store(left, Relaxed);
    Some(shown())
}

/// The instant that was shown last.
pub fn shown() -> VirtualInstant {
    VirtualInstant::from_ns(SHOWN_NS.load(Relaxed))
}

/// The instant at which to serve `next`, what is next in the guest, where that is due when the clock has come to `now`.
pub fn serve_at(now: VirtualInstant, next: VirtualInstant) -> VirtualInstant {
    if next > now || !present::is_work() {
        return now;
    }
    let behind = present::after_work(STANDS_WORK_NS).since(now);
    let earliest_ns = SERVED_NS.load(Relaxed).saturating_sub(behind.as_ns());
    next.max(shown()).max(VirtualInstant::from_ns(earliest_ns)).min(now)
}

/// Runs `serve`, a handler of the kernel's, at the instant `at`. In a critical section.
pub fn during(at: VirtualInstant, serve: impl FnOnce()) {
    if !present::is_work() {
        return serve();
    }
    let goes = UNTIL_NS.load(Relaxed) == 0;
    if goes {
        stand();
    }
    // One interrupt after the other does not keep it standing for longer.
    STANDS_NS.store(at.as_ns(), Relaxed);
    show(at);
    serve();
    SERVED_NS.store(present::after_work(0).as_ns(), Relaxed);
    if goes {
        go();
    }
}

/// The kernel was idle, and has noted an interrupt at the instant that was shown last.
pub fn stay() {
    if present::is_work() {
        stand();
    }
}

/// Time goes on.
pub fn go() {
    UNTIL_NS.store(0, Relaxed);
    UNSEEN.store(0, Relaxed);
}

/// Time stands at the instant that it stood at last.
fn stand() {
    UNTIL_NS.store(present::after_work(STANDS_WORK_NS).as_ns(), Relaxed);
}
