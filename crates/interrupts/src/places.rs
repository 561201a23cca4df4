//! Places for what is remembered of some programs, which are known by their stubs.
//!
//! Numbers of stubs are the host's, and differ from run to run; what follows from what is remembered may not. So a program has
//! whatever place is free, and where none is, that of the one which was asked for longest ago: this depends on what programs do
//! alone. Who ends gives its place back, since another stub may have its number later.

use crate::{Count, Id, Word};

/// So many programs have one at most.
pub const PLACES: usize = 64;

/// Who has which place.
#[derive(Debug)]
pub struct Places {
    /// The stub of each; 0: it is free.
    stubs: [Id; PLACES],
    /// When it was asked for last, in a count of askings, and that count.
    asked: [Word; PLACES],
    askings: Word,
    /// All from here on are free.
    end: Count,
    /// That which was asked for last.
    latest: Count,
}

impl Places {
    /// All are free.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            stubs: [const { Id::new(0) }; PLACES],
            asked: [const { Word::new(0) }; PLACES],
            askings: Word::new(0),
            end: Count::new(0),
            latest: Count::new(0),
        }
    }

    /// The place of `stub`, if it has one; 0 is none.
    #[inline]
    pub fn find(&self, stub: i32) -> Option<usize> {
        if stub == 0 {
            return None;
        }
        let latest = self.latest.get();
        if self.stubs[latest].get() == stub {
            return Some(latest);
        }
        self.stubs[..self.end.get()].iter().position(|id| id.get() == stub)
    }

    /// The place of `stub`, and whether it was given to it just now.
    #[inline]
    pub fn take(&self, stub: i32) -> (usize, bool) {
        let (place, is_new) = match self.find(stub) {
            Some(place) => (place, false),
            None => (self.give(stub), true),
        };
        self.latest.set(place);
        self.askings.add(1);
        self.asked[place].set(self.askings.get());
        (place, is_new)
    }

    /// The place of `stub` is free again. Returns which it was, if it had one.
    #[inline]
    pub fn free(&self, stub: i32) -> Option<usize> {
        let place = self.find(stub)?;
        self.stubs[place].set(0);
        self.asked[place].set(0);
        Some(place)
    }

    fn give(&self, stub: i32) -> usize {
        let place = (0..PLACES).min_by_key(|&place| self.asked[place].get()).unwrap_or(0);
        self.stubs[place].set(stub);
        self.end.set(self.end.get().max(place + 1));
        place
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::{Places, PLACES};

    #[test]
    fn a_program_keeps_its_place_until_it_ends() {
        let places = Places::none();
        assert_eq!(places.find(7), None);
        assert_eq!([places.take(7), places.take(8), places.take(7)], [(0, true), (1, true), (0, false)]);
        assert_eq!((places.free(7), places.find(7), places.free(7)), (Some(0), None, None));
        assert_eq!(places.take(7), (0, true));
    }

    #[test]
    fn where_all_are_taken_the_one_that_was_asked_for_longest_ago_is_given_away() {
        let places = Places::none();
        for stub in 1..=PLACES as i32 {
            places.take(stub);
        }
        places.take(1);
        assert_eq!(places.take(1000), (1, true));
        assert_eq!((places.find(1), places.find(2)), (Some(0), None));
    }

    #[test]
    fn which_place_it_is_does_not_depend_on_the_numbers_of_stubs() {
        let of = |numbers: [i32; 3]| {
            let places = Places::none();
            let turns = [0, 1, 0, 2, 1].map(|program: usize| places.take(numbers[program]));
            turns.into_iter().chain(places.free(numbers[1]).map(|place| (place, false))).collect::<Vec<_>>()
        };
        assert_eq!(of([7, 8, 9]), of([7, 7 + PLACES as i32, 7 + 2 * PLACES as i32]));
    }
}
