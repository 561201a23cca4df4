//! The mapping between what drives virtual time and virtual time itself.
//!
//! The *drive* is a clock that advances with the host's monotonic clock (wall drive) or with the CPU time that the guest
//! uses (work drive). Below it is just h.
//!
//! **Problem.** Virtual time must advance by exactly drive / TDF, for years, through any number of TDF changes, holds and
//! releases; it must never step back; and "at which instant of the drive is it virtual instant v?" must have an answer that
//! agrees with the mapping to the nanosecond, or a timer fires early and the guest, finding its deadline not reached, arms
//! it again for a nanosecond.
//!
//! **Why the obvious fails.** Floating point drifts within hours (2^53 ns are 104 days) and is not monotonic at
//! its rounding steps. Adding up scaled differences, reading by reading, loses up to a nanosecond at every reading. A
//! reciprocal in fixed point is off by a constant factor.
//!
//! **The rule.** Between two changes of pace, time is a straight line through an *anchor*: the pair of instants at which
//! the line begins. With a TDF of n/d,
//!
//! ```text
//! virtual(h) = anchor.virtual + floor((h - anchor.drive) * d / n + fraction)
//! drive(v)   = the least h with virtual(h) >= v
//! ```
//!
//! in 128-bit integers, so a line is exact however long it is. At a change the new anchor is the point reached on the old
//! line. The part of a nanosecond that `floor` left there is kept in `fraction`, in units of 2^-64 ns; this is the only
//! rounding in the system: a change of pace moves the line by less than 2^-64 ns, a billion changes by less than 10^-10 ns.
//! It is rounded up. Rounded down, a line that comes to a whole nanosecond would be read as the one before, and a run that
//! was held not show what it would have; nothing that a TDF makes is so little below a whole one that up does the same.
//! Holding is a line of slope zero; a jump over idle time is a new anchor further on.

use crate::{DriveInstant, Tdf, VirtualInstant};

/// How virtual time moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It stands still.
    Held,
    /// It advances by drive / TDF.
    Running(Tdf),
}

/// A straight piece of the mapping from the drive to virtual time, from its anchor onwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    drive: DriveInstant,
    instant: VirtualInstant,
    /// Part of a nanosecond already run beyond `instant` at the anchor, in units of 2^-64 ns.
    fraction: u64,
    /// The least remainder of the quotient that makes up a nanosecond together with `fraction`.
    carry_from: u64,
    pace: Pace,
}

impl Timeline {
    /// A line that is at `instant` when the drive is at `drive`.
    #[must_use]
    pub const fn new(drive: DriveInstant, instant: VirtualInstant, pace: Pace) -> Self {
        Self::through(drive, instant, 0, pace)
    }

    const fn through(drive: DriveInstant, instant: VirtualInstant, fraction: u64, pace: Pace) -> Self {
        let carry_from = match pace {
            Pace::Held => 0,
            Pace::Running(tdf) => {
                let missing = (1_u128 << 64) - fraction as u128;
                // At most `tdf.host()`, which no remainder reaches.
                ((missing * tdf.host() as u128 + u64::MAX as u128) >> 64) as u64
            }
        };
        Self { drive, instant, fraction, carry_from, pace }
    }

    /// How virtual time moves on this line.
    #[must_use]
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// The anchor: drive, virtual instant, and the fraction of a nanosecond (in 2^-64 ns) beyond it.
    #[must_use]
    pub const fn anchor(&self) -> (DriveInstant, VirtualInstant, u64) {
        (self.drive, self.instant, self.fraction)
    }

    /// The virtual instant at `drive`; before the anchor, the anchor's.
    #[must_use]
    pub fn virtual_at(&self, drive: DriveInstant) -> VirtualInstant {
        let Pace::Running(tdf) = self.pace else {
            return self.instant;
        };
        let elapsed = drive.ns_since(self.drive);
        // A 64-bit division costs a fifth of a 128-bit one, and serves for hours after an anchor.
        match elapsed.checked_mul(tdf.guest()) {
            Some(product) => {
                let carry = u64::from(product % tdf.host() >= self.carry_from);
                VirtualInstant::from_ns(self.instant.as_ns() + product / tdf.host() + carry)
            }
            None => self.point_at(elapsed, tdf).0,
        }
    }

    /// The first instant of the drive at which virtual time is at or past `instant`; `None` if it is never reached.
    #[must_use]
    pub fn drive_at(&self, instant: VirtualInstant) -> Option<DriveInstant> {
        if instant <= self.instant {
            return Some(self.drive);
        }
        let Pace::Running(tdf) = self.pace else {
            return None;
        };
        let ahead = u128::from(instant.as_ns() - self.instant.as_ns());
        let host = u128::from(tdf.host());
        let done = (u128::from(self.fraction) * host) >> 64;
        let elapsed = (ahead * host - done).div_ceil(u128::from(tdf.guest()));
        let ns = u128::from(self.drive.as_ns()) + elapsed;
        u64::try_from(ns).ok().map(DriveInstant::from_ns)
    }

