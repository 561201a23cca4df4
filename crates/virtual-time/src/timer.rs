//! The guest's one timer, and the host timer that stands behind it.
//!
//! A User-Mode Linux kernel has a single clock event device: one POSIX timer, set anew for almost every packet and every
//! tick, nearly always to a *later* instant than before. Passing each setting to the host would be a system call a time.
//! So the host timer is armed *lazily*: it is left alone while it will fire no later than the guest's deadline, and when
//! it fires early it is armed again for the rest. An alarm is thus a hint, never the truth; the truth is the deadline
//! against the timeline. For the same reason it does not matter if two alarms merge into one signal.

use crate::{DriveInstant, HostInstant, Timeline, VirtualDuration, VirtualInstant};

/// One moment, by the two clocks that the timer needs. On the wall drive they are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The host's monotonic clock.
    pub host: HostInstant,
    /// What drives virtual time.
    pub drive: DriveInstant,
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
}

impl GuestTimer {
    /// A timer that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self { deadline: None, interval: None, host_alarm: None }
    }

    /// Sets it to expire at `deadline` and then, if given, every `interval`.
    pub fn set(&mut self, deadline: VirtualInstant, interval: Option<VirtualDuration>) {
        self.deadline = Some(deadline);
        self.interval = interval;
    }

    /// Switches it off. The host timer stays as it is: its alarm will find nothing due.
    pub fn clear(&mut self) {
        self.deadline = None;
        self.interval = None;
    }

    /// When it expires.
    #[must_use]
    pub const fn deadline(&self) -> Option<VirtualInstant> {
        self.deadline
    }

    /// The host instant for which the host timer has to be armed now, or `None` if it is armed early enough, nothing is
    /// set, or virtual time is held. It may fire `slack_ns` of host time after the deadline. The drive never advances
    /// faster than the host's clock, so an alarm may come too early, but not too late.
    pub fn arm(&mut self, now: Now, line: &Timeline, slack_ns: u64) -> Option<HostInstant> {
        let left_ns = line.drive_at(self.deadline?)?.ns_since(now.drive);
        let due = now.host.ns_later(left_ns.saturating_add(slack_ns));
        match self.host_alarm {
            Some(alarm) if alarm <= due && alarm > now.host => None,
            _ => {
                self.host_alarm = Some(due);
                Some(due)
            }
        }
    }

    /// Takes an alarm. When it is [`Alarm::Due`], the timer has moved on to its next expiry.
    pub fn alarm(&mut self, now: Now, line: &Timeline) -> Alarm {
        if self.host_alarm.is_some_and(|alarm| alarm <= now.host) {
            self.host_alarm = None;
        }
        let reached = line.virtual_at(now.drive);
        match self.deadline {
            Some(deadline) if deadline <= reached => {
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
    use crate::{Pace, Tdf};

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

    fn line(tdf: u64) -> Timeline {
        Timeline::new(drive(0), instant(0), Pace::Running(Tdf::new(tdf, 1).unwrap()))
    }

    #[test]
    fn a_later_deadline_leaves_the_host_timer_alone() {
        let (mut timer, line) = (GuestTimer::new(), line(10));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &line, 0), Some(host(1000)));
        timer.set(instant(200), None);
        assert_eq!(timer.arm(now(0), &line, 0), None);
        assert_eq!(timer.alarm(now(1000), &line), Alarm::NotYet);
        assert_eq!(timer.arm(now(1000), &line, 0), Some(host(2000)));
    }

    #[test]
    fn an_earlier_deadline_arms_the_host_timer_again() {
        let (mut timer, line) = (GuestTimer::new(), line(10));
        timer.set(instant(200), None);
        assert_eq!(timer.arm(now(0), &line, 0), Some(host(2000)));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &line, 0), Some(host(1000)));
    }

    #[test]
    fn an_alarm_one_nanosecond_early_is_not_yet_due_and_never_lost() {
        let (mut timer, line) = (GuestTimer::new(), line(10));
        timer.set(instant(100), None);
        timer.arm(now(0), &line, 0);
        assert_eq!(timer.alarm(now(999), &line), Alarm::NotYet);
        assert_eq!(timer.alarm(now(1000), &line), Alarm::Due { lateness: VirtualDuration::from_ns(0) });
        assert_eq!(timer.alarm(now(1001), &line), Alarm::NotYet, "a one-shot timer is served once");
    }

    #[test]
    fn lateness_is_virtual_time_since_the_deadline() {
        let (mut timer, line) = (GuestTimer::new(), line(10));
        timer.set(instant(100), None);
        assert_eq!(timer.alarm(now(1500), &line), Alarm::Due { lateness: VirtualDuration::from_ns(50) });
    }

    #[test]
    fn a_periodic_timer_keeps_its_grid_and_skips_what_it_missed() {
        let (mut timer, line) = (GuestTimer::new(), line(1));
        timer.set(instant(100), Some(VirtualDuration::from_ns(100)));
        timer.alarm(now(130), &line);
        assert_eq!(timer.deadline(), Some(instant(200)));
        timer.alarm(now(450), &line);
        assert_eq!(timer.deadline(), Some(instant(550)));
    }

    #[test]
    fn a_held_clock_arms_nothing_and_a_released_one_arms_the_rest() {
        let running = line(1);
        let held = running.change(drive(40), Pace::Held);
        let mut timer = GuestTimer::new();
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(50), &held, 0), None);
        let released = held.change(drive(1000), Pace::Running(Tdf::ONE));
        assert_eq!(timer.arm(now(1000), &released, 0), Some(host(1060)));
    }

    #[test]
    fn a_slower_pace_keeps_the_armed_host_timer_and_a_faster_one_arms_it_anew() {
        let (mut timer, line) = (GuestTimer::new(), line(10));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &line, 0), Some(host(1000)));
        let slower = line.change(drive(500), Pace::Running(Tdf::new(20, 1).unwrap()));
        assert_eq!(timer.arm(now(500), &slower, 0), None, "it fires early, and is then armed for the rest");
        let faster = slower.change(drive(500), Pace::Running(Tdf::ONE));
        assert_eq!(timer.arm(now(500), &faster, 0), Some(host(550)));
    }

    #[test]
    fn slack_keeps_a_host_timer_that_is_late_by_no_more() {
        let (mut timer, line) = (GuestTimer::new(), line(10));
        timer.set(instant(100), None);
        assert_eq!(timer.arm(now(0), &line, 50), Some(host(1050)));
        timer.set(instant(103), None);
        assert_eq!(timer.arm(now(0), &line, 20), None);
        assert_eq!(timer.arm(now(0), &line, 0), Some(host(1030)));
    }

    #[test]
    fn on_the_work_drive_the_host_timer_fires_early_rather_than_late() {
        let (mut timer, line) = (GuestTimer::new(), line(10));
        timer.set(instant(100), None);
        let begin = Now { host: host(5000), drive: drive(200) };
        assert_eq!(timer.arm(begin, &line, 0), Some(host(5800)));
        let disturbed = Now { host: host(5800), drive: drive(700) };
        assert_eq!(timer.alarm(disturbed, &line), Alarm::NotYet, "the guest was off the CPU meanwhile");
        assert_eq!(timer.arm(disturbed, &line, 0), Some(host(6100)));
    }

    #[test]
    fn a_timer_that_is_off_arms_nothing_and_serves_nothing() {
        let (mut timer, line) = (GuestTimer::new(), line(1));
        timer.set(instant(100), None);
        timer.clear();
        assert_eq!(timer.arm(now(0), &line, 0), None);
        assert_eq!(timer.alarm(now(200), &line), Alarm::NotYet);
    }
}
