//! The guest's one timer, and the host timer that stands behind it.
//!
//! A User-Mode Linux kernel has a single clock event device: one POSIX timer, set anew for almost every packet and every
//! tick, nearly always to a *later* instant than before. Passing each setting to the host would be a system call a time.
//! So the host timer is armed *lazily*: it is left alone while it will fire no later than the guest's deadline, and when
//! it fires early it is armed again for the rest. An alarm is thus a hint, never the truth; the truth is the deadline
//! against the timeline. For the same reason it does not matter if two alarms merge into one signal.
//!
//! A kernel can forget that it was told of an alarm (`input.rs` of the clock library), and then waits for it for ever. But one
//! that has served the alarm of a single expiry sets its timer anew. So one that has had the chance to and has not is
//! *reminded*: its deadline is there again, once, since it need not set a timer of which it wants nothing more.

use crate::{Clock, DriveInstant, HostInstant, VirtualDuration, VirtualInstant};

/// One moment, by the two clocks that the timer needs. On the wall drive they are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The host's monotonic clock.
    pub host: HostInstant,
    /// What drives virtual time.
    pub drive: DriveInstant,
}

/// What others wait for while a guest runs: to be told where it is, and that it stops at its clock's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// When they are to be told.
    pub tell: VirtualInstant,
    /// How long, in host time, the guest runs on before it is interrupted for either.
    pub rest_ns: u64,
}

impl Others {
    /// There are none.
    pub const NONE: Self = Self { tell: VirtualInstant::NEVER, rest_ns: 0 };
}

/// What an alarm of the host timer means for the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The deadline is reached: serve the guest's handler. `lateness` is how long ago it was due, in virtual time.
    Due {
        /// Virtual time since the deadline.
        lateness: VirtualDuration,
    },
    /// Nothing is due: the host timer fired for a setting that has been replaced since, or virtual time is slower now.
    NotYet,
}

/// The guest's timer: its deadline in virtual time, and what is known of the host timer behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestTimer {
    deadline: Option<VirtualInstant>,
    interval: Option<VirtualDuration>,
    host_alarm: Option<HostInstant>,
    heed: Heed,
}

/// Whether the kernel has set its timer since it was told of a single expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Heed {
    /// It has, or is no longer asked.
    #[default]
    Done,
    /// It has not yet; the expiry was at this instant.
    Awaited(VirtualInstant),
    /// It has not, and is being reminded.
    Reminded,
}