    /// The line that continues this one from `drive` on at another pace.
    #[must_use]
    pub fn change(&self, drive: DriveInstant, pace: Pace) -> Self {
        let (instant, fraction) = match self.pace {
            Pace::Held => (self.instant, self.fraction),
            Pace::Running(tdf) => self.point_at(drive.ns_since(self.drive), tdf),
        };
        Self::through(drive.max(self.drive), instant, fraction, pace)
    }

    /// The line that is at `instant` when the drive is at `drive`, if that is ahead of this one; else this one. A held
    /// line goes nowhere.
    #[must_use]
    pub fn jump(&self, drive: DriveInstant, instant: VirtualInstant) -> Self {
        if self.pace == Pace::Held || instant <= self.virtual_at(drive) {
            return *self;
        }
        Self::new(drive, instant, self.pace)
    }

    /// The exact point `elapsed` nanoseconds after the anchor: whole nanoseconds, and the fraction beyond them.
    fn point_at(&self, elapsed: u64, tdf: Tdf) -> (VirtualInstant, u64) {
        // As in `virtual_at`.
        let (whole, rest) = elapsed.checked_mul(tdf.guest()).map_or_else(
            || {
                let (product, host) = (u128::from(elapsed) * u128::from(tdf.guest()), u128::from(tdf.host()));
                (u64::try_from(product / host).unwrap_or(u64::MAX), (product % host) as u64)
            },
            |product| (product / tdf.host(), product % tdf.host()),
        );
        let rest = (u128::from(rest) << 64).div_ceil(u128::from(tdf.host()));
        let (fraction, carry) = self.fraction.overflowing_add(rest as u64);
        let ns = self.instant.as_ns().saturating_add(whole).saturating_add(u64::from(carry));
        (VirtualInstant::from_ns(ns), fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const YEAR_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

    fn tdf() -> impl Strategy<Value = Tdf> {
        (1_u64..=1_000_000_000_000, 1_u64..=1_000_000_000_000)
            .prop_filter("within 1e-6..1e6", |(n, d)| n / d <= 1_000_000 && d / n <= 1_000_000)
            .prop_map(|(n, d)| Tdf::new(n, d).unwrap())
    }

    fn pace() -> impl Strategy<Value = Pace> {
        prop_oneof![1 => Just(Pace::Held), 4 => tdf().prop_map(Pace::Running)]
    }

    /// A line with a history: some changes of pace, each after some host time.
    fn line() -> impl Strategy<Value = Timeline> {
        (0..YEAR_NS, 0..YEAR_NS, pace(), prop::collection::vec((0_u64..1 << 40, pace()), 0..8)).prop_map(
            |(host, instant, first, changes)| {
                let mut now = host;
                let mut line = Timeline::new(DriveInstant::from_ns(host), VirtualInstant::from_ns(instant), first);
                for (after, pace) in changes {
                    now += after;
                    line = line.change(DriveInstant::from_ns(now), pace);
                }
                line
            },
        )
    }

    fn at(line: &Timeline, elapsed: u64) -> DriveInstant {
        DriveInstant::from_ns(line.anchor().0.as_ns() + elapsed)
    }

    proptest! {
        #[test]
        fn virtual_time_never_steps_back(line in line(), a in 0..YEAR_NS, b in 0..YEAR_NS) {
            let (early, late) = (a.min(b), a.max(b));
            prop_assert!(line.virtual_at(at(&line, early)) <= line.virtual_at(at(&line, late)));
        }

        #[test]
        fn drive_at_is_the_first_instant_that_reaches_a_virtual_instant(line in line(), ahead in 1..YEAR_NS / 1000) {
            let target = VirtualInstant::from_ns(line.anchor().1.as_ns() + ahead);
            match line.drive_at(target) {
                // Held, or reached after all that the host's clock counts.
                None => prop_assert!(line.virtual_at(DriveInstant::from_ns(u64::MAX)) < target),
                Some(host) => {
                    prop_assert!(line.virtual_at(host) >= target);
                    let before = DriveInstant::from_ns(host.as_ns() - 1);
                    prop_assert!(line.virtual_at(before) < target);
                }
            }
        }

        #[test]
        fn a_line_is_the_exact_quotient_over_a_century(tdf in tdf(), elapsed in 0..100 * YEAR_NS) {
            let line = Timeline::new(DriveInstant::from_ns(7), VirtualInstant::from_ns(0), Pace::Running(tdf));
            let exact = u128::from(elapsed) * u128::from(tdf.guest()) / u128::from(tdf.host());
            prop_assume!(exact <= u128::from(u64::MAX));
            let reached = line.virtual_at(DriveInstant::from_ns(7 + elapsed));
            prop_assert_eq!(u128::from(reached.as_ns()), exact);
        }

        #[test]
        fn short_and_long_arithmetic_agree(line in line(), elapsed in 0..YEAR_NS) {
            if let Pace::Running(tdf) = line.pace() {
                prop_assert_eq!(line.virtual_at(at(&line, elapsed)), line.point_at(elapsed, tdf).0);
            }
        }

        #[test]
        fn a_change_of_pace_is_continuous(line in line(), elapsed in 0..YEAR_NS, pace in pace()) {
            let now = at(&line, elapsed);
            prop_assert_eq!(line.change(now, pace).virtual_at(now), line.virtual_at(now));
        }

        #[test]
        fn changes_to_the_same_pace_do_not_drift(tdf in tdf(), steps in prop::collection::vec(1_u64..1 << 30, 1..200)) {
            let start = Timeline::new(DriveInstant::from_ns(0), VirtualInstant::from_ns(0), Pace::Running(tdf));
            let (mut now, mut line) = (0, start);
            for step in steps {
                now += step;
                line = line.change(DriveInstant::from_ns(now), Pace::Running(tdf));
            }
            let end = DriveInstant::from_ns(now + 1);
            prop_assert_eq!(line.virtual_at(end), start.virtual_at(end));
        }

        #[test]
        fn a_change_there_and_back_leaves_the_line_where_it_was(line in line(), elapsed in 0..YEAR_NS, other in pace(), later in 0..YEAR_NS) {
            let now = at(&line, elapsed);
            let back = line.change(now, other).change(now, line.pace());
            let end = DriveInstant::from_ns(now.as_ns() + later);
            prop_assert_eq!(back.virtual_at(end), line.virtual_at(end));
        }
    }

    #[test]
    fn ten_host_seconds_are_one_virtual_second_at_tdf_10() {
        let tdf = Tdf::new(10, 1).unwrap();
        let line = Timeline::new(DriveInstant::from_ns(5), VirtualInstant::from_ns(100), Pace::Running(tdf));
        assert_eq!(line.virtual_at(DriveInstant::from_ns(10_000_000_005)).as_ns(), 1_000_000_100);
        assert_eq!(line.drive_at(VirtualInstant::from_ns(1_000_000_100)), Some(DriveInstant::from_ns(10_000_000_005)));
    }

    #[test]
    fn a_jump_goes_forward_only_and_never_from_a_held_line() {
        let running = Timeline::new(DriveInstant::from_ns(0), VirtualInstant::from_ns(0), Pace::Running(Tdf::ONE));
        let now = DriveInstant::from_ns(50);
        let jumped = running.jump(now, VirtualInstant::from_ns(1000));
        assert_eq!(jumped.virtual_at(DriveInstant::from_ns(60)).as_ns(), 1010);
        assert_eq!(running.jump(now, VirtualInstant::from_ns(50)), running);
        let held = running.change(now, Pace::Held);
        assert_eq!(held.jump(now, VirtualInstant::from_ns(1000)), held);
    }

    #[test]
    fn a_held_line_stands_still_and_reaches_nothing_new() {
        let line = Timeline::new(DriveInstant::from_ns(5), VirtualInstant::from_ns(100), Pace::Held);
        assert_eq!(line.virtual_at(DriveInstant::from_ns(u64::MAX)).as_ns(), 100);
        assert_eq!(line.drive_at(VirtualInstant::from_ns(101)), None);
        assert_eq!(line.drive_at(VirtualInstant::from_ns(100)), Some(DriveInstant::from_ns(5)));
    }

    #[test]
    fn an_instant_beyond_the_host_clock_is_never_reached() {
        let tdf = Tdf::new(Tdf::TERM_MAX, 1).unwrap();
        let line = Timeline::new(DriveInstant::from_ns(0), VirtualInstant::from_ns(0), Pace::Running(tdf));
        assert_eq!(line.drive_at(VirtualInstant::from_ns(u64::MAX)), None);
    }

    #[test]
    fn a_dilation_factor_of_zero_is_refused() {
        assert_eq!(Tdf::new(0, 1), Err(crate::TdfError::Zero));
        assert_eq!(Tdf::new(1, 0), Err(crate::TdfError::Zero));
        assert_eq!(Tdf::new(Tdf::TERM_MAX + 1, 1), Err(crate::TdfError::Term));
    }
}
