//! Nodes that share the guest's CPU.

pub mod calls;
pub mod shares;
