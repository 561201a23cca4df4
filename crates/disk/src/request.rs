//! Requests to a disk, and those whose end is known.

use arrayvec::ArrayVec;

/// Requests in flight at most: twice what a guest's driver has at once.
pub const REQUESTS_MAX: usize = 128;

/// Bytes of a sector, of which requests are made.
pub const SECTOR_BYTES: u64 = 512;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bytes from the disk.
    Read,
    /// Bytes to the disk, or to its cache.
    Write,
    /// All that was written before is to survive a loss of power.
    Flush,
    /// What is there is not needed any more.
    Discard,
}

/// A request to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub operation: Operation,
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
}

impl Request {
    pub(crate) fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

/// Requests whose end is known, by the tags of those who made them.
#[derive(Default)]
pub(crate) struct Completions {
    known: ArrayVec<(u64, u64), REQUESTS_MAX>,
    /// How much later those end than a model says that has not said so yet, by their tags.
    late: ArrayVec<(u64, u64), REQUESTS_MAX>,
}

impl Completions {
    /// The end of a request will be that much later than it is said to be.
    pub fn delay(&mut self, tag: u64, delay_ns: u64) {
        self.late.push((tag, delay_ns));
    }

    pub fn add(&mut self, at_ns: u64, tag: u64) {
        let place = self.late.iter().position(|&(other, _)| other == tag);
        let late_ns = place.map_or(0, |place| self.late.swap_remove(place).1);
        self.known.push((at_ns.saturating_add(late_ns), tag));
    }

    pub fn first_ns(&self) -> u64 {
        self.known.iter().map(|&(at_ns, _)| at_ns).min().unwrap_or(u64::MAX)
    }

    /// Ends all at `now_ns`.
    pub fn bring_forward(&mut self, now_ns: u64) {
        self.known.iter_mut().for_each(|(at_ns, _)| *at_ns = now_ns);
    }

    /// Takes out the earliest one that is done at `now_ns`; of several at one instant, the one that was known first.
    pub fn take(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        let (place, &(at_ns, _)) = self.known.iter().enumerate().min_by_key(|(_, &(at_ns, _))| at_ns)?;
        (at_ns <= now_ns).then(|| self.known.remove(place))
    }
}

/// How long `bytes` take at a rate, rounded up to a nanosecond.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s)) as u64
}
