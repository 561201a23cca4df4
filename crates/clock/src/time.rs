//! What time it is: what drives the clock, where it is, and what of that is shown.

pub mod aside;
pub mod drive;
pub mod present;
pub mod standing;
pub mod undisturbed;
