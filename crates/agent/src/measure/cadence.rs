//! When samples are due: at every multiple of a period since virtual 0. Reads no clock.
//!
//! Who samples goes before the programs of the nodes. Where samples take longer than there is between two of them, it would
//! go on without a pause, and no program would ever begin or end. So it rests then for as long as it took.

/// A sequence of instants, in virtual nanoseconds since the run's virtual 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Cadence {
    period_ns: i64,
    next_ns: i64,
}

/// An instant that has come.
#[derive(Debug, PartialEq, Eq)]
pub struct Tick {
    /// The instant.
    pub t_ns: i64,
    /// How long ago it was.
    pub late_ns: i64,
    /// Instants before it at which nothing was taken, because their successors had come, too.
    pub missed: i64,
}

impl Cadence {
    /// Instants that are `period_ns` apart; the first is 0.
    pub fn new(period_ns: i64) -> Self {
        Self { period_ns, next_ns: 0 }
    }

    /// The instant that is waited for.
    pub fn next_ns(&self) -> i64 {
        self.next_ns
    }

    /// Waits for the first instant that is later than `now_ns`; those before are somebody else's.
    pub fn skip(&mut self, now_ns: i64) {
        self.next_ns = self.next_ns.max(now_ns - now_ns.rem_euclid(self.period_ns) + self.period_ns);
    }

    /// Takes the latest instant that has come at `now_ns`, and counts those before it as missed.
    pub fn take(&mut self, now_ns: i64) -> Option<Tick> {
        if now_ns < self.next_ns {
            return None;
        }
        let late_ns = (now_ns - self.next_ns) % self.period_ns;
        let t_ns = now_ns - late_ns;
        let missed = (t_ns - self.next_ns) / self.period_ns;
        self.next_ns = t_ns.saturating_add(self.period_ns);
        Some(Tick { t_ns, late_ns, missed })
    }
}

/// When to look again whether a sample is due, after one that took from `begun_ns` to `done_ns`; the next is due at `next_ns`.
pub fn looks_again_ns(begun_ns: i64, done_ns: i64, next_ns: i64) -> i64 {
    if next_ns > done_ns {
        next_ns
    } else {
        done_ns.saturating_add(done_ns - begun_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_take_longer_than_there_is_leave_as_much_for_others() {
        assert_eq!(looks_again_ns(20, 29, 30), 30);
        assert_eq!(looks_again_ns(20, 30, 30), 40);
        assert_eq!(looks_again_ns(20, 75, 30), 130);
    }

    #[test]
    fn instants_are_multiples_of_the_period_and_each_comes_once() {
        let mut cadence = Cadence::new(10);
        assert_eq!(cadence.take(-1), None);
        assert_eq!(cadence.take(0), Some(Tick { t_ns: 0, late_ns: 0, missed: 0 }));
        assert_eq!(cadence.take(9), None);
        assert_eq!(cadence.next_ns(), 10);
        assert_eq!(cadence.take(13), Some(Tick { t_ns: 10, late_ns: 3, missed: 0 }));
    }

    #[test]
    fn what_somebody_else_has_taken_is_neither_taken_nor_missed() {
        for (now_ns, next_ns) in [(29, 30), (30, 40), (31, 40)] {
            let mut cadence = Cadence::new(10);
            cadence.skip(now_ns);
            assert_eq!(cadence.take(now_ns), None);
            assert_eq!(cadence.take(next_ns), Some(Tick { t_ns: next_ns, late_ns: 0, missed: 0 }));
        }
    }

    #[test]
    fn what_was_not_taken_in_time_is_counted_and_the_next_is_again_on_the_grid() {
        let mut cadence = Cadence::new(10);
        assert_eq!(cadence.take(35), Some(Tick { t_ns: 30, late_ns: 5, missed: 3 }));
        assert_eq!(cadence.take(40), Some(Tick { t_ns: 40, late_ns: 0, missed: 0 }));
    }
}
