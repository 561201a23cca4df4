//! What comes from outside the kernel, in virtual time: frames of wires, and word of what disks have done.
//!
//! Both are **deadlines** of the clock as timers are, and each of them is a [`Source`]: it says when something will be there,
//! and at that instant, of which descriptors the kernel has to be told. `input.rs` is what all of them have in common.

use core::ffi::c_int;

use virtual_time::VirtualInstant;

pub mod caches;
pub mod disks;
pub mod faults;
pub mod guest;
pub mod input;
pub mod io_thread;
pub mod tap;

/// What makes descriptors of the kernel's readable at virtual instants.
pub trait Source {
    /// When there is something of which the kernel does not know yet, on this guest's clock, nanoseconds; never:
    /// [`wire::NEVER`].
    fn next_ns(&self) -> u64;

    /// Reports the descriptors for which something is there at `now` of which the kernel did not know; whether there are any.
    /// In a critical section.
    fn report(&self, now: VirtualInstant) -> bool;

    /// What the kernel's epoll has to say of one of those that were reported. Each is told once.
    fn take_ready(&self) -> Option<u64>;

    /// Those of which the kernel's epoll has not said so are to be reported again. In a critical section.
    fn take_back_ready(&self);

    /// The kernel wants to know by `token` when `fd` is ready, or no longer; whether `fd` is one of these.
    fn listen(&self, fd: c_int, token: Option<u64>) -> bool;
}
