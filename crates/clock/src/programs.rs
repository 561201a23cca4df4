//! What the programs of the guest meet, whose processes the kernel traces.

pub mod counter;
pub mod cpuid;
pub mod faults;
pub mod lacks;
pub mod stub;
pub mod threads;
pub mod tracee;
