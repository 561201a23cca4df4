//! The occasions on which the clock acts: a reading, an alarm or input, the way to user code and back, a question of a
//! program, idling.

pub mod begins;
pub mod contention;
pub mod deaths;
pub mod ending;
pub mod handlers;
pub mod idle;
pub mod polling;
pub mod reading;
pub mod serving;
pub mod user_code;
pub mod waiting;
