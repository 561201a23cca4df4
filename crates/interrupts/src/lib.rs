//! What the clock of a guest decides about interrupts: at which instant one is served and what is shown meanwhile, what the
//! kernel is told of, which stops are made, which programs spin, poll or wait for each other, which work is not the guest's, and what a fault was
//! about.
//!
//! Nothing in here reads a clock, makes a system call or calls the kernel: whoever asks says what time it is and what has
//! happened. Decisions are made in the middle of other ones, since the kernel's signal handlers may run between any two
//! instructions of its only thread. So all state is in single words (`word.rs`), and methods take `&self`.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod access;
mod aside;
mod contention;
mod jobs;
mod places;
mod polling;
mod readiness;
mod reports;
mod rest;
mod spinning;
mod standing;
mod stops;
mod talkers;
mod word;

pub use access::{access, Access, Registers};
pub use aside::Aside;
pub use contention::{Contention, Stretch};
pub use jobs::Jobs;
pub use polling::{Call, Polling};
pub use readiness::Readiness;
pub use reports::Reports;
pub use rest::Rest;
pub use spinning::{Finding, Look, Spinning};
pub use standing::{Standing, STANDS_WORK_NS};
pub use stops::Stops;
pub use talkers::{Talkers, TALKERS_MAX};
pub use word::{Count, Flag, Id, Small, Word};
