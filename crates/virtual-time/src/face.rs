//! The face of a guest's clock: what its kernel reads, where that is not virtual time itself.
//!
//! **Problem.** Clocks of guests may run apart, as in *To Infinity and Beyond* (NSDI'06): a guest at twice the TDF sees half the
//! time pass, and so a network, and a CPU, twice as fast. But frames, horizons, ends and starts of processes need instants
//! on which all guests agree.
//!
//! **The rule.** Every clock keeps the run's virtual time, as ever; a guest's own is only *read* off it, through a
//! face that shows `own` nanoseconds for each `run` of virtual time. What a kernel reads, and what it asks of its timer,
//! goes through the face; nothing else does.
//!
//! ```text
//! reading(v) = floor(v * own / run)
//! instant(r) = the least v with reading(v) >= r
//! ```
//!
//! A timer set for the reading r is thus due at the first instant at which the kernel finds r reached, and at none before.

use crate::{VirtualDuration, VirtualInstant};

/// The steps in which the kernel sees its clock (TIMER_MULTIPLIER in its arch/um/kernel/time.c).
const STEP_NS: u64 = 256;

/// How a guest's clock reads: `own` nanoseconds for each `run` of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    own: u64,
    run: u64,
}

impl Face {
    /// What virtual time is itself.
    pub const PLAIN: Self = Self { own: 1, run: 1 };

    /// `own` nanoseconds for each `run` of virtual time; `None` if one of them is zero.
    #[must_use]
    pub const fn new(own: u64, run: u64) -> Option<Self> {
        if own == 0 || run == 0 {
            return None;
        }
        Some(Self { own, run })
    }

    /// What the kernel reads at a virtual instant, nanoseconds.
    #[must_use]
    pub fn reading_ns(self, instant: VirtualInstant) -> u64 {
        self.own_ns(instant.as_ns())
    }

    /// The first instant at which the kernel reads `reading_ns` or more.
    #[must_use]
    pub fn instant(self, reading_ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(scaled_up(reading_ns, self.run, self.own))
    }

    /// The first reading whose instant is not before this one: what to set a timer to that is to be due then.
    #[must_use]
    pub fn reading_from_ns(self, instant: VirtualInstant) -> u64 {
        scaled_up(instant.as_ns(), self.own, self.run)
    }

    /// What `ns` of virtual time are on this clock, whole nanoseconds of it.
    #[must_use]
    pub fn own_ns(self, ns: u64) -> u64 {
        scaled(ns, self.own, self.run)
    }

    /// What so much in each second of virtual time is in each second of this clock, rounded down, but never nothing.
    #[must_use]
    pub fn own_rate(self, per_s: u64) -> u64 {
        scaled(per_s, self.run, self.own).max(1)
    }

    /// The deadline that a kernel means which asks for `after_ns` of its clock when it was shown the instant `shown`: when it
    /// reads the first step of its clock at which it finds that over. At an instant between two steps it would find its
    /// deadline not reached, and set its timer again, for a microsecond at least.
    #[must_use]
    pub fn deadline_meant(self, shown: VirtualInstant, after_ns: u64) -> VirtualInstant {
        let seen_ns = self.reading_ns(shown) / STEP_NS * STEP_NS;
        self.instant(seen_ns.saturating_add(after_ns).div_ceil(STEP_NS).saturating_mul(STEP_NS))
    }

    /// What a span of this clock, such as a timer's interval, is in virtual time.
    #[must_use]
    pub fn span(self, own_ns: u64) -> VirtualDuration {
        VirtualDuration::from_ns(scaled_up(own_ns, self.run, self.own))
    }
}

/// `ns * by / of` in whole numbers; the end of time where it is beyond.
fn scaled(ns: u64, by: u64, of: u64) -> u64 {
    if by == of {
        return ns;
    }
    u64::try_from(u128::from(ns) * u128::from(by) / u128::from(of)).unwrap_or(u64::MAX)
}

/// The same, rounded up.
fn scaled_up(ns: u64, by: u64, of: u64) -> u64 {
    if by == of {
        return ns;
    }
    u64::try_from((u128::from(ns) * u128::from(by)).div_ceil(u128::from(of))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Half a year, of which the fastest face here makes 500 years. Readings end after 584.
    const LONG_NS: u64 = 365 * 12 * 3600 * 1_000_000_000;

    fn instant(ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(ns)
    }

    fn face() -> impl Strategy<Value = Face> {
        (1_u64..=1000, 1_u64..=1000).prop_map(|(own, run)| Face::new(own, run).unwrap())
    }

    proptest! {
        #[test]
        fn the_instant_of_a_reading_is_the_first_at_which_it_is_read(face in face(), reading in 1..LONG_NS) {
            let first = face.instant(reading);
            prop_assert!(face.reading_ns(first) >= reading);
            prop_assert!(face.reading_ns(instant(first.as_ns() - 1)) < reading);
        }

        #[test]
        fn a_timer_that_is_set_for_an_instant_is_due_within_a_nanosecond_of_the_face_and_not_before(face in face(), ns in 1..LONG_NS) {
            let reading = face.reading_from_ns(instant(ns));
            prop_assert!(face.instant(reading) >= instant(ns));
            prop_assert!(face.instant(reading).as_ns() <= ns + face.instant(1).as_ns());
        }

        #[test]
        fn a_reading_never_steps_back(face in face(), a in 0..LONG_NS, b in 0..LONG_NS) {
            prop_assert!(face.reading_ns(instant(a.min(b))) <= face.reading_ns(instant(a.max(b))));
        }

        #[test]
        fn a_kernel_finds_its_deadline_reached_at_the_step_that_it_means_and_not_at_the_one_before(
            face in face(), shown in 0..LONG_NS, after in 1_u64..1 << 40,
        ) {
            let seen = |instant: VirtualInstant| face.reading_ns(instant) / STEP_NS * STEP_NS;
            let meant = face.deadline_meant(instant(shown), after);
            prop_assert!(seen(meant) >= seen(instant(shown)) + after);
            prop_assert!(seen(instant(meant.as_ns() - 1)) < seen(instant(shown)) + after);
        }
    }

    #[test]
    fn a_clock_at_half_the_rate_reads_half_of_virtual_time() {
        let half = Face::new(5, 10).unwrap();
        assert_eq!(half.reading_ns(instant(1_000_000_001)), 500_000_000);
        assert_eq!(half.instant(500_000_000), instant(1_000_000_000));
        assert_eq!((half.own_ns(20_000_000), half.own_rate(100)), (10_000_000, 200));
    }

    #[test]
    fn a_plain_face_shows_virtual_time_to_its_end() {
        for ns in [0, 1, 12_345_678_901, u64::MAX] {
            assert_eq!(Face::PLAIN.reading_ns(instant(ns)), ns);
            assert_eq!(Face::PLAIN.instant(ns), instant(ns));
        }
        assert_eq!(Face::new(1, 2).unwrap().instant(u64::MAX), VirtualInstant::NEVER);
        assert_eq!(Face::new(0, 1), None);
    }
}
