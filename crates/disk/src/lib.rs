//! How long disks take: models of block devices in virtual time.
//!
//! A model is a pure function of the requests that it gets and the instants at which it gets them: it reads no clock
//! and moves no data. What a fault draws follows from its seed. The clock library does the reading and writing, and tells the
//! guest that a request is done at the very instant that the model says.
//!
//! ```text
//! disk.rs        a disk: any of the models, and the requests in flight
//! request.rs     what a request is, and those whose end is known
//! parameters.rs  what describes a disk, as text
//! fixed.rs       a latency, a number of requests and of bytes a second
//! flash.rs       channels and dies, a write cache, garbage collection
//! mechanical.rs  a drive with platters: its queue, its write cache, what its head does
//! geometry.rs    where a sector is, and how long the head takes to it
//! buffer.rs      what a drive has read ahead
//! draw.rs        random numbers from a seed
//! faults.rs      what is wrong with a disk for a while
//! unflushed.rs   what a loss of power takes from a volatile cache
//! ```
//!
//! It runs inside guest kernels: no `std`, no heap. Instants and durations inside a model are nanoseconds in `u64`, named
//! `_ns`; at its edge they are types.

#![no_std]
#![forbid(unsafe_code)]
// Tests compare rates, whose last digits do not matter.
#![cfg_attr(test, allow(clippy::cast_precision_loss))]

#[cfg(test)]
extern crate std;

mod buffer;
mod disk;
mod draw;
mod faults;
mod fixed;
mod flash;
mod geometry;
mod mechanical;
mod parameters;
mod request;
mod unflushed;

pub use disk::Disk;
pub use faults::{Fate, Fault, Faulty, WORDS};
pub use parameters::{number, FixedParameters, FlashParameters, MechanicalParameters, ParameterError};
pub use request::{Operation, Request, REQUESTS_MAX, SECTOR_BYTES};
pub use unflushed::{Note, Unflushed};
