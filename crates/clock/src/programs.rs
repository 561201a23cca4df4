//! What the programs of the guest meet, whose processes the kernel traces.

pub mod counter;
pub mod cpuid;
pub mod extended;
pub mod faults;
pub mod general;
pub mod lacks;
pub mod memory;
pub mod seccomp;
pub mod shared;
pub mod stub;
pub mod stubs;
pub mod threads;
pub mod tracee;
