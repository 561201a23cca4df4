//! What the library stands on: the host's system calls, the libc functions behind ours, the memory that it shares with
//! the host.

pub mod entropy;
pub mod guard;
pub mod interruption;
pub mod own_counter;
pub mod page;
pub mod real;
pub mod set_id;
pub mod sys;
