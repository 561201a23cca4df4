//! Programs run when the clock comes to its end, on the event drive.
//!
//! **Problem.** A run that was held goes on as one that was not, so no step may be lost, and none made for the hold's sake.
//! But the host may only look at what stands still, and a kernel that is stopped in the middle of its work lets nobody in.
//!
//! **The rule.** What is at work at the end goes on, and its steps count, beyond the end too; mostly it is over within some
//! microseconds, and the kernel idles, where nothing is lost (`virtual-time/src/clock.rs`). A program that waits for time to pass,
//! and asks again and again whether it has, never comes to that. So a busy guest (`drive::is_busy`) makes no step beyond its
//! end: it stands before it until the host orders something. If the host has something for it, the guest has to get to
//! where it idles, and goes on in no time; then people are at work in it, and no other run is the same.

use crate::deadlines::commands;
use crate::host::page::ClockPage;
use crate::host::sys;
use crate::kernel::{masks, serial};
use crate::occasions::waiting;
use crate::time::{drive, present};

/// The kernel is about to read its clock.
#[inline]
pub fn before_reading(page: &ClockPage) {
    before_step(page, drive::READING_NS);
}

/// A program is about to enter the kernel.
pub fn before_entry(page: &ClockPage) {
    before_step(page, drive::BUSY_ENTRY_NS);
}

#[inline]
fn before_step(page: &ClockPage, step_ns: u64) {
    if present::is_event() && drive::is_busy() && present::steps_beyond(step_ns) {
        stand(page, step_ns);
    }
}

#[cold]
fn stand(page: &ClockPage, step_ns: u64) {
    let mask = sys::block(masks::SIGNALS);
    while present::steps_beyond(step_ns) {
        // Each end that the host orders may be the next one.
        present::end_here(page);
        waiting::tell_place(page);
        if commands::are_there(page) {
            commands::heed(page);
        } else if serial::has_input() {
            waiting::wait_in_place(page);
            present::stand(page);
        } else {
            sys::sleep(None, mask & !masks::SIGNALS);
        }
    }
    sys::set_mask(mask);
}
