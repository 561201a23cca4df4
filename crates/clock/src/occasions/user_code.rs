//! From the kernel to user code and back: what is due is served before a stub runs, and what it has done counts when it has
//! stopped.

use core::ffi::c_int;

use interrupts::{Flag, Id, Stops};

use crate::deadlines::timer;
use crate::host::page::{count, ClockPage};
use crate::host::sys;
use crate::kernel::leavings::unseen;
use crate::nodes::shares;
use crate::occasions::serving::serve_if_due;
use crate::occasions::{contention, ending, polling, waiting};
use crate::time::{aside, drive, present, standing};

/// What waitpid(2) says of a process that SIGALRM has stopped.
pub const STOPPED: c_int = libc::SIGALRM << 8 | 0x7F;

/// Stubs are 0 where there is none.
struct UserCode {
    /// The stub whose user code runs: it was resumed, and the kernel has not looked at it since.
    stub: Id,
    /// Whether it runs for the kernel, for so short that nothing is done before and after but what has to be.
    is_brief: Flag,
    /// The stub that was stopped at the bound.
    stopped_at_bound: Id,
    stops: Stops,
}

static USER: UserCode =
    UserCode { stub: Id::new(0), is_brief: Flag::new(false), stopped_at_bound: Id::new(0), stops: Stops::none() };

/// The stub whose user code runs, or is about to; 0: none.
pub fn running() -> c_int {
    USER.stub.get()
}

/// The kernel is about to let the stub `pid` run: what is due is served before, and what will be due interrupts it. Returns
/// false if the stub is not to run, since it would have to stop at once; one that runs for the kernel always runs.
pub fn before_user(page: &ClockPage, pid: c_int, is_for_kernel: bool) -> bool {
    standing::go();
    waiting::tell_and_wait(page);
    if is_for_kernel && present::is_work() && drive::may_read_later() && !shares::is_active() {
        // It does what the kernel has it do and comes back. What is due can wait for that, as it would in the kernel.
        USER.stub.set(pid);
        USER.is_brief.set(true);
        drive::stub_runs_for_kernel(pid);
        return true;
    }
    if !is_for_kernel {
        timer::remind_of_alarm();
    }
    let mut moment = present::look_to_arm(page);
    if serve_if_due(page) {
        moment = present::look_to_arm(page);
    }
    // From here on an interrupt stops the stub by a signal.
    USER.stub.set(pid);
    if !is_for_kernel && USER.stops.make(pid) {
        count(&page.stops_made);
        USER.stub.set(0);
        aside::give_back();
        shares::turned_back(page, pid);
        return false;
    }
    if !is_for_kernel && contention::turns_to(page, pid) {
        polling::turns_to_the_only_one();
    }
    unseen(present::is_event, || {
        drive::stub_runs(pid);
        shares::resume(page, pid);
        timer::arm_for_user(page, moment);
    });
    true
}

/// The kernel has turned to a stub that stopped.
pub fn after_user(page: &ClockPage) {
    if USER.stub.get() != 0 {
        USER.stub.set(0);
        count(&page.stub_stops);
        unseen(present::is_event, || {
            aside::end();
            ending::before_entry(page);
            drive::step_entry();
            if USER.is_brief.take() {
                drive::stub_stopped_for_kernel();
            } else {
                drive::stub_stopped();
            }
            shares::stopped(page);
        });
        if present::is_event() {
            // No step may go unnoticed beyond the bound: what the kernel did there would depend on where the bound is.
            waiting::tell_and_wait(page);
        }
    }
}

/// Stops the stub because the clock is at its bound; [`goes_on`] says when it may go on.
pub fn stop_at_bound(stub: c_int) {
    USER.stopped_at_bound.set(stub);
    sys::stop(stub);
}

/// The kernel has something to do, and is to hear of it when the stub stops.
pub fn stop_for_kernel() {
    USER.stopped_at_bound.set(0);
}

/// Whether `stub`, which has stopped, did so only because the clock was at its bound, and is to go on now. Then the kernel need
/// not hear of it, unless programs may have to wait for their node's CPU. Waits until it may go on.
pub fn goes_on(page: &ClockPage, stub: c_int) -> bool {
    if USER.stopped_at_bound.swap(0) != stub || shares::is_active() {
        return false;
    }
    after_user(page);
    waiting::tell_and_wait(page);
    // What is due may be another process's turn.
    let goes_on = !serve_if_due(page);
    if goes_on {
        aside::begin();
    }
    goes_on
}

/// The kernel wants the stub `pid` to stop while no user code runs; see [`Stops`].
pub fn keep_stop(pid: c_int) {
    USER.stops.keep(pid);
}

/// Whether the stub `pid`, of which the kernel asks, was stopped by not being resumed. Only the first call says so.
pub fn take_stop(pid: c_int) -> bool {
    USER.stops.take(pid)
}
