//! Interrupts at their exact instants (`interrupts::Standing` has the rule), on the work drive.

use interrupts::{Standing, STANDS_WORK_NS};
use virtual_time::VirtualInstant;

use crate::time::present;

static STANDING: Standing = Standing::going();

/// What is to be shown when the clock has come to `now`.
pub fn limit(now: VirtualInstant) -> VirtualInstant {
    STANDING.limit(now)
}

/// Shows what is to be shown when the clock has come to `now`, and returns it.
pub fn show(now: VirtualInstant) -> VirtualInstant {
    STANDING.show(now)
}

/// What a reading is to show that need not look at the drive; `None` where it has to.
pub fn show_again() -> Option<VirtualInstant> {
    STANDING.show_again()
}

/// The instant that was shown last.
pub fn shown() -> VirtualInstant {
    STANDING.shown()
}

/// The instant at which to serve `next`, what is next in the guest, where that is due when the clock has come to `now`.
pub fn serve_at(now: VirtualInstant, next: VirtualInstant) -> VirtualInstant {
    if next > now || !present::is_work() {
        return now;
    }
    STANDING.serve_at(now, next, until().since(now))
}

/// Runs `serve`, a handler of the kernel's, at the instant `at`. In a critical section.
pub fn during(at: VirtualInstant, serve: impl FnOnce()) {
    if !present::is_work() {
        return serve();
    }
    let goes = STANDING.begin(at, until);
    serve();
    STANDING.end(present::after_work(0), goes);
}

/// The kernel was idle, and has noted an interrupt at the instant that was shown last: the clock stands there.
pub fn stay() {
    if present::is_work() {
        STANDING.stay(until());
    }
}

/// Time goes on.
pub fn go() {
    STANDING.go();
}

/// Up to which instant of its drive the clock may stand from now on.
fn until() -> VirtualInstant {
    present::after_work(STANDS_WORK_NS)
}
