//! What all that can be sampled has in common.

use crate::error::Result;

/// Something that can be sampled.
pub trait Instrument {
    /// What it is called: the name of its table.
    fn name(&self) -> &'static str;
    /// The header line of its table.
    fn header(&self) -> &'static str;
    /// Appends the rows of a sample, and returns how many they are.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn sample(&mut self, t_ns: i64, rows: &mut Vec<u8>) -> Result<usize>;
}