impl GuestTimer {
    /// A timer that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self { deadline: None, interval: None, host_alarm: None, heed: Heed::Done }
    }

    /// Sets it to expire at `deadline` and then, if given, every `interval`.
    pub fn set(&mut self, deadline: VirtualInstant, interval: Option<VirtualDuration>) {
        self.deadline = Some(deadline);
        self.interval = interval;
        self.heed = Heed::Done;
    }

    /// Switches it off. The host timer stays as it is: its alarm will find nothing due.
    pub fn clear(&mut self) {
        self.deadline = None;
        self.interval = None;
        self.heed = Heed::Done;
    }

    /// The kernel has had the chance to serve an alarm: if it has not, the alarm is due again, once.
    pub fn remind(&mut self) {
        if let Heed::Awaited(expiry) = self.heed {
            self.deadline = Some(expiry);
            self.heed = Heed::Reminded;
        }
    }

    /// When it expires.
    #[must_use]
    pub const fn deadline(&self) -> Option<VirtualInstant> {
        self.deadline
    }

    /// What the kernel has set it to last: while it serves an expiry, and is yet to say when the next one is, that expiry.
    #[must_use]
    pub const fn setting(&self) -> Option<VirtualInstant> {
        match self.heed {
            Heed::Awaited(expiry) => Some(expiry),
            Heed::Done | Heed::Reminded => self.deadline,
        }
    }

    /// The host instant for which the host timer has to be armed now, or `None` if it is armed early enough, nothing is
    /// set, or virtual time is held. It may fire `slack_ns` of host time after the deadline, after `also`, or after what
    /// `others` wait for, whichever comes first. The drive never advances faster than the host's clock, so an alarm may
    /// come too early, but not too late.
    pub fn arm(
        &mut self,
        now: Now,
        clock: &Clock,
        also: VirtualInstant,
        others: Others,
        slack_ns: u64,
    ) -> Option<HostInstant> {
        let own = self.deadline.unwrap_or(VirtualInstant::NEVER).min(also);
        let tell = others.tell.min(clock.limit());
        let stopped = own.min(others.tell) > tell && clock.virtual_at(now.drive) == tell;
        if stopped {
            return None;
        }
        let left_ns = |instant| {
            let at = clock.drive_at(instant).filter(|_| instant != VirtualInstant::NEVER)?;
            Some(at.ns_since(now.drive).saturating_add(slack_ns))
        };
        let for_others_ns = left_ns(tell).map(|ns| ns.max(others.rest_ns));
        let due = now.host.ns_later(left_ns(own).into_iter().chain(for_others_ns).min()?);
        match self.host_alarm {
            Some(alarm) if alarm <= due && alarm > now.host => None,
            _ => {
                self.host_alarm = Some(due);
                Some(due)
            }
        }
    }

    /// Takes note that the host timer is off from `now` on; whether it was armed until then.
    pub fn disarm(&mut self, now: HostInstant) -> bool {
        self.host_alarm.take().is_some_and(|alarm| alarm > now)
    }

    /// Takes note that the host timer was armed for `instant` with another purpose.
    pub fn armed_for(&mut self, instant: HostInstant) {
        self.host_alarm = Some(instant);
    }

    /// Takes an alarm at `reached`. When it is [`Alarm::Due`], the timer has moved on to its next expiry.
    pub fn alarm(&mut self, reached: VirtualInstant) -> Alarm {
        match self.deadline {
            Some(deadline) if deadline <= reached => {
                self.heed = match self.heed {
                    Heed::Done if self.interval.is_none() => Heed::Awaited(deadline),
                    _ => Heed::Done,
                };
                self.deadline = self.interval.map(|interval| {
                    let next = deadline.plus(interval);
                    // A periodic timer that fell behind skips what it missed, as a POSIX timer's overruns do.
                    if next <= reached {
                        reached.plus(interval)
                    } else {
                        next
                    }
                });
                Alarm::Due { lateness: reached.since(deadline) }
            }
            _ => Alarm::NotYet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Drive, Orders, Pace, Tdf};

    fn host(ns: u64) -> HostInstant {
        HostInstant::from_ns(ns)
    }

    fn drive(ns: u64) -> DriveInstant {
        DriveInstant::from_ns(ns)
    }

    /// A moment of the wall drive.
    fn now(ns: u64) -> Now {
        Now { host: host(ns), drive: drive(ns) }
    }

    fn instant(ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(ns)
    }

    /// The clock that goes on from `now` at this pace, to `end`.
    fn paced(clock: &Clock, now: Now, pace: Pace, end: Option<u64>) -> Clock {
        clock.obey(
            now,
            now.drive,
            Orders { drive: Drive::Work, pace, end: end.map(instant), ceiling: None, since: None },
        )
    }

    fn clock(tdf: u64) -> Clock {
        paced(&Clock::HELD_AT_ZERO, now(0), Pace::Running(Tdf::new(tdf, 1).unwrap()), None)
    }

    #[test]
    fn a_kernel_that_has_not_set_its_timer_after_an_alarm_is_reminded_once() {
        let mut timer = GuestTimer::new();
        timer.set(instant(100), None);
        timer.remind();
        assert_eq!(timer.alarm(instant(99)), Alarm::NotYet, "what it was not told of is not due for that");
        assert!(matches!(timer.alarm(instant(100)), Alarm::Due { .. }));
        assert_eq!(timer.alarm(instant(150)), Alarm::NotYet);
        timer.remind();
        assert_eq!(timer.alarm(instant(150)), Alarm::Due { lateness: VirtualDuration::from_ns(50) });
        timer.remind();
        assert_eq!(timer.alarm(instant(200)), Alarm::NotYet);
    }

    #[test]
    fn a_kernel_that_has_set_its_timer_or_has_a_periodic_one_is_not_reminded() {
        let mut timer = GuestTimer::new();
        for (interval, set) in [(None, true), (Some(VirtualDuration::from_ns(50)), false)] {
            timer.set(instant(100), interval);
            timer.alarm(instant(100));
            if set {
                timer.set(instant(300), None);
            }
            let deadline = timer.deadline();
            timer.remind();
            assert_eq!(timer.deadline(), deadline);
        }
    }

    #[test]
    fn a_timer_whose_expiry_the_kernel_serves_is_still_set_to_that() {
        let mut timer = GuestTimer::new();
        assert_eq!(timer.setting(), None);
        timer.set(instant(100), None);
        timer.alarm(instant(120));
        assert_eq!((timer.deadline(), timer.setting()), (None, Some(instant(100))));
        timer.set(instant(300), None);
        assert_eq!(timer.setting(), Some(instant(300)));
        timer.alarm(instant(300));
        timer.remind();
        assert_eq!(timer.setting(), Some(instant(300)));
        timer.alarm(instant(300));
        assert_eq!(timer.setting(), None, "it was reminded, and has set no other");
    }

    #[test]
    fn a_later_deadline_leaves_the_host_timer_alone() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1000)));
        timer.set(instant(200), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), None);
        assert_eq!(timer.alarm(clock.virtual_at(drive(1000))), Alarm::NotYet);
        assert_eq!(timer.arm(now(1000), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(2000)));
    }

    #[test]
    fn an_earlier_deadline_arms_the_host_timer_again() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(200), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(2000)));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1000)));
    }

    #[test]
    fn an_alarm_one_nanosecond_early_is_not_yet_due_and_never_lost() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(100), None);
        timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0);
        assert_eq!(timer.alarm(clock.virtual_at(drive(999))), Alarm::NotYet);
        assert_eq!(timer.alarm(clock.virtual_at(drive(1000))), Alarm::Due { lateness: VirtualDuration::from_ns(0) });
        assert_eq!(timer.alarm(clock.virtual_at(drive(1001))), Alarm::NotYet, "a one-shot timer is served once");
    }

    #[test]
    fn lateness_is_virtual_time_since_the_deadline() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(100), None);
        assert_eq!(timer.alarm(clock.virtual_at(drive(1500))), Alarm::Due { lateness: VirtualDuration::from_ns(50) });
    }

    #[test]
    fn a_periodic_timer_keeps_its_grid_and_skips_what_it_missed() {
        let (mut timer, clock) = (GuestTimer::new(), clock(1));
        timer.set(instant(100), Some(VirtualDuration::from_ns(100)));
        timer.alarm(clock.virtual_at(drive(130)));
        assert_eq!(timer.deadline(), Some(instant(200)));
        timer.alarm(clock.virtual_at(drive(450)));
        assert_eq!(timer.deadline(), Some(instant(550)));
    }

    #[test]
    fn a_held_clock_arms_nothing_and_a_released_one_arms_the_rest() {
        let running = clock(1);
        let held = paced(&running, now(40), Pace::Held, None);
        let mut timer = GuestTimer::new();
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(50), &held, VirtualInstant::NEVER, Others::NONE, 0), None);
        let released = paced(&held, now(1000), Pace::Running(Tdf::ONE), None);
        assert_eq!(timer.arm(now(1000), &released, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1060)));
    }

    #[test]
    fn a_slower_pace_keeps_the_armed_host_timer_and_a_faster_one_arms_it_anew() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1000)));
        let slower = paced(&clock, now(500), Pace::Running(Tdf::new(20, 1).unwrap()), None);
        assert_eq!(
            timer.arm(now(500), &slower, VirtualInstant::NEVER, Others::NONE, 0),
            None,
            "it fires early, and is then armed for the rest"
        );
        let faster = paced(&slower, now(500), Pace::Running(Tdf::ONE), None);
        assert_eq!(timer.arm(now(500), &faster, VirtualInstant::NEVER, Others::NONE, 0), Some(host(550)));
    }

    #[test]
    fn slack_keeps_a_host_timer_that_is_late_by_no_more() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 50), Some(host(1050)));
        timer.set(instant(103), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 20), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1030)));
    }

    #[test]
    fn on_the_work_drive_the_host_timer_fires_early_rather_than_late() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(100), None);
        let begin = Now { host: host(5000), drive: drive(200) };
        assert_eq!(timer.arm(begin, &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(5800)));
        let disturbed = Now { host: host(5800), drive: drive(700) };
        assert_eq!(
            timer.alarm(clock.virtual_at(disturbed.drive)),
            Alarm::NotYet,
            "the guest was off the CPU meanwhile"
        );
        assert_eq!(timer.arm(disturbed, &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(6100)));
    }

    #[test]
    fn the_end_of_the_clock_is_looked_for_once_and_no_timer_beyond_it() {
        let ends = paced(&Clock::HELD_AT_ZERO, now(0), Pace::Running(Tdf::ONE), Some(100));
        let mut timer = GuestTimer::new();
        assert_eq!(
            timer.arm(now(0), &ends, VirtualInstant::NEVER, Others::NONE, 0),
            Some(host(100)),
            "without a timer too"
        );
        timer.set(instant(150), None);
        assert_eq!(timer.alarm(ends.virtual_at(drive(100))), Alarm::NotYet);
        assert_eq!(timer.arm(now(100), &ends, VirtualInstant::NEVER, Others::NONE, 0), None);
        assert_eq!(timer.alarm(ends.virtual_at(drive(900))), Alarm::NotYet);
        timer.set(instant(100), None);
        assert_eq!(timer.alarm(ends.virtual_at(drive(900))), Alarm::Due { lateness: VirtualDuration::from_ns(0) });
    }

    #[test]
    fn the_host_timer_fires_for_what_else_comes_first() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &clock, instant(70), Others::NONE, 0), Some(host(700)));
        assert_eq!(timer.alarm(clock.virtual_at(drive(700))), Alarm::NotYet);
        assert_eq!(timer.arm(now(700), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1000)));
    }

    #[test]
    fn a_guest_rests_from_others_but_not_from_its_own_deadlines() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10).bounded(instant(50)));
        let others = |tell| Others { tell: instant(tell), rest_ns: 300 };
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, others(40), 10), Some(host(410)));
        assert_eq!(timer.arm(now(400), &clock, VirtualInstant::NEVER, others(45), 10), None, "armed sooner");
        assert_eq!(timer.arm(now(410), &clock, VirtualInstant::NEVER, others(50), 10), Some(host(710)));
        timer.set(instant(45), None);
        assert_eq!(timer.arm(now(410), &clock, VirtualInstant::NEVER, others(50), 10), Some(host(460)));
        timer.set(instant(60), None);
        assert_eq!(
            timer.arm(now(460), &clock, VirtualInstant::NEVER, others(50), 10),
            Some(host(760)),
            "beyond its bound"
        );
    }

    #[test]
    fn a_host_timer_that_is_disarmed_is_armed_anew_for_what_is_due() {
        let (mut timer, clock) = (GuestTimer::new(), clock(10));
        assert!(!timer.disarm(host(0)), "it was never armed");
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1000)));
        assert!(timer.disarm(host(400)));
        assert!(!timer.disarm(host(400)), "it is off");
        assert_eq!(timer.arm(now(500), &clock, VirtualInstant::NEVER, Others::NONE, 0), Some(host(1000)));
        assert!(!timer.disarm(host(1000)), "it has fired");
    }

    #[test]
    fn a_timer_that_is_off_arms_nothing_and_serves_nothing() {
        let (mut timer, clock) = (GuestTimer::new(), clock(1));
        timer.set(instant(100), None);
        timer.clear();
        assert_eq!(timer.arm(now(0), &clock, VirtualInstant::NEVER, Others::NONE, 0), None);
        assert_eq!(timer.alarm(clock.virtual_at(drive(200))), Alarm::NotYet);
    }
}
