//! What keeping to the others' time costs is not the guest's work.
//!
//! Work is the CPU time of the kernel's process and of its stubs. On the shortest links a guest agrees with others every few
//! microseconds: were that charged, its CPU would be the slower the shorter its links are. What happens between two readings
//! of the clock is taken back at the second. But while user code runs, the host timer interrupts the kernel's sleep for it,
//! and most of what that costs, the switches between the two processes and the signal, is before the first line of the
//! handler and after its last. So from the entry of such a handler on, all that the kernel's own process uses is put *aside*,
//! until it is interrupted again or turns to the stub. One switch too few and one too many are left out that way.
//!
//! A handler that finds something for the kernel to do is work, as it would be without others. What the interruption costs
//! the stub is charged.

use crate::Word;

/// The part of the kernel's CPU time that is aside. Instants are that CPU time, nanoseconds, and never 0.
#[derive(Debug)]
pub struct Aside {
    /// The instant from which on it is aside; 0: it is work.
    since_ns: Word,
}

impl Aside {
    /// Nothing is.
    #[must_use]
    pub const fn none() -> Self {
        Self { since_ns: Word::new(0) }
    }

    /// Takes what is used from `now_ns` on as aside. Returns how much was until now, which is to be left out of work.
    #[inline]
    pub fn begin(&self, now_ns: u64) -> Option<u64> {
        span_ns(self.since_ns.swap(now_ns), || now_ns)
    }

    /// The kernel turns to the stub: returns how much was aside, which is to be left out of work. `now_ns` is only asked if
    /// there is some.
    #[inline]
    pub fn end(&self, now_ns: impl FnOnce() -> u64) -> Option<u64> {
        span_ns(self.since_ns.swap(0), now_ns)
    }

    /// The kernel has something to do: what is aside is work.
    #[inline]
    pub fn give_back(&self) {
        self.since_ns.set(0);
    }

    /// The last `ns` were taken back from work already.
    #[inline]
    pub fn took_back(&self, ns: u64) {
        let since_ns = self.since_ns.get();
        if since_ns != 0 {
            self.since_ns.set(since_ns + ns);
        }
    }
}

fn span_ns(since_ns: u64, now_ns: impl FnOnce() -> u64) -> Option<u64> {
    (since_ns != 0).then(|| now_ns().saturating_sub(since_ns))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Aside;

    #[test]
    fn what_is_used_from_a_begin_to_the_end_is_left_out() {
        let aside = Aside::none();
        assert_eq!(aside.begin(100), None);
        assert_eq!(aside.end(|| 130), Some(30));
        assert_eq!(aside.end(|| unreachable!()), None);
    }

    #[test]
    fn a_second_begin_settles_the_first() {
        let aside = Aside::none();
        aside.begin(100);
        assert_eq!(aside.begin(110), Some(10));
        assert_eq!(aside.end(|| 115), Some(5));
    }

    #[test]
    fn what_the_kernel_has_to_do_is_work_after_all() {
        let aside = Aside::none();
        aside.begin(100);
        aside.give_back();
        assert_eq!(aside.end(|| 130), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Begin,
        End,
        GiveBack,
        /// So many hundredths of the time since the step before are taken back.
        TakeBack(u64),
    }

    fn steps() -> impl Strategy<Value = std::vec::Vec<(u64, Step)>> {
        let step = prop_oneof![
            Just(Step::Begin),
            Just(Step::End),
            Just(Step::GiveBack),
            (0_u64..=100).prop_map(Step::TakeBack)
        ];
        prop::collection::vec((0_u64..1_000_000, step), 0..100)
    }

    proptest! {
        #[test]
        fn nothing_is_left_out_twice(steps in steps()) {
            let aside = Aside::none();
            let (mut now_ns, mut not_work_ns) = (1, 0);
            for (later_ns, step) in steps {
                now_ns += later_ns;
                not_work_ns += match step {
                    Step::Begin => aside.begin(now_ns),
                    Step::End => aside.end(|| now_ns),
                    Step::GiveBack => { aside.give_back(); None }
                    Step::TakeBack(hundredths) => {
                        let ns = later_ns * hundredths / 100;
                        aside.took_back(ns);
                        Some(ns)
                    }
                }.unwrap_or(0);
                prop_assert!(not_work_ns < now_ns);
            }
        }
    }
}
