//! On the work drive interrupts are served at their instants, and virtual time stands meanwhile.
//!
//! **Problem.** Delays, queues and traces of links, and arrivals from other guests, are interrupts. If a handler's CPU time
//! passed as it is used, a packet would leave its link as much later as the kernel takes from its timer to its queue, ten
//! microseconds where caches are cold. And a deadline that is reached while user code runs, or kernel code that does not
//! read its clock, is noticed some microseconds late. Links do neither, and hardware interrupts what runs.
//!
//! **The rule.** An interrupt is served at its deadline, or at the last instant that was *shown*, to the guest or to others,
//! whichever is later. That instant is all that the kernel sees until the handler has returned; where the
//! guest was idle, until it idles again or lets user code run, since an idle kernel only notes an alarm. Then the clock is
//! where the drive is. So nothing that anybody has seen is contradicted, and the CPU does the same work in the same virtual
//! time as ever: what interrupts cost delays the programs, and the interrupts that come once the kernel has seen that.
//!
//! **Lateness** is how far the drive was past a deadline when it was noticed, whatever instant is shown: where the CPU has more
//! to do than it can, all instants of links are of little worth, and the verdict has to see it.
//!
//! What runs when an interrupt is noticed has thus run a little before it and not after, by no more than the host timer is
//! late or the kernel does not look.
//!
//! **What bounds it.** A kernel that waited for time to pass would wait for ever, and interrupts that are more than the CPU
//! can do would all be served at their instants, at the programs' expense. So what the kernel does about interrupts brings
//! the drive at most [`STANDS_WORK_NS`] of work before what is shown, which is longer than a packet mostly takes.
//!
//! **What it costs.** A look at the drive is most of what a reading costs, and while the clock stands it shows nothing
//! new. So only every fourth reading looks; the clock may stand for three readings longer than that bound, which are a
//! few microseconds.

use virtual_time::{VirtualDuration, VirtualInstant};

use crate::Word;

/// Work about interrupts by which what is shown is behind the drive at most, nanoseconds of the host.
pub const STANDS_WORK_NS: u64 = 50_000;

/// How many readings in a row do not look at the drive while the clock stands; see above.
const UNSEEN_READINGS: u64 = 3;

/// What is shown of the clock. All instants are virtual, in nanoseconds.
#[derive(Debug)]
pub struct Standing {
    /// The instant at which the clock stands, and up to which one of its drive. It goes when the latter is 0.
    at_ns: Word,
    until_ns: Word,
    /// The last instant that was shown.
    shown_ns: Word,
    /// How many readings more will show it without a look at the drive.
    unseen: Word,
    /// Where the drive was when a handler returned last, as an instant of the clock.
    served_ns: Word,
}

impl Standing {
    /// A clock that goes, of which nothing was shown.
    #[must_use]
    pub const fn going() -> Self {
        Self {
            at_ns: Word::new(0),
            until_ns: Word::new(0),
            shown_ns: Word::new(0),
            unseen: Word::new(0),
            served_ns: Word::new(0),
        }
    }

    /// What is to be shown when the clock has come to `now`: never less than before, though the drive may take back work.
    #[inline]
    pub fn limit(&self, now: VirtualInstant) -> VirtualInstant {
        let limited = if self.stands(now) { now.min(VirtualInstant::from_ns(self.at_ns.get())) } else { now };
        limited.max(self.shown())
    }

    /// Whether it stands when the clock has come to `now`.
    #[inline]
    fn stands(&self, now: VirtualInstant) -> bool {
        now.as_ns() < self.until_ns.get()
    }

    /// Shows what [`Standing::limit`] says, and returns it.
    #[inline]
    pub fn show(&self, now: VirtualInstant) -> VirtualInstant {
        let shown = self.limit(now);
        self.shown_ns.set(shown.as_ns());
        self.unseen.set(if self.stands(now) { UNSEEN_READINGS } else { 0 });
        shown
    }

    /// What a reading is to show that need not look at the drive; `None` where it has to.
    #[inline]
    pub fn show_again(&self) -> Option<VirtualInstant> {
        let left = self.unseen.get().checked_sub(1)?;
        self.unseen.set(left);
        Some(self.shown())
    }

    /// The instant that was shown last.
    #[inline]
    pub fn shown(&self) -> VirtualInstant {
        VirtualInstant::from_ns(self.shown_ns.get())
    }

    /// The instant at which to serve `next`, which is due, as the clock has come to `now`. `behind` is what
    /// [`STANDS_WORK_NS`] of work are on the clock.
    #[inline]
    pub fn serve_at(&self, now: VirtualInstant, next: VirtualInstant, behind: VirtualDuration) -> VirtualInstant {
        let earliest_ns = self.served_ns.get().saturating_sub(behind.as_ns());
        next.max(self.shown()).max(VirtualInstant::from_ns(earliest_ns)).min(now)
    }

    /// A handler is about to run at the instant `at`. Returns whether time goes on after it; it does not where it stood
    /// before. `until` is asked up to which instant it stands if it is this handler that makes it stand: one interrupt after
    /// the other does not keep it standing for longer.
    #[inline]
    pub fn begin(&self, at: VirtualInstant, until: impl FnOnce() -> VirtualInstant) -> bool {
        let goes = self.until_ns.get() == 0;
        if goes {
            self.stay(until());
        }
        self.at_ns.set(at.as_ns());
        self.show(at);
        goes
    }

    /// Notes that the handler has returned, with the drive at `served`; `goes` is what [`Standing::begin`] returned.
    #[inline]
    pub fn end(&self, served: VirtualInstant, goes: bool) {
        self.served_ns.set(served.as_ns());
        if goes {
            self.go();
        }
    }

