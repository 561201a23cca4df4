//! Whether the kernel rests (`interrupts::Rest`), which the host is told, too.

use core::sync::atomic::Ordering::{Relaxed, Release};

use interrupts::Rest;

use crate::host::page::{self, count, ClockPage};

static REST: Rest = Rest::at_work();

/// A signal goes to the kernel.
pub fn note() {
    REST.note();
    if let Some(page) = page::page() {
        page.rests.store(0, Relaxed);
    }
}

/// An alarm, or an arrival, goes to the kernel.
pub fn note_alarm() {
    REST.note_alarm();
    if let Some(page) = page::page() {
        page.rests.store(0, Relaxed);
        count(&page.busy_interrupts);
        count(&page.interrupts);
    }
}

/// Whether a signal went to the kernel since it idled last.
pub fn has_noted() -> bool {
    REST.has_noted()
}

/// The kernel handles now what it had noted.
pub fn clear_noted() {
    REST.clear_noted();
}

/// The kernel has nothing left to do.
pub fn begin(page: &ClockPage) {
    REST.begin();
    // Behind the timer's deadline, which is final.
    page.rests.store(1, Release);
}

/// It goes back to work.
pub fn end(page: &ClockPage) {
    page.rests.store(0, Relaxed);
    REST.end();
}

/// Whether the kernel has nothing left to do.
pub fn is_resting() -> bool {
    REST.is_resting()
}

/// Whether the kernel rests and has yet to set its next deadline.
pub fn has_served() -> bool {
    REST.has_served()
}
