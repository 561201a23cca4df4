//! The clock of a guest as a state machine: what drives its virtual time, how far it may go, and what idling means.
//!
//! The *drive* is a clock that only goes forward; virtual time is a straight line over it ([`Timeline`]):
//!
//! | drive | advances with | an idle kernel |
//! | --- | --- | --- |
//! | wall | the host's monotonic clock | waits for its next timer |
//! | work | the CPU time that the guest uses | jumps to its next timer |
//! | event | clock readings and entries of user code into the kernel, a fixed step for each | jumps to its next timer |
//!
//! Four things stop it. **Held**, by the host, or because the agent waits for the host, the line has slope zero. At the
//! **end** that the host has set the clock stops exactly, whatever is running: an instant beyond the end is never read, and
//! a timer beyond it is never due. On the event drive what runs there makes its steps all the same, and they count, until the
//! kernel idles or the guest has to stand ([`Clock::steps_beyond`]), so that a run goes on from its end as if there had
//! been none; the host is shown the end meanwhile. The **ceiling** is a second line, over the host's clock: a jump over idle time ends
//! where it is now, and goes on as it rises, so that virtual time does not run ahead of people at a terminal. The **bound** is
//! an end that moves: the others' horizon (`horizon.rs`), at which the clock waits for them.
//!
//! **Clocks of several guests** run over the same clock of the host on the wall drive, so what is ordered has to have an effect
//! at the same moment in all of them. If each began when it gets to see the order, a change of the TDF that one sees later by a
//! millisecond would leave them apart for good, and once that is more than the delay of a link between them, the one ahead
//! would stand at its bound for ever. So such orders say from when on they hold. A guest that sees them late has gone on
//! at the old pace meanwhile: where that was slower it jumps, late by as much, and where it was faster it stands until its new
//! line has come to where it is. What it has reached is therefore a **floor** under the line; so is what it jumps to.
//!
//! All instants are arguments. The library feeds it from the host and does what it says; the tests feed it numbers.

use crate::{DriveInstant, HostInstant, Now, Pace, Tdf, Timeline, VirtualDuration, VirtualInstant};

/// What drives virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The host's monotonic clock.
    Wall,
    /// The CPU time that the guest uses.
    Work,
    /// Clock readings, and entries of user code into the kernel.
    Event,
}

/// What the host orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// What is to drive virtual time.
    pub drive: Drive,
    /// How virtual time is to move.
    pub pace: Pace,
    /// Where it stops; `None` for nowhere.
    pub end: Option<VirtualInstant>,
    /// The ceiling's slope, host seconds per virtual second; `None` for no ceiling.
    pub ceiling: Option<Tdf>,
    /// The instant from which on it moves so, on the wall drive; `None`: from when it obeys. See [`Clock::obey`].
    pub since: Option<HostInstant>,
}

/// What an idle kernel has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Nothing: its deadline is reached.
    No,
    /// Sleep until then, or until a signal, and ask again.
    Until(HostInstant),
    /// Sleep until a signal.
    Forever,
}

/// The clock of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    drive: Drive,
    line: Timeline,
    /// What it has reached, where the line is yet to come.
    floor: VirtualInstant,
    /// The pace that the host ordered; the line is held all the same while the agent waits for the host.
    pace: Pace,
    waits: bool,
    end: VirtualInstant,
    /// The last instant that it may reach before the others have come nearer.
    bound: VirtualInstant,
    ceiling: Option<Timeline>,
}

impl Clock {
    /// Before the first orders: at zero, held.
    pub const HELD_AT_ZERO: Self = Self {
        drive: Drive::Wall,
        line: Timeline::new(DriveInstant::from_ns(0), VirtualInstant::from_ns(0), Pace::Held),
        floor: VirtualInstant::from_ns(0),
        pace: Pace::Held,
        waits: false,
        end: VirtualInstant::NEVER,
        bound: VirtualInstant::NEVER,
        ceiling: None,
    };

    /// What drives it.
    #[must_use]
    pub const fn drive(&self) -> Drive {
        self.drive
    }

    /// The line, which goes on beyond the end.
    #[must_use]
    pub const fn line(&self) -> &Timeline {
        &self.line
    }

    /// Where it stops; `VirtualInstant::NEVER` for nowhere.
    #[must_use]
    pub const fn end(&self) -> VirtualInstant {
        self.end
    }

    /// The last instant that it reaches as things are: its end, or its bound if that comes first.
    #[must_use]
    pub fn limit(&self) -> VirtualInstant {
        self.end.min(self.bound)
    }

