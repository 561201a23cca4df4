//! What carries frames between guests, in virtual time: memory that they share.
//!
//! ```text
//! memory.rs      the layout: header, members, distances, ways
//! ring.rs        frames under way in one direction, each with the instant of its arrival
//! agreement.rs   what guests tell each other of where they are, and how far each may run
//! elsewhere.rs   guests of other machines in the memory of this one, for who carries messages between them
//! futex.rs       waiting and waking, and a lock
//! ```
//!
//! It runs inside guest kernels (crates/clock): no `std`, no heap, no thread-local storage. A lock is held for some
//! hundred instructions, never by a signal handler that has interrupted its holder: that is for the caller to see to.

#![no_std]

#[cfg(test)]
extern crate std;

mod agreement;
mod elsewhere;
mod futex;
#[cfg(test)]
mod lives;
mod memory;
mod ring;
#[cfg(test)]
mod stress;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::missing_panics_doc)]
pub mod testing;

pub use agreement::Guest;
pub use elsewhere::{Machine, Word};
pub use memory::{Header, Member, NotAWire, Record, Way, Wire, NEVER};
pub use ring::{add, Full, Received};
