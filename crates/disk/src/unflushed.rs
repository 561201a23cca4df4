//! What a disk with a volatile cache has taken and would lose with its power.
//!
//! A disk may say that a write is done when it is in its cache; only what was written before a flush that is done has to
//! survive a loss of power. Here the data are on their way to the image as soon as they come, so a loss is undone writing:
//! before each write, what was there is noted, sector by sector, and at the loss the notes are written back, the latest
//! first. Notes of what a flush has covered are void.
//!
//! The notes are a ring, as large as the cache: a cache that is full lets go of what it has had for longest, which then is
//! on the medium. That is the worst that such a disk may do. In a loss that is *torn*, each part of the medium is lost or
//! is what it was written last, since a cache writes out its contents in no order that anybody may rely on. Parts are as
//! large as the physical sectors of current disks, which are written as a whole: file systems rely on that for their blocks
//! (jbd2 takes a commit block of which one half is new for a corrupt journal).

use arrayvec::ArrayVec;

use crate::draw::mixed;
use crate::request::{REQUESTS_MAX, SECTOR_BYTES};

/// What is written as a whole.
const PART_BYTES: u64 = 4096;

/// What a sector was before it was written. All zero is a valid note, so memory for them needs no first value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Note {
    sector: u64,
    before: [u8; SECTOR_BYTES as usize],
}

/// The notes since the last flush that is done.
pub struct Unflushed<'a> {
    notes: &'a mut [Note],
    /// Sectors that were written so far, and how many of them, the first ones, no loss takes away.
    noted: u64,
    safe: u64,
    /// Flushes in flight, by their tags, and how many sectors had been written before each.
    flushes: ArrayVec<(u64, u64), REQUESTS_MAX>,
    /// None: all is lost.
    torn_seed: Option<u64>,
    losses: u64,
}

impl<'a> Unflushed<'a> {
    /// A cache of so many sectors as there is room for notes, with nothing in it.
    pub fn new(notes: &'a mut [Note], torn_seed: Option<u64>) -> Self {
        Self { notes, noted: 0, safe: 0, flushes: ArrayVec::new(), torn_seed, losses: 0 }
    }

    /// Notes what was there where whole sectors are about to be written.
    pub fn note(&mut self, offset_bytes: u64, before: &[u8]) {
        for (sector, bytes) in (offset_bytes / SECTOR_BYTES..).zip(before.chunks_exact(SECTOR_BYTES as usize)) {
            let place = (self.noted % self.notes.len() as u64) as usize;
            self.notes[place].sector = sector;
            self.notes[place].before.copy_from_slice(bytes);
            self.noted += 1;
        }
    }

    /// A flush begins.
    pub fn flush(&mut self, tag: u64) {
        self.flushes.push((tag, self.noted));
    }

    /// A request is done; if it is a flush, what was written before it is safe.
    pub fn done(&mut self, tag: u64) {
        if let Some(place) = self.flushes.iter().position(|&(other, _)| other == tag) {
            let (_, covered) = self.flushes.swap_remove(place);
            self.safe = self.safe.max(covered);
        }
    }

    /// The power is gone: calls `restore` with each sector's offset and what it is from now on, in the order in which that
    /// has to be written.
    pub fn lose(&mut self, mut restore: impl FnMut(u64, &[u8])) {
        let oldest = self.safe.max(self.noted.saturating_sub(self.notes.len() as u64));
        for number in (oldest..self.noted).rev() {
            let note = &self.notes[(number % self.notes.len() as u64) as usize];
            if self.torn_seed.map_or(true, |seed| is_drawn(seed, self.losses, note.sector * SECTOR_BYTES / PART_BYTES))
            {
                restore(note.sector * SECTOR_BYTES, &note.before);
            }
        }
        self.losses += 1;
        self.keep();
    }

    /// All that was written is safe.
    pub fn keep(&mut self) {
        self.safe = self.noted;
        self.flushes.clear();
    }
}

