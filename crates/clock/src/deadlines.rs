//! What is next in this guest: its timer's deadline, an arrival, the bound that others set, an order of the host.

pub mod bound;
pub mod commands;
pub mod spinning;
pub mod timer;
