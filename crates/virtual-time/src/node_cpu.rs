//! The CPU of a node that shares its guest with other nodes.
//!
//! **Problem.** A guest has one CPU, TDF host seconds of work a virtual second fast, and its nodes use it in turns. Each of
//! them is to compute as on a machine of its own, whose CPU has the speed that the lab gives it, whatever the TDF. A quota
//! gives the right mean only: a node with a tenth of the CPU and a quota a period of 10 ms does a request of a
//! millisecond's work in one, where a CPU of that speed takes ten. DieCast (NSDI'08, section 3.2) spreads the quota: who
//! has used a slice waits for TDF - 1 slices. But whatever is done within a slice is still done too early.
//!
//! **Rule.** Work is done as fast as the guest can, and the CPU of the node counts as *busy* for as long as one of its speed
//! takes for it. Whoever has worked sleeps until that is over before anything can be seen of what was done: before its next
//! system call is carried out, and in between after a slice of work; at calls that only the node's own programs see, which
//! wait for each other's locks, once a slice is owed. So each answer of a server leaves at the instant at
//! which the node's CPU has computed it, and the slice only bounds how long other nodes wait for the guest's CPU. Programs
//! of one node work in advance one after the other, so each sleeps until its own work is over: they take turns.
//!
//! The TDF is in none of this: nothing changes for a node when it does.
//!
//! **Credit.** A sleeper may wake late, as other nodes have the guest's CPU. What it was late by it may catch up, since the
//! node's CPU would not have waited; up to [`CREDIT_NS_MAX`], beyond which the time is *lost*: the guest's CPU is too slow for all.

use crate::{Tdf, VirtualDuration, VirtualInstant};

/// How much a node may catch up with at once.
pub const CREDIT_NS_MAX: u64 = 10_000_000;

/// The CPU of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCpu {
    /// Work in host time per virtual time.
    speed: Tdf,
    /// The instant until which it is busy, and the rest of a nanosecond in parts of the speed's numerator.
    busy_until: VirtualInstant,
    rest: u64,
    credit_ns: u64,
    /// Whether its program had to stop although it had more to do.
    wants: bool,
}

impl NodeCpu {
    /// A CPU of this speed, in cores of the host, that was never busy.
    #[must_use]
    pub const fn new(speed: Tdf) -> Self {
        Self { speed, busy_until: VirtualInstant::from_ns(0), rest: 0, credit_ns: 0, wants: false }
    }

    /// It has this speed from now on. What it is busy with takes as long as it did.
    pub fn set_speed(&mut self, speed: Tdf) {
        self.speed = speed;
        self.rest = 0;
    }

    /// A program of the node goes on at `now`. Returns what the node has lost: virtual time in which it wanted to work,
    /// did not, and will not catch up with.
    pub fn go_on(&mut self, now: VirtualInstant) -> VirtualDuration {
        let credit_ns = if self.wants { CREDIT_NS_MAX } else { self.credit_ns };
        let earliest = VirtualInstant::from_ns(now.as_ns().saturating_sub(credit_ns));
        let behind = earliest.since(self.busy_until);
        if behind.as_ns() > 0 {
            self.busy_until = earliest;
            self.rest = 0;
        }
        let lost = if self.wants { behind } else { VirtualDuration::from_ns(0) };
        self.credit_ns = 0;
        self.wants = false;
        lost
    }

    /// A program of it had to stop although it had more to do.
    pub fn interrupt(&mut self) {
        self.wants = true;
    }

    /// A program of it has worked for `work_ns` of host time. Returns how long the node's CPU takes for that.
    pub fn work(&mut self, work_ns: u64) -> VirtualDuration {
        let parts = u128::from(work_ns) * u128::from(self.speed.guest()) + u128::from(self.rest);
        let host = u128::from(self.speed.host());
        let takes = VirtualDuration::from_ns((parts / host) as u64);
        self.rest = (parts % host) as u64;
        self.busy_until = self.busy_until.plus(takes);
        takes
    }

    /// How long it takes for `work_ns` of host time, to a nanosecond.
    #[must_use]
    pub fn takes(&self, work_ns: u64) -> VirtualDuration {
        let parts = u128::from(work_ns) * u128::from(self.speed.guest());
        VirtualDuration::from_ns((parts / u128::from(self.speed.host())) as u64)
    }

    /// The instant until which it is busy with what its programs have done.
    #[must_use]
    pub const fn busy_until(&self) -> VirtualInstant {
        self.busy_until
    }