/// A coin for a part of the medium at a loss.
fn is_drawn(seed: u64, loss: u64, part: u64) -> bool {
    mixed(mixed(seed ^ loss) ^ part) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec;
    use std::vec::Vec;

    const SECTORS: usize = 8;

    fn room(sectors: usize) -> Vec<Note> {
        vec![Note { sector: 0, before: [0; SECTOR_BYTES as usize] }; sectors]
    }

    /// A disk of a few sectors, each with one value, whose cache may be lost.
    struct Medium<'a> {
        sectors: [u8; SECTORS],
        unflushed: Unflushed<'a>,
    }

    impl Medium<'_> {
        fn write(&mut self, sector: usize, value: u8) {
            let before = [self.sectors[sector]; SECTOR_BYTES as usize];
            self.unflushed.note(sector as u64 * SECTOR_BYTES, &before);
            self.sectors[sector] = value;
        }

        fn lose(&mut self) {
            let sectors = &mut self.sectors;
            self.unflushed.lose(|offset, bytes| sectors[(offset / SECTOR_BYTES) as usize] = bytes[0]);
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(usize, u8),
        Flush,
        Done,
        Lose,
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..SECTORS, any::<u8>()).prop_map(|(sector, value)| Step::Write(sector, value)),
            1 => Just(Step::Flush),
            1 => Just(Step::Done),
            1 => Just(Step::Lose),
        ]
    }

    proptest! {
        #[test]
        fn a_loss_leaves_what_was_there_when_the_latest_flush_that_is_done_began(
            steps in proptest::collection::vec(any_step(), 0..60),
            torn_seed in proptest::option::of(any::<u64>()),
        ) {
            let mut notes = room(100);
            let mut medium = Medium { sectors: [0; SECTORS], unflushed: Unflushed::new(&mut notes, torn_seed) };
            let (mut safe, mut in_flight): ([u8; SECTORS], Vec<(u64, [u8; SECTORS])>) = ([0; SECTORS], Vec::new());
            for (tag, &step) in (0..).zip(&steps) {
                match step {
                    Step::Write(sector, value) => medium.write(sector, value),
                    Step::Flush => {
                        medium.unflushed.flush(tag);
                        in_flight.push((tag, medium.sectors));
                    }
                    Step::Done => {
                        if let Some((tag, then)) = (!in_flight.is_empty()).then(|| in_flight.remove(0)) {
                            medium.unflushed.done(tag);
                            safe = then;
                        }
                    }
                    Step::Lose => {
                        let written = medium.sectors;
                        medium.lose();
                        for sector in 0..SECTORS {
                            let is_lost = medium.sectors[sector] == safe[sector];
                            let is_kept = torn_seed.is_some() && medium.sectors[sector] == written[sector];
                            prop_assert!(is_lost || is_kept, "sector {sector}");
                        }
                        safe = medium.sectors;
                        in_flight.clear();
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_cache_loses_only_what_it_holds() {
        let mut notes = room(3);
        let mut medium = Medium { sectors: [0; SECTORS], unflushed: Unflushed::new(&mut notes, None) };
        (0..5).for_each(|sector| medium.write(sector, 9));
        medium.lose();
        assert_eq!(medium.sectors, [9, 9, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_torn_loss_takes_some_parts_and_others_at_the_next_loss_or_with_another_seed() {
        let lost = |seed: u64, losses: u64| -> BTreeSet<u64> {
            (0..1000).filter(|&part| is_drawn(seed, losses, part)).collect()
        };
        assert!((400..600).contains(&lost(1, 0).len()));
        assert_ne!(lost(1, 0), lost(1, 1));
        assert_ne!(lost(1, 0), lost(2, 0));
    }

    #[test]
    fn the_sectors_of_a_part_are_lost_together() {
        for seed in 0..16 {
            let mut notes = room(100);
            let mut unflushed = Unflushed::new(&mut notes, Some(seed));
            unflushed.note(0, &[0; 4 * PART_BYTES as usize]);
            let mut lost = Vec::new();
            unflushed.lose(|offset, _| lost.push(offset / PART_BYTES));
            assert!((0..4).all(|part| [0, 8].contains(&lost.iter().filter(|&&other| other == part).count())));
        }
    }

    #[test]
    fn what_is_kept_is_not_lost_later() {
        let mut notes = room(8);
        let mut medium = Medium { sectors: [0; SECTORS], unflushed: Unflushed::new(&mut notes, None) };
        medium.write(0, 1);
        medium.unflushed.keep();
        medium.write(1, 1);
        medium.lose();
        assert_eq!(medium.sectors[..2], [1, 0]);
    }
}
