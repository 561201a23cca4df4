//! What is wrong with a disk for a while: which of its requests fail, come back changed, or take longer.
//!
//! What is drawn follows from a seed and the order of requests. A request is drawn for once, whatever it is, so that what
//! becomes of it does not depend on what others are.

use crate::draw::Stream;
use crate::request::Operation;

/// A fault of a disk. What is 0 does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The seed of all that is drawn.
    pub seed: u64,
    /// The share of reads and writes that fail, in parts of 2^32.
    pub errors: u64,
    /// The share of reads in which a bit is another than on the medium, in parts of 2^32.
    pub corrupt: u64,
    /// How much longer each request takes that comes while the fault lasts.
    pub delay_ns: u64,
    /// The instant up to which nothing is answered.
    pub stalled_until_ns: u64,
    /// Which writes fail: all, if this is 1, as of a disk that may only be read; if it is 2, for want of room.
    pub refusal: u64,
    /// The instant at which it is over; `u64::MAX`: none is known.
    pub until_ns: u64,
}

/// How many words describe a fault.
pub const WORDS: usize = 7;

impl Fault {
    /// A disk with which nothing is wrong.
    pub const NONE: Self =
        Self { seed: 0, errors: 0, corrupt: 0, delay_ns: 0, stalled_until_ns: 0, refusal: 0, until_ns: 0 };

    /// The fault that is described by its fields, in their order.
    #[must_use]
    pub fn of(words: [u64; WORDS]) -> Self {
        let [seed, errors, corrupt, delay_ns, stalled_until_ns, refusal, until_ns] = words;
        Self { seed, errors, corrupt, delay_ns, stalled_until_ns, refusal, until_ns }
    }

    /// Its fields, in their order.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let Self { seed, errors, corrupt, delay_ns, stalled_until_ns, refusal, until_ns } = *self;
        [seed, errors, corrupt, delay_ns, stalled_until_ns, refusal, until_ns]
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// What was asked for.
    Done,
    /// It fails.
    Failed,
    /// It fails for want of room.
    Full,
    /// It is done, and one of its bits is wrong: the one of this number, modulo those that there are.
    Corrupted(u64),
}

/// The fault of a disk, and the chance in it.
pub struct Faulty {
    fault: Fault,
    chance: Stream,
}

impl Faulty {
    /// A disk with a fault.
    #[must_use]
    pub const fn new(fault: Fault) -> Self {
        Self { fault, chance: Stream::new(fault.seed) }
    }

    /// How much longer a request takes that comes at `now_ns`.
    #[must_use]
    pub fn delay_ns(&self, now_ns: u64) -> u64 {
        if now_ns < self.fault.until_ns {
            self.fault.delay_ns
        } else {
            0
        }
    }

    /// What becomes of the next request, which comes at `now_ns`. A flush that finds nothing to write cannot fail.
    pub fn fate(&mut self, now_ns: u64, operation: Operation) -> Fate {
        if now_ns >= self.fault.until_ns {
            return Fate::Done;
        }
        let (errs, corrupts, bit) = (self.chance.next() >> 32, self.chance.next() >> 32, self.chance.next());
        match (operation, self.fault.refusal) {
            (Operation::Flush, _) => Fate::Done,
            (Operation::Write | Operation::Discard, 1) => Fate::Failed,
            (Operation::Write, 2) => Fate::Full,
            _ if errs < self.fault.errors => Fate::Failed,
            (Operation::Read, _) if corrupts < self.fault.corrupt => Fate::Corrupted(bit),
            _ => Fate::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const LASTING: Fault = Fault { seed: 1, until_ns: 1000, ..Fault::NONE };

    fn fates(fault: Fault, operation: Operation) -> Vec<Fate> {
        let mut faulty = Faulty::new(fault);
        (0..1000).map(|now_ns| faulty.fate(now_ns, operation)).collect()
    }

    fn share(fates: &[Fate], of: impl Fn(&Fate) -> bool) -> f64 {
        fates.iter().filter(|fate| of(fate)).count() as f64 / fates.len() as f64
    }

    #[test]
    fn so_many_requests_fail_as_it_says_the_same_with_the_same_seed() {
        let fault = Fault { errors: (1 << 32) / 4, ..LASTING };
        for operation in [Operation::Read, Operation::Write] {
            let found = fates(fault, operation);
            assert!((0.2..0.3).contains(&share(&found, |fate| *fate == Fate::Failed)));
            assert_eq!(found, fates(fault, operation));
            assert_ne!(found, fates(Fault { seed: 2, ..fault }, operation));
        }
        assert!(fates(Fault { errors: 1 << 32, ..fault }, Operation::Read).iter().all(|fate| *fate == Fate::Failed));
    }

    #[test]
    fn reads_alone_are_corrupted() {
        let fault = Fault { corrupt: (1 << 32) / 2, ..LASTING };
        let is_corrupted = |fate: &Fate| matches!(fate, Fate::Corrupted(_));
        assert!((0.45..0.55).contains(&share(&fates(fault, Operation::Read), is_corrupted)));
        assert!(fates(fault, Operation::Write).iter().all(|fate| *fate == Fate::Done));
    }

    #[test]
    fn a_disk_that_is_full_or_may_only_be_read_refuses_writes_and_nothing_else() {
        for (refusal, fate) in [(1, Fate::Failed), (2, Fate::Full)] {
            let fault = Fault { refusal, ..LASTING };
            assert!(fates(fault, Operation::Write).iter().all(|other| *other == fate));
            assert!(fates(fault, Operation::Read).iter().all(|other| *other == Fate::Done));
        }
    }

    #[test]
    fn words_describe_it() {
        let fault = Fault { seed: 1, errors: 2, corrupt: 3, delay_ns: 4, stalled_until_ns: 5, refusal: 6, until_ns: 7 };
        assert_eq!(Fault::of(fault.words()), fault);
    }

    #[test]
    fn it_is_over_at_its_end() {
        let mut faulty = Faulty::new(Fault { errors: 1 << 32, delay_ns: 7, ..LASTING });
        assert_eq!((faulty.fate(999, Operation::Read), faulty.delay_ns(999)), (Fate::Failed, 7));
        assert_eq!((faulty.fate(1000, Operation::Read), faulty.delay_ns(1000)), (Fate::Done, 0));
    }
}
