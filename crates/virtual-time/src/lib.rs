//! Virtual time as numbers: instants, the time dilation factor, the mapping between host and virtual time, the guest's
//! clock and its face, its one timer, how far it may run ahead of others, and the CPUs of its nodes.
//!
//! Nothing in here reads a clock, allocates, blocks or depends on `std`; every function takes the instants that it needs.
//! The clock library feeds it from the host, the tests feed it numbers.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod clock;
mod face;
mod horizon;
mod instant;
mod node_cpu;
mod slack;
mod tdf;
mod timeline;
mod timer;
mod transit;

pub use clock::{Clock, Drive, Orders, Sleep};
pub use face::Face;
pub use horizon::{horizon, horizon_of_held, horizon_of_woken, wakes_at};
pub use instant::{DriveInstant, HostInstant, VirtualDuration, VirtualInstant};
pub use node_cpu::NodeCpu;
pub use slack::user_slack_ns;
pub use tdf::{Tdf, TdfError};
pub use timeline::{Pace, Timeline};
pub use timer::{Alarm, GuestTimer, Now, Others};
pub use transit::{frees, is_in_the_way, lowered};
