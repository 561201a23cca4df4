//! The one place where the agent touches clocks: the guest's CLOCK_MONOTONIC, which is virtual time, and its date.

use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, clock_settime, ClockId};

use crate::error::{Doing, Result};

/// Nanoseconds in a second.
pub const SECOND_NS: i64 = 1_000_000_000;

/// The guest's CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every kernel has CLOCK_MONOTONIC");
    now.tv_sec() * SECOND_NS + now.tv_nsec()
}

/// The guest's CLOCK_REALTIME.
pub fn date() -> TimeSpec {
    clock_gettime(ClockId::CLOCK_REALTIME).expect("every kernel has CLOCK_REALTIME")
}

/// Sets the guest's CLOCK_REALTIME, in nanoseconds since 1970.
///
/// # Errors
/// The kernel refuses it.
pub fn set_date_ns(ns: i64) -> Result<()> {
    clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::new(ns / SECOND_NS, ns % SECOND_NS))
        .doing(|| "set the date".to_owned())
}
