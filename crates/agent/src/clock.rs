//! The one place where the agent reads a clock: the guest's CLOCK_MONOTONIC, which is virtual time.

use nix::time::{clock_gettime, ClockId};

/// Nanoseconds in a second.
pub const SECOND_NS: i64 = 1_000_000_000;

/// The guest's CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every kernel has CLOCK_MONOTONIC");
    now.tv_sec() * SECOND_NS + now.tv_nsec()
}
