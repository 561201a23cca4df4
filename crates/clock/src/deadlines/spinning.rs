//! Looks at programs that may spin on the event drive (`interrupts::Spinning` has the rule).

use core::ffi::c_int;

use interrupts::{Finding, Look, Spinning};
use virtual_time::HostInstant;

use crate::host::own_counter::host_now;
use crate::host::page::{count, ClockPage};
use crate::time::drive;

static SPINNING: Spinning = Spinning::none();

/// Looks at the stub that runs, 0 for none; tells whether virtual time has to move on because it spins.
pub fn look(page: &ClockPage, stub: c_int) -> bool {
    let seen = Look { stub, cpu_ns: drive::stub_cpu_ns(stub).unwrap_or(0), steps_ns: drive::steps_ns() };
    match SPINNING.look(seen) {
        Finding::Nothing => false,
        Finding::Spins => {
            count(&page.spinners);
            false
        }
        Finding::MovesOn => true,
    }
}

/// When to look again.
pub fn next_look() -> HostInstant {
    host_now().ns_later(SPINNING.next_look_ns())
}
