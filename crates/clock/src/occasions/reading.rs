//! What the kernel reads from its clock.

use virtual_time::VirtualInstant;

use crate::deadlines::{bound, commands, timer};
use crate::host::page::{self, count};
use crate::occasions::{ending, serving, waiting};
use crate::time::present::{face, is_event, look};
use crate::time::{drive, standing};

/// Virtual now on the guest's face, nanoseconds; `None` when this process has no clock. A deadline that is found reached is
/// served first.
pub fn reading_ns() -> Option<u64> {
    now().map(|now| face().reading_ns(now))
}

/// Virtual now.
fn now() -> Option<VirtualInstant> {
    let page = page::page()?;
    count(&page.reads);
    if let Some(shown) = standing::show_again() {
        return Some(shown);
    }
    if commands::are_there(page) && !is_event() {
        commands::take_over(page);
    }
    ending::before_reading(page);
    drive::step_reading();
    let mut now = look(page);
    if now.as_ns() >= bound::tell_at_ns() {
        waiting::tell_and_wait(page);
        now = look(page);
    }
    if now >= timer::next() && serving::serve_if_due(page) {
        now = look(page);
    }
    Some(standing::show(now))
}

/// The CLOCK_REALTIME of the guest at virtual instant 0, nanoseconds.
pub fn realtime_base_ns() -> u64 {
    page::page().map_or(0, |page| page.realtime_base_ns.load(core::sync::atomic::Ordering::Relaxed))
}
