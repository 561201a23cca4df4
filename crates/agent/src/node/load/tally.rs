//! What a load has come to, in memory that its sender and the agent share.

use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::unistd::ftruncate;
use serde::{Deserialize, Serialize};

use crate::error::{Doing, Result};

/// A number that one process counts and another one reads.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Numbers of a load, as they are counted.
#[derive(Default)]
#[repr(C)]
pub struct Counters {
    /// Handed to the kernel of the node.
    pub sent: Counter,
    /// Not taken by that, as where the link is down.
    pub refused: Counter,
    /// Requests to which a whole answer has come that tells of no error of the server's.
    pub answered: Counter,
    /// Those to which another one came, or the end of the connection.
    pub failed: Counter,
}

/// The same, at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// See [`Counters`].
    pub sent: u64,
    /// See there.
    pub refused: u64,
    /// See there.
    pub answered: u64,
    /// See there.
    pub failed: u64,
}

/// The memory.
pub struct Tally {
    /// What it is, for who else is to have it.
    pub file: OwnedFd,
    counters: NonNull<Counters>,
}

impl Tally {
    /// New memory, in which nothing is counted yet.
    ///
    /// # Errors
    /// There is none.
    pub fn new() -> Result<Self> {
        let doing = || "make memory for a load".to_owned();
        let file = memfd_create(c"load", MemFdCreateFlag::MFD_CLOEXEC).doing(doing)?;
        ftruncate(&file, size_of::<Counters>() as i64).doing(doing)?;
        Self::of(file)
    }

    /// The same, in which so much is counted already.
    ///
    /// # Errors
    /// There is none.
    pub fn from(counts: Counts) -> Result<Self> {
        let tally = Self::new()?;
        let write = |counter: &Counter, number| counter.0.store(number, Ordering::Relaxed);
        write(&tally.sent, counts.sent);
        write(&tally.refused, counts.refused);
        write(&tally.answered, counts.answered);
        write(&tally.failed, counts.failed);
        Ok(tally)
    }

    /// Memory that another process has made.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn of(file: OwnedFd) -> Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of a new mapping.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), size_of::<Counters>(), access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(Errno::last()).doing(|| "map memory of a load".to_owned());
        }
        let counters = NonNull::new(memory.cast()).expect("a mapping is not at address 0");
        Ok(Self { file, counters })
    }

    /// What has been counted so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &Counter| counter.0.load(Ordering::Relaxed);
        Counts {
            sent: read(&self.sent),
            refused: read(&self.refused),
            answered: read(&self.answered),
            failed: read(&self.failed),
        }
    }
}

impl Deref for Tally {
    type Target = Counters;

    fn deref(&self) -> &Counters {
        // SAFETY: the mapping is as long as that, lasts as long as this, and all that is in it is atomic; zeros are counters.
        unsafe { self.counters.as_ref() }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference into the mapping any more, as all of them borrow this.
        unsafe { libc::munmap(self.counters.as_ptr().cast(), size_of::<Counters>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_counts_another_one_reads() {
        let one = Tally::new().unwrap();
        let other = Tally::of(one.file.try_clone().unwrap()).unwrap();
        other.sent.add();
        other.sent.add();
        other.failed.add();
        let counts = Counts { sent: 2, refused: 0, answered: 0, failed: 1 };
        assert_eq!(one.counts(), counts);
        assert_eq!(Tally::from(counts).unwrap().counts(), counts);
    }
}
