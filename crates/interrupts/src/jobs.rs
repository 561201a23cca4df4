//! How long programs took for what they were woken up for, waiting included.
//!
//! With a CPU that takes no time, whatever a program does about something is done at the instant that asks for it. What it is
//! late by is the time from there until it sleeps again: the wait for other programs (`contention.rs`) and its own work. That
//! is a *job*. It goes on while the program is put aside for others, and ends when it gives the CPU up by itself, in a system
//! call. A program that computes for a minute has one job in it, however often it is interrupted; one that answers a request
//! of others each 10 ms has six thousand.

use crate::places::{Places, PLACES};
use crate::{Id, Word};

/// The jobs that are not done.
#[derive(Debug)]
pub struct Jobs {
    /// The stub whose program the kernel turned to last; 0: none since the guest was idle.
    stub: Id,
    /// The stubs whose programs have one have places, with since when each may have waited, virtual nanoseconds.
    places: Places,
    since_ns: [Word; PLACES],
}

impl Jobs {
    /// There are none.
    #[must_use]
    pub const fn none() -> Self {
        Self { stub: Id::new(0), places: Places::none(), since_ns: [const { Word::new(0) }; PLACES] }
    }

    /// The kernel turns to the program of `stub` at `now_ns`, which waits since `since_ns` at the earliest if it was woken up.
    /// `was_put_aside`: the program before it was interrupted, and has more to do. Returns how long the job took that
    /// the program before has done, if it has.
    #[inline]
    pub fn turns_to(&self, stub: i32, since_ns: u64, now_ns: u64, was_put_aside: bool) -> Option<u64> {
        let before = self.stub.swap(stub);
        if before == stub {
            return None;
        }
        let done = if was_put_aside { None } else { self.take(before, now_ns) };
        self.begin(stub, since_ns);
        done
    }

    /// The guest idles at that instant. Returns how long the job took that the last program has done, if there was one.
    #[inline]
    pub fn idles(&self, now_ns: u64) -> Option<u64> {
        let before = self.stub.swap(0);
        self.take(before, now_ns)
    }

    /// The program of `stub` asks whether something has come, again and again, and nothing has (`polling.rs`): what it was
    /// woken up for is done. Returns how long its job took, if there was one.
    #[inline]
    pub fn asks(&self, stub: i32, now_ns: u64) -> Option<u64> {
        self.take(stub, now_ns)
    }

    /// The program of `stub` does something at that instant. If it runs it may have asked before; otherwise the kernel is about
    /// to turn to it.
    #[inline]
    pub fn works(&self, stub: i32, now_ns: u64) {
        if self.stub.get() == stub {
            self.begin(stub, now_ns);
        }
    }

    /// Where the program of `stub` has no job, one begins.
    fn begin(&self, stub: i32, since_ns: u64) {
        let (place, is_new) = self.places.take(stub);
        if is_new {
            self.since_ns[place].set(since_ns);
        }
    }

    fn take(&self, stub: i32, now_ns: u64) -> Option<u64> {
        let place = self.places.free(stub)?;
        Some(now_ns.saturating_sub(self.since_ns[place].get()))
    }
}

#[cfg(test)]
mod tests {
    use super::Jobs;

    #[test]
    fn a_job_is_from_what_may_have_woken_its_program_up_until_that_sleeps() {
        let jobs = Jobs::none();
        assert_eq!(jobs.turns_to(7, 1_000, 1_010, false), None);
        assert_eq!(jobs.turns_to(7, 1_200, 1_210, false), None, "its own system call");
        assert_eq!(jobs.idles(3_000), Some(2_000));
        assert_eq!(jobs.idles(4_000), None);
    }

    #[test]
    fn a_program_that_is_put_aside_goes_on_with_its_job_later() {
        let jobs = Jobs::none();
        jobs.turns_to(7, 1_000, 1_010, false);
        assert_eq!(jobs.turns_to(8, 2_000, 2_010, true), None, "7 is not done");
        assert_eq!(jobs.turns_to(7, 2_500, 2_510, false), Some(510), "8 is");
        assert_eq!(jobs.idles(9_000), Some(8_000));
    }

    #[test]
    fn who_asks_again_and_again_has_done_its_job_until_something_comes() {
        let jobs = Jobs::none();
        jobs.turns_to(7, 1_000, 1_010, false);
        assert_eq!(jobs.asks(7, 1_500), Some(500));
        assert_eq!(jobs.asks(7, 9_000), None);
        jobs.works(7, 10_000);
        jobs.works(7, 10_500);
        assert_eq!(jobs.idles(11_000), Some(1_000));
        jobs.works(7, 12_000);
        assert_eq!(jobs.idles(13_000), None, "none runs");
    }

    #[test]
    fn many_that_are_put_aside_are_all_remembered() {
        let jobs = Jobs::none();
        for stub in 1..9 {
            let now_ns = 1_000 * stub as u64;
            assert_eq!(jobs.turns_to(stub, now_ns, now_ns, stub > 1), None);
        }
        for stub in 1..8 {
            let done = jobs.turns_to(stub, 10_000, 10_000, false);
            let before = if stub == 1 { 8 } else { stub - 1 };
            assert_eq!(done, Some(10_000 - 1_000 * before as u64));
        }
    }
}