    /// A program of it that was to sleep until `due` has woken up at `now`. Returns what the node has lost by that.
    pub fn wake(&mut self, due: VirtualInstant, now: VirtualInstant) -> VirtualDuration {
        let late_ns = now.since(due).as_ns();
        self.credit_ns = late_ns.min(CREDIT_NS_MAX);
        VirtualDuration::from_ns(late_ns - self.credit_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(ns)
    }

    fn cpu(host: u64, guest: u64) -> NodeCpu {
        NodeCpu::new(Tdf::new(host, guest).unwrap())
    }

    /// What a node's one program, that only computes, takes for `work_ns` in slices, in a guest of this TDF where others
    /// keep it from its CPU for `late_ns` each time.
    fn computes(cpu: &mut NodeCpu, tdf: u64, work_ns: u64, slice_ns: u64, late_ns: u64) -> (u64, u64) {
        let (mut now_ns, mut left_ns, mut lost_ns) = (0, work_ns, 0);
        while left_ns > 0 {
            lost_ns += cpu.go_on(at(now_ns)).as_ns();
            let slice = slice_ns.min(left_ns);
            left_ns -= slice;
            now_ns += slice / tdf;
            cpu.work(slice);
            let due = cpu.busy_until();
            if due > at(now_ns) {
                now_ns = due.as_ns() + late_ns;
                lost_ns += cpu.wake(due, at(now_ns)).as_ns();
            } else {
                cpu.interrupt();
            }
        }
        (now_ns, lost_ns)
    }

    #[test]
    fn a_computation_takes_its_work_over_the_speed_at_every_tdf() {
        for tdf in [1, 5, 10, 50, 100] {
            assert_eq!(computes(&mut cpu(1, 20), tdf, 50 * MS, MS / 10, 0), (1000 * MS, 0));
        }
    }

    #[test]
    fn a_node_catches_up_with_what_it_was_late_by() {
        let (end_ns, lost_ns) = computes(&mut cpu(1, 2), 10, 50 * MS, MS / 10, 50_000);
        assert_eq!((end_ns, lost_ns), (100 * MS + 50_000, 0));
    }

    #[test]
    fn what_a_node_cannot_catch_up_with_is_lost() {
        // It sleeps twice, after the first slice and after the seventh, and is late by 11 ms each time.
        let (end_ns, lost_ns) = computes(&mut cpu(1, 2), 10, 10 * MS, MS, CREDIT_NS_MAX + MS);
        assert_eq!((end_ns, lost_ns), (26 * MS + 300_000, 2 * MS));
    }

    #[test]
    fn a_guest_that_is_too_slow_loses_what_the_node_misses() {
        // Two host seconds of work a virtual second are wanted of a guest that does one.
        let (end_ns, lost_ns) = computes(&mut cpu(2, 1), 1, 1000 * MS, MS / 10, 0);
        assert_eq!(end_ns, 1000 * MS);
        assert!((490 * MS - MS..=490 * MS).contains(&lost_ns));
    }

    #[test]
    fn an_idle_node_gains_nothing_by_waiting() {
        let mut cpu = cpu(1, 10);
        cpu.go_on(at(0));
        cpu.work(MS);
        assert_eq!(cpu.busy_until(), at(10 * MS));
        assert_eq!(cpu.go_on(at(500 * MS)).as_ns(), 0);
        cpu.work(MS);
        assert_eq!(cpu.busy_until(), at(510 * MS));
    }

    #[test]
    fn another_speed_is_of_what_is_done_from_then_on() {
        let mut cpu = cpu(1, 10);
        cpu.go_on(at(0));
        cpu.work(MS);
        cpu.set_speed(Tdf::new(1, 100).unwrap());
        assert_eq!(cpu.busy_until(), at(10 * MS));
        cpu.work(MS);
        cpu.set_speed(Tdf::new(1, 10).unwrap());
        cpu.work(MS);
        assert_eq!(cpu.busy_until(), at(120 * MS));
    }

    #[test]
    fn how_long_it_takes_for_work_is_what_it_is_busy_for() {
        let mut slow = cpu(1, 4);
        let takes = slow.takes(MS);
        assert_eq!((slow.work(MS), slow.busy_until()), (takes, at(takes.as_ns())));
        assert_eq!(takes.as_ns(), 4 * MS);
    }

    #[test]
    fn two_programs_of_a_node_take_turns() {
        let mut cpu = cpu(1, 10);
        let mut ends = [0; 2];
        for program in [0, 1, 0, 1] {
            cpu.go_on(at(ends[program]));
            cpu.work(MS);
            ends[program] = cpu.busy_until().as_ns();
        }
        assert_eq!(ends, [30 * MS, 40 * MS]);
    }

    #[test]
    fn no_part_of_a_nanosecond_is_lost() {
        let mut cpu = cpu(3, 1);
        cpu.go_on(at(0));
        for _ in 0..3000 {
            cpu.work(1);
        }
        assert_eq!(cpu.busy_until(), at(1000));
    }
}
