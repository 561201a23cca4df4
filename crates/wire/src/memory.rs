//! The layout of the shared memory, as `wire.def` defines it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

include!(concat!(env!("OUT_DIR"), "/wire.rs"));

/// "DILATON\0" as a number.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"DILATON\0");

pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// An instant that is not reached, and a distance over which nothing goes.
pub const NEVER: u64 = u64::MAX;

/// Why memory is not a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAWire {
    /// It is something else.
    Magic,
    /// It is laid out as another version does.
    Version,
    /// What it says that it holds is more than it does.
    Size,
}

/// Guests and ways, at most.
const COUNT_MAX: u64 = 1 << 16;

/// The shared memory of a run.
///
/// How much it holds is read once, and where a ring is whenever it is used is looked at against its size: what a guest
/// writes over it leads nobody out of it.
#[derive(Clone)]
pub struct Wire {
    pub(crate) base: *mut AtomicU64,
    pub(crate) bytes: usize,
    pub(crate) guests: usize,
    pub(crate) ways: usize,
}

// SAFETY: all that is shared are atomics, and the bytes of rings, which `ring` hands from one thread to another.
unsafe impl Send for Wire {}
// SAFETY: as above.
unsafe impl Sync for Wire {}

impl Wire {
    /// The wire in the `bytes` of memory at `base`.
    ///
    /// # Errors
    /// The memory holds something else.
    ///
    /// # Safety
    /// So much memory is there, writable for as long as this is used.
    pub unsafe fn at(base: *mut AtomicU64, bytes: usize) -> Result<Self, NotAWire> {
        let mut wire = Self { base, bytes, guests: 0, ways: 0 };
        if bytes < size_of::<Header>() || wire.header().magic.load(Relaxed) != MAGIC {
            return Err(NotAWire::Magic);
        }
        if wire.header().wire_version.load(Relaxed) != WIRE_VERSION {
            return Err(NotAWire::Version);
        }
        let (guests, ways) = (wire.header().guests.load(Relaxed), wire.header().ways.load(Relaxed));
        if guests > COUNT_MAX || ways > COUNT_MAX {
            return Err(NotAWire::Size);
        }
        (wire.guests, wire.ways) = (guests as usize, ways as usize);
        if ways_at(wire.guests) + wire.ways * size_of::<Way>() > bytes {
            return Err(NotAWire::Size);
        }
        Ok(wire)
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        // SAFETY: see `at`; the structure is of atomics.
        unsafe { &*self.base.cast() }
    }

    /// How many guests there are.
    #[must_use]
    pub const fn guests(&self) -> usize {
        self.guests
    }

    /// How many ways there are.
    #[must_use]
    pub const fn ways(&self) -> usize {
        self.ways
    }

    /// What a guest tells the others.
    ///
    /// # Panics
    /// There is no such guest.
    #[must_use]
    pub fn member(&self, guest: usize) -> &Member {
        assert!(guest < self.guests());
        // SAFETY: within the memory, as `at` has seen.
        unsafe { &*self.base.byte_add(members_at()).cast::<Member>().add(guest) }
    }

    /// The distance from what guest `from` does to what guest `to` can feel of it, nanoseconds.
    ///
    /// # Panics
    /// There is no such guest.
    #[must_use]
    pub fn distance_ns(&self, from: usize, to: usize) -> u64 {
        let guests = self.guests();
        assert!(from < guests && to < guests);
        // SAFETY: as above.
        unsafe { (*self.base.byte_add(distances_at(guests)).add(from * guests + to)).load(Relaxed) }
    }

    /// A direction of a wire.
    ///
    /// # Panics
    /// There is no such way.
    #[must_use]
    pub fn way(&self, number: usize) -> &Way {
        assert!(number < self.ways());
        // SAFETY: as above.
        unsafe { &*self.base.byte_add(ways_at(self.guests())).cast::<Way>().add(number) }
    }
}

fn members_at() -> usize {
    size_of::<Header>().next_multiple_of(CACHE_LINE_BYTES)
}

pub(crate) fn distances_at(guests: usize) -> usize {
    members_at() + guests * size_of::<Member>()
}

pub(crate) fn ways_at(guests: usize) -> usize {
    (distances_at(guests) + guests * guests * 8).next_multiple_of(CACHE_LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::laid_out;

    #[test]
    fn memory_of_something_else_is_refused() {
        let wire = laid_out(2, &[(0, 1, 5)], 4096);
        // SAFETY: laid out above.
        assert!(unsafe { Wire::at(wire.base, wire.bytes) }.is_ok());
        let rings = 4096;
        // SAFETY: as above.
        assert_eq!(unsafe { Wire::at(wire.base, wire.bytes - rings - 1) }.err(), Some(NotAWire::Size));
        wire.header().ways.store(u64::MAX, Relaxed);
        // SAFETY: as above.
        assert_eq!(unsafe { Wire::at(wire.base, wire.bytes) }.err(), Some(NotAWire::Size));
        wire.header().wire_version.store(WIRE_VERSION + 1, Relaxed);
        // SAFETY: as above.
        assert_eq!(unsafe { Wire::at(wire.base, wire.bytes) }.err(), Some(NotAWire::Version));
        wire.header().magic.store(0, Relaxed);
        // SAFETY: as above.
        assert_eq!(unsafe { Wire::at(wire.base, wire.bytes) }.err(), Some(NotAWire::Magic));
    }

    #[test]
    fn what_different_guests_write_is_in_different_cache_lines() {
        assert_eq!(size_of::<Member>() % CACHE_LINE_BYTES, 0);
        assert_eq!(size_of::<Way>() % CACHE_LINE_BYTES, 0);
    }
}