    /// Time stands at the instant that it stood at last, until its drive comes to `until`.
    #[inline]
    pub fn stay(&self, until: VirtualInstant) {
        self.until_ns.set(until.as_ns());
    }

    /// Time goes on.
    #[inline]
    pub fn go(&self) {
        self.until_ns.set(0);
        self.unseen.set(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Standing, UNSEEN_READINGS};
    use virtual_time::{VirtualDuration, VirtualInstant};

    const BEHIND: VirtualDuration = VirtualDuration::from_ns(50);

    fn at(ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(ns)
    }

    #[test]
    fn a_handler_sees_its_deadline_until_it_returns() {
        let standing = Standing::going();
        standing.show(at(90));
        assert_eq!(standing.serve_at(at(130), at(100), BEHIND), at(100));
        let goes = standing.begin(at(100), || at(130 + 50));
        assert!(goes);
        assert_eq!(standing.show(at(140)), at(100));
        standing.end(at(150), goes);
        assert_eq!(standing.show(at(150)), at(150));
    }

    #[test]
    fn what_was_shown_is_not_contradicted() {
        let standing = Standing::going();
        standing.show(at(110));
        assert_eq!(standing.serve_at(at(130), at(100), BEHIND), at(110));
        assert_eq!(standing.show(at(105)), at(110), "the drive has taken work back");
    }

    #[test]
    fn interrupts_that_are_more_than_the_cpu_can_do_are_served_late() {
        let standing = Standing::going();
        let goes = standing.begin(at(100), || at(150));
        standing.end(at(300), goes);
        assert_eq!(standing.serve_at(at(300), at(101), BEHIND), at(250));
    }

    #[test]
    fn a_kernel_that_waits_for_time_to_pass_sees_it_pass_when_the_bound_is_reached() {
        let standing = Standing::going();
        standing.begin(at(100), || at(150));
        assert_eq!([149, 150, 151].map(|ns| standing.show(at(ns))), [at(100), at(150), at(151)]);
    }

    #[test]
    fn a_second_handler_does_not_make_it_stand_for_longer() {
        let standing = Standing::going();
        let outer = standing.begin(at(100), || at(150));
        let inner = standing.begin(at(110), || unreachable!());
        standing.end(at(140), inner);
        assert!(outer && !inner);
        assert_eq!(standing.show(at(149)), at(110));
        assert_eq!(standing.show(at(150)), at(150));
    }

    #[test]
    fn it_stands_after_idling_until_time_goes_on() {
        let standing = Standing::going();
        let goes = standing.begin(at(100), || at(150));
        standing.end(at(105), goes);
        standing.stay(at(155));
        assert_eq!(standing.show(at(120)), at(100));
        standing.go();
        assert_eq!(standing.show(at(121)), at(121));
    }

    #[test]
    fn only_every_fourth_reading_looks_at_the_drive_and_only_while_it_stands() {
        let standing = Standing::going();
        standing.show(at(90));
        assert_eq!(standing.show_again(), None);
        standing.begin(at(100), || at(150));
        for _ in 0..UNSEEN_READINGS {
            assert_eq!(standing.show_again(), Some(at(100)));
        }
        assert_eq!(standing.show_again(), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// The clock is read.
        Read,
        /// What was due so long ago is served, by a handler that takes so long, and reads the clock.
        Serve(u64, u64),
        /// An idle kernel has noted an alarm.
        Stay,
        Go,
        /// Work is taken back.
        Back(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => Just(Step::Read),
            3 => (0_u64..200, 0_u64..200).prop_map(|(late, takes)| Step::Serve(late, takes)),
            1 => Just(Step::Stay),
            1 => Just(Step::Go),
            1 => (0_u64..100).prop_map(Step::Back),
        ]
    }

    proptest! {
        #[test]
        fn what_is_shown_never_steps_back_nor_runs_ahead_and_is_behind_by_no_more_than_the_bound(
            steps in prop::collection::vec((0_u64..100, step()), 0..200)
        ) {
            let standing = Standing::going();
            let behind_ns = BEHIND.as_ns();
            let (mut drive_ns, mut furthest_ns, mut shown) = (1_000_u64, 1_000_u64, at(0));
            for (later_ns, step) in steps {
                drive_ns += later_ns;
                furthest_ns = furthest_ns.max(drive_ns);
                match step {
                    Step::Read => { standing.show(at(drive_ns)); }
                    Step::Serve(late_ns, takes_ns) => {
                        let next = at(drive_ns.saturating_sub(late_ns));
                        let serve_at = standing.serve_at(at(drive_ns), next, BEHIND);
                        prop_assert!(serve_at <= at(drive_ns));
                        prop_assert!(serve_at >= next.min(at(drive_ns)));
                        let goes = standing.begin(serve_at, || at(drive_ns + behind_ns));
                        prop_assert!(standing.shown() >= serve_at);
                        drive_ns += takes_ns;
                        furthest_ns = furthest_ns.max(drive_ns);
                        standing.show(at(drive_ns));
                        standing.end(at(drive_ns), goes);
                    }
                    Step::Stay => standing.stay(at(drive_ns + behind_ns)),
                    Step::Go => standing.go(),
                    Step::Back(ns) => drive_ns = drive_ns.saturating_sub(ns),
                }
                prop_assert!(standing.shown() >= shown, "it stepped back");
                prop_assert!(standing.shown() <= at(furthest_ns), "it ran ahead");
                shown = standing.shown();
            }
            // However it stands, it has caught up when the drive is past the bound.
            let past = at(furthest_ns + behind_ns);
            prop_assert_eq!(standing.show(past), past);
        }
    }
}