    /// The clock that others bound: it stops at `bound`, as at its end, until they allow more.
    #[must_use]
    pub fn bounded(&self, bound: VirtualInstant) -> Self {
        Self { bound, ..*self }
    }

    /// Where it stands, or comes to stand, unless the host orders something, others allowing it; never, where it goes on.
    #[must_use]
    pub fn stands_at(&self, drive: DriveInstant) -> VirtualInstant {
        match self.line.pace() {
            Pace::Held => self.unbounded_at(drive),
            Pace::Running(_) => self.end,
        }
    }

    /// How far the line is beyond the bound at which the clock stands.
    #[must_use]
    pub fn beyond_bound(&self, drive: DriveInstant) -> VirtualDuration {
        self.unbounded_at(drive).since(self.bound)
    }

    /// The virtual instant when the drive is at `drive`, if the others allowed it.
    #[must_use]
    pub fn unbounded_at(&self, drive: DriveInstant) -> VirtualInstant {
        let reached = self.line.virtual_at(drive).max(self.floor);
        if self.drive == Drive::Event {
            reached
        } else {
            reached.min(self.end)
        }
    }

    /// Whether another `ns` of steps bring a clock that runs on the event drive beyond its end.
    #[must_use]
    pub fn steps_beyond(&self, drive: DriveInstant, ns: u64) -> bool {
        let after = DriveInstant::from_ns(drive.as_ns() + ns);
        self.drive == Drive::Event && self.line.pace() != Pace::Held && self.line.virtual_at(after) > self.end
    }

    /// The clock of a guest whose next step is beyond its end, and that makes none before the host orders something.
    #[must_use]
    pub fn ended(&self) -> Self {
        Self { floor: self.floor.max(self.end), ..*self }
    }

    /// The clock that stands from now on, to the fraction of a nanosecond where it is, until the host orders something.
    #[must_use]
    pub fn stood(&self, now: DriveInstant) -> Self {
        Self { line: self.line.change(now, Pace::Held), ..*self }
    }

    /// The clock that goes on from `instant`, if that is later. On the wall drive it then stands there until its line comes.
    #[must_use]
    pub fn jumped(&self, now: DriveInstant, instant: VirtualInstant) -> Self {
        let instant = instant.min(self.limit());
        match self.drive {
            Drive::Wall => Self { floor: self.floor.max(instant), ..*self },
            Drive::Work | Drive::Event => Self { line: self.line.jump(now, instant), ..*self },
        }
    }

    /// The virtual instant when the drive is at `drive`.
    #[must_use]
    pub fn virtual_at(&self, drive: DriveInstant) -> VirtualInstant {
        self.unbounded_at(drive).min(self.bound)
    }

    /// The first instant of the drive at which virtual time is at or past `instant`; `None` if it is never reached.
    #[must_use]
    pub fn drive_at(&self, instant: VirtualInstant) -> Option<DriveInstant> {
        if instant > self.limit() {
            return None;
        }
        self.line.drive_at(if instant > self.floor { instant } else { VirtualInstant::from_ns(0) })
    }

    /// The clock that obeys `orders` from now on. `now` is by the present drive, `then` the same moment by the new one.
    /// Virtual time goes on from where it is, be it beyond the bound: others may have been told so. An end that lies behind
    /// it stops it at once. A clock that `orders` let run `since` an earlier moment is from now on where it would be if it had
    /// obeyed then, but never goes back: one that is further stands until it would have come there.
    #[must_use]
    pub fn obey(&self, now: Now, then: DriveInstant, orders: Orders) -> Self {
        let reached = self.unbounded_at(now.drive);
        let is_event = self.drive == Drive::Event && orders.drive == Drive::Event;
        let pace = if self.waits { Pace::Held } else { orders.pace };
        let since = orders.since.filter(|_| orders.drive == Drive::Wall && pace != Pace::Held);
        let line = match since.map(|since| DriveInstant::from_ns(since.min(now.host).as_ns())) {
            Some(since) if self.drive == Drive::Wall => {
                let reached = self.line.virtual_at(since).min(self.end);
                self.continued(reached, since, (Drive::Wall, since), pace)
            }
            since => self.continued(reached, now.drive, (orders.drive, since.unwrap_or(then)), pace),
        };
        Self {
            drive: orders.drive,
            line,
            floor: reached,
            pace: orders.pace,
            waits: self.waits,
            end: orders.end.map_or(VirtualInstant::NEVER, |end| if is_event { end } else { end.max(reached) }),
            bound: self.bound,
            ceiling: orders
                .ceiling
                .map(|slope| Timeline::new(DriveInstant::from_ns(now.host.as_ns()), reached, Pace::Running(slope))),
        }
    }

