//! When the programs that a lab starts begin to talk to others, and for how long each of them waits for the CPU from then on.
//!
//! A stretch in which programs wait (`contention.rs`) bounds for how long any of them does, and where several start it is one
//! stretch for all: 50 ms, in which each had its turn after 10. By how much later one began than another is known when it is
//! known when each began; and who has had the CPU since a stretch began has waited since then at most.
//!
//! **Who.** One that is told, and which first connects, sends to an address, or accepts who connects. What it has others do that it
//! starts itself is not known, nor what one of its threads waits while another one runs, nor what becomes of one that executes
//! another: such programs are left out, and who asks is told that nothing is known of them.

use crate::{Count, Flag, Id, Stretch, Word};

/// So many programs are watched.
pub const TALKERS_MAX: usize = 64;

/// The programs that are watched.
#[derive(Debug)]
pub struct Talkers {
    /// Their stubs, by their places; 0: it has ended, or is left out.
    stubs: [Id; TALKERS_MAX],
    /// Whether they have begun.
    talk: [Flag; TALKERS_MAX],
    /// When each had the CPU last, virtual nanoseconds.
    left_ns: [Word; TALKERS_MAX],
    /// How many places were given.
    given: Count,
    /// The stub whose program the kernel turned to last.
    latest: Id,
}

impl Talkers {
    /// There are none.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            stubs: [const { Id::new(0) }; TALKERS_MAX],
            talk: [const { Flag::new(false) }; TALKERS_MAX],
            left_ns: [const { Word::new(0) }; TALKERS_MAX],
            given: Count::new(0),
            latest: Id::new(0),
        }
    }

    /// The program of `stub` is watched from now on. Returns its place, if there is one.
    pub fn watch(&self, stub: i32) -> Option<usize> {
        let place = self.given.get();
        self.stubs.get(place)?.set(stub);
        self.given.set(place + 1);
        Some(place)
    }

    /// The place of `stub`, whose program is watched.
    #[must_use]
    pub fn place_of(&self, stub: i32) -> Option<usize> {
        if stub == 0 {
            return None;
        }
        self.stubs[..self.given.get()].iter().position(|each| each.get() == stub)
    }

    /// The program at a place talks. Returns whether it begins to.
    pub fn talks(&self, place: usize) -> bool {
        !self.talk[place].swap(true)
    }

    /// The program at a place has ended, or is left out.
    pub fn leave(&self, place: usize) {
        self.stubs[place].set(0);
    }

    /// The kernel turns to the program of `stub` at `now_ns`. It waits since `since_ns` at the earliest, and the program that ran
    /// before entered the kernel at `entered_ns`. Returns for how long it may have waited, if it is one that talks.
    #[inline]
    pub fn turns_to(&self, stub: i32, since_ns: u64, entered_ns: u64, now_ns: u64) -> Option<Stretch> {
        let before = self.latest.swap(stub);
        if before == stub || self.given.get() == 0 {
            return None;
        }
        if let Some(place) = self.place_of(before) {
            self.left_ns[place].set(entered_ns);
        }
        let place = self.place_of(stub).filter(|&place| self.talk[place].get())?;
        let ns = now_ns.saturating_sub(since_ns.max(self.left_ns[place].get()));
        Some(Stretch { ns, end_ns: now_ns, interrupts: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::{Talkers, TALKERS_MAX};

    fn waited(talkers: &Talkers, stub: i32, since_ns: u64, now_ns: u64) -> Option<u64> {
        talkers.turns_to(stub, since_ns, now_ns, now_ns).map(|stretch| {
            assert_eq!(stretch.end_ns, now_ns);
            stretch.ns
        })
    }

    /// 7, which talks, and 8, which is watched.
    fn two() -> Talkers {
        let talkers = Talkers::none();
        assert_eq!(talkers.watch(7), Some(0));
        assert_eq!(talkers.watch(8), Some(1));
        assert!(talkers.talks(0));
        talkers
    }

    #[test]
    fn who_talks_has_waited_since_it_had_the_cpu_or_a_stretch_began() {
        let talkers = two();
        assert_eq!(waited(&talkers, 7, 100, 150), Some(50), "it was asleep before");
        assert_eq!(waited(&talkers, 7, 100, 170), None, "nobody was in between");
        assert_eq!(waited(&talkers, 9, 100, 200), None, "nobody watches it");
        assert_eq!(waited(&talkers, 7, 100, 230), Some(30));
        assert_eq!(waited(&talkers, 9, 300, 300), None);
        assert_eq!(waited(&talkers, 7, 300, 310), Some(10), "another stretch");
    }

    #[test]
    fn who_had_the_cpu_before_waits_from_when_it_entered_the_kernel() {
        let talkers = two();
        waited(&talkers, 7, 100, 150);
        assert_eq!(talkers.turns_to(9, 100, 160, 200), None, "the kernel worked for 40");
        assert_eq!(waited(&talkers, 7, 100, 230), Some(70));
    }

    #[test]
    fn who_has_not_begun_to_talk_is_late_by_its_begin_and_waits_from_then_on() {
        let talkers = two();
        assert_eq!(waited(&talkers, 8, 100, 150), None);
        assert!(talkers.talks(1));
        assert!(!talkers.talks(1), "it has before");
        waited(&talkers, 9, 100, 160);
        assert_eq!(waited(&talkers, 8, 100, 200), Some(40));
    }

    #[test]
    fn who_has_ended_is_nobody_whoever_has_its_number() {
        let talkers = two();
        talkers.leave(0);
        assert_eq!(talkers.place_of(7), None);
        assert_eq!(waited(&talkers, 7, 100, 150), None);
        assert_eq!(talkers.place_of(0), None, "nor is who has no stub");
    }

    #[test]
    fn so_many_are_watched_and_no_more() {
        let talkers = Talkers::none();
        for stub in 1..=TALKERS_MAX {
            assert_eq!(talkers.watch(stub as i32), Some(stub - 1));
        }
        assert_eq!(talkers.watch(99), None);
    }
}
