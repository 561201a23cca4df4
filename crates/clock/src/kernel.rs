//! The guest's kernel as a program: its signal mask, its handlers, its rest, its serial lines.

pub mod direct;
pub mod hotplug;
pub mod leavings;
pub mod masks;
pub mod rest;
pub mod serial;