    /// The clock from now on while the agent waits for the host (it stands still), or no longer does.
    #[must_use]
    pub fn wait_for_host(&self, now: DriveInstant, waits: bool) -> Self {
        let pace = if waits { Pace::Held } else { self.pace };
        Self { line: self.continued(self.unbounded_at(now), now, (self.drive, now), pace), waits, ..*self }
    }

    /// The clock that stands, at a kernel that switches itself off and idles until `instant`: nobody waits for that any more,
    /// and it stands there. One that runs comes there by itself.
    #[must_use]
    pub fn run_out(&self, now: DriveInstant, instant: VirtualInstant) -> Self {
        if self.line.pace() != Pace::Held {
            return *self;
        }
        let instant = instant.max(self.virtual_at(now));
        let never = VirtualInstant::NEVER;
        Self { line: Timeline::new(now, instant, Pace::Held), floor: instant, end: never, bound: never, ..*self }
    }

    /// The line from now on, where virtual time has `reached`, at another pace, by a drive that is at `then`.
    fn continued(
        &self,
        reached: VirtualInstant,
        now: DriveInstant,
        (drive, then): (Drive, DriveInstant),
        pace: Pace,
    ) -> Timeline {
        if drive == self.drive && (drive == Drive::Event || reached == self.line.virtual_at(now)) {
            self.line.change(now, pace)
        } else {
            // Another drive, or the line is beyond the end, where the clock stopped, or below its floor.
            Timeline::new(then, reached, pace)
        }
    }

    /// The clock as an idle kernel leaves it, whose next timer is at `deadline`, and what it has to do.
    #[must_use]
    pub fn idle(&self, now: Now, deadline: Option<VirtualInstant>) -> (Self, Sleep) {
        let deadline = deadline.unwrap_or(VirtualInstant::NEVER);
        let goal = deadline.min(self.limit());
        if self.line.pace() == Pace::Held || goal == VirtualInstant::NEVER {
            return (*self, Sleep::Forever);
        }
        if self.drive == Drive::Wall {
            let due = self.drive_at(deadline).map(|due| HostInstant::from_ns(due.as_ns()));
            return match due {
                Some(due) if due <= now.host => (*self, Sleep::No),
                Some(due) => (*self, Sleep::Until(due)),
                None => (*self, Sleep::Forever),
            };
        }
        let host = DriveInstant::from_ns(now.host.as_ns());
        let allowed = self.ceiling.map_or(goal, |ceiling| ceiling.virtual_at(host).min(goal));
        let jumped = Self { line: self.line.jump(now.drive, allowed), ..*self };
        if jumped.virtual_at(now.drive) < goal {
            let rises = self.ceiling.and_then(|ceiling| ceiling.drive_at(goal));
            let sleep = rises.map_or(Sleep::Forever, |due| Sleep::Until(HostInstant::from_ns(due.as_ns())));
            return (jumped, sleep);
        }
        if deadline <= self.limit() {
            return (jumped, Sleep::No);
        }
        // Nothing is left to do at the end: what the host now has the kernel do takes no time.
        let rests = self.drive == Drive::Event && jumped.virtual_at(now.drive) >= self.end;
        (if rests { jumped.stood(now.drive) } else { jumped }, Sleep::Forever)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instant(ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(ns)
    }

    fn now(host: u64, drive: u64) -> Now {
        Now { host: HostInstant::from_ns(host), drive: DriveInstant::from_ns(drive) }
    }

    fn orders(drive: Drive) -> Orders {
        Orders { drive, pace: Pace::Running(Tdf::ONE), end: None, ceiling: None, since: None }
    }

    fn begun(orders: Orders) -> Clock {
        Clock::HELD_AT_ZERO.obey(now(0, 0), DriveInstant::from_ns(0), orders)
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Run(u64),
        Idle(Option<u64>),
        Obey(Drive, Pace, Option<u64>, Option<u64>, Option<u64>),
        Wait(bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        let drive = prop_oneof![Just(Drive::Wall), Just(Drive::Work), Just(Drive::Event)];
        let pace = prop_oneof![
            1 => Just(Pace::Held),
            4 => (1_u64..1000, 1_u64..1000).prop_map(|(n, d)| Pace::Running(Tdf::new(n, d).unwrap())),
        ];
        prop_oneof![
            (0_u64..1_000_000).prop_map(Step::Run),
            prop::option::of(0_u64..10_000_000).prop_map(Step::Idle),
            (
                drive,
                pace,
                prop::option::of(0_u64..10_000_000),
                prop::option::of(1_u64..100),
                prop::option::of(0_u64..10_000_000)
            )
                .prop_map(|(drive, pace, end, ceiling, since)| Step::Obey(drive, pace, end, ceiling, since)),
            any::<bool>().prop_map(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn it_never_steps_back_and_never_passes_its_end(steps in prop::collection::vec(step(), 0..60)) {
            let mut clock = begun(orders(Drive::Work));
            // The drives here all run with the host; what counts is that each only goes forward.
            let mut at = 0;
            let mut before = instant(0);
            for step in steps {
                match step {
                    Step::Run(ns) => at += ns,
                    Step::Idle(deadline) => clock = clock.idle(now(at, at), deadline.map(instant)).0,
                    Step::Obey(drive, pace, end, ceiling, since) => {
                        let ceiling = ceiling.map(|host| Tdf::new(host, 10).unwrap());
                        let (end, since) = (end.map(instant), since.map(HostInstant::from_ns));
                        let orders = Orders { drive, pace, end, ceiling, since };
                        clock = clock.obey(now(at, at), DriveInstant::from_ns(at), orders);
                    }
                    Step::Wait(waits) => clock = clock.wait_for_host(DriveInstant::from_ns(at), waits),
                }
                let reached = clock.virtual_at(DriveInstant::from_ns(at));
                // On the event drive steps count beyond the end (tests/held_run.rs).
                prop_assert!(before <= reached && (reached <= clock.end() || clock.drive() == Drive::Event));
                before = reached;
            }
        }

        #[test]
        fn idling_never_jumps_past_the_ceiling_nor_the_deadline(
            host in 0_u64..1 << 40, work in 0_u64..1000, deadline in 1000_u64..1 << 41, slope in 1_u64..100,
        ) {
            let ceiling = Tdf::new(slope, 10).unwrap();
            let clock = begun(Orders { ceiling: Some(ceiling), ..orders(Drive::Work) });
            let (jumped, sleep) = clock.idle(now(host, work), Some(instant(deadline)));
            let reached = jumped.virtual_at(DriveInstant::from_ns(work));
            let allowed = (u128::from(host) * 10 / u128::from(slope)) as u64;
            prop_assert!(reached.as_ns() <= deadline.min(allowed.max(work)));
            match sleep {
                Sleep::No => prop_assert_eq!(reached, instant(deadline)),
                Sleep::Forever => prop_assert!(false, "there is a deadline"),
                Sleep::Until(until) => {
                    let (_, then) = jumped.idle(now(until.as_ns(), work), Some(instant(deadline)));
                    prop_assert_eq!(then, Sleep::No);
                }
            }
        }
    }

    #[test]
    fn idling_on_work_and_event_jumps_to_the_deadline_and_on_wall_waits_for_it() {
        for drive in [Drive::Work, Drive::Event] {
            let (clock, sleep) = begun(orders(drive)).idle(now(50, 5), Some(instant(1000)));
            assert_eq!((clock.virtual_at(DriveInstant::from_ns(5)), sleep), (instant(1000), Sleep::No));
        }
        let (clock, sleep) = begun(orders(Drive::Wall)).idle(now(50, 50), Some(instant(1000)));
        assert_eq!(clock.virtual_at(DriveInstant::from_ns(50)), instant(50));
        assert_eq!(sleep, Sleep::Until(HostInstant::from_ns(1000)));
    }

    #[test]
    fn the_end_stops_a_busy_clock_an_idle_one_and_one_without_timers() {
        for drive in [Drive::Wall, Drive::Work] {
            let clock = begun(Orders { end: Some(instant(100)), ..orders(drive) });
            assert_eq!(clock.virtual_at(DriveInstant::from_ns(5000)), instant(100));
            assert_eq!(clock.drive_at(instant(101)), None);
        }
        let clock = begun(Orders { end: Some(instant(100)), ..orders(Drive::Work) });
        for deadline in [Some(instant(1000)), None] {
            let (ended, sleep) = clock.idle(now(9, 9), deadline);
            assert_eq!((ended.virtual_at(DriveInstant::from_ns(9)), sleep), (instant(100), Sleep::Forever));
        }
        let (_, sleep) = clock.idle(now(9, 9), Some(instant(100)));
        assert_eq!(sleep, Sleep::No, "a timer at the end itself is served");
    }

    #[test]
    fn a_clock_goes_on_from_its_end_however_much_the_drive_has_done_since() {
        let clock = begun(Orders { end: Some(instant(100)), ..orders(Drive::Work) });
        let later = clock.obey(now(5000, 5000), DriveInstant::from_ns(5000), orders(Drive::Work));
        assert_eq!(later.virtual_at(DriveInstant::from_ns(5007)), instant(107));
    }

    #[test]
    fn an_end_in_the_past_stops_the_clock_where_it_is() {
        let clock = begun(orders(Drive::Work));
        let stopped = clock.obey(
            now(500, 500),
            DriveInstant::from_ns(500),
            Orders { end: Some(instant(3)), ..orders(Drive::Work) },
        );
        assert_eq!(stopped.virtual_at(DriveInstant::from_ns(9000)), instant(500));
    }

    #[test]
    fn waiting_for_the_host_stands_still_and_then_goes_on_as_ordered_last() {
        let waits = begun(orders(Drive::Work)).wait_for_host(DriveInstant::from_ns(10), true);
        assert_eq!(waits.virtual_at(DriveInstant::from_ns(99)), instant(10));
        assert_eq!(waits.idle(now(99, 99), Some(instant(50))).1, Sleep::Forever);
        let held =
            waits.obey(now(99, 99), DriveInstant::from_ns(99), Orders { pace: Pace::Held, ..orders(Drive::Work) });
        let still = held.wait_for_host(DriveInstant::from_ns(99), false);
        assert_eq!(still.virtual_at(DriveInstant::from_ns(500)), instant(10), "the host holds it");
        let gone_on = waits.wait_for_host(DriveInstant::from_ns(99), false);
        assert_eq!(gone_on.virtual_at(DriveInstant::from_ns(100)), instant(11));
    }

    #[test]
    fn at_its_bound_it_stands_and_then_goes_on_from_where_the_drive_has_come() {
        let clock = begun(orders(Drive::Work)).bounded(instant(100));
        let at = DriveInstant::from_ns(130);
        assert_eq!((clock.virtual_at(at), clock.beyond_bound(at).as_ns()), (instant(100), 30));
        assert_eq!(clock.beyond_bound(DriveInstant::from_ns(90)).as_ns(), 0);
        assert_eq!(clock.drive_at(instant(101)), None);
        let on = clock.bounded(instant(500));
        assert_eq!(on.virtual_at(at), instant(130));
        assert_eq!(on.limit(), instant(500));
        let idles = on.idle(now(1000, 1000), Some(instant(900)));
        assert_eq!((idles.0.virtual_at(DriveInstant::from_ns(1000)), idles.1), (instant(500), Sleep::Forever));
    }

    #[test]
    fn orders_at_the_bound_lose_nothing_of_what_was_done_beyond_it() {
        let clock = begun(orders(Drive::Work)).bounded(instant(100));
        let held = Orders { pace: Pace::Held, ..orders(Drive::Work) };
        let at = DriveInstant::from_ns(130);
        let on = clock.obey(now(130, 130), at, held).obey(now(999, 130), at, orders(Drive::Work));
        assert_eq!(on.virtual_at(at), instant(100));
        assert_eq!(on.bounded(instant(500)).virtual_at(at), instant(130));
    }

    #[test]
    fn on_the_wall_drive_a_jump_leaves_the_line_which_is_that_of_other_guests_too() {
        let at = DriveInstant::from_ns;
        let clock = begun(orders(Drive::Wall)).jumped(at(100), instant(120));
        assert_eq!([100, 119, 121].map(|ns| clock.virtual_at(at(ns)).as_ns()), [120, 120, 121]);
        assert_eq!(clock.idle(now(100, 100), Some(instant(120))).1, Sleep::No, "what it has jumped to is due");
        let held = clock.obey(now(100, 100), at(100), Orders { pace: Pace::Held, ..orders(Drive::Wall) });
        let on = held.obey(now(500, 500), at(500), orders(Drive::Wall));
        assert_eq!(on.virtual_at(at(501)), instant(121), "all stand at one instant while they are held");
    }

    #[test]
    fn a_jump_ends_at_the_bound_and_never_goes_back() {
        let clock = begun(orders(Drive::Work)).bounded(instant(100));
        let at = DriveInstant::from_ns(7);
        assert_eq!(clock.jumped(at, instant(60)).virtual_at(at), instant(60));
        assert_eq!(clock.jumped(at, instant(900)).virtual_at(at), instant(100));
        assert_eq!(clock.jumped(at, instant(3)).virtual_at(at), instant(7));
    }

    #[test]
    fn a_change_of_drive_is_continuous() {
        let clock = begun(orders(Drive::Work));
        let wall = clock.obey(now(7000, 40), DriveInstant::from_ns(7000), orders(Drive::Wall));
        assert_eq!(wall.virtual_at(DriveInstant::from_ns(7001)), instant(41));
    }
}
