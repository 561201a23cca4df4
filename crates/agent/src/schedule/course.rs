//! The part of the schedule that is about entries which are no processes: when they begin, and when they are undone.
//!
//! An entry that is undone is undone by this schedule alone, at an instant that is fixed when it begins: whatever asked for
//! it, or was to be hit by it, may be gone by then. When the run is being stopped, everything is undone first, so that
//! programs can end as they do.

use std::collections::BTreeSet;

use super::entry::Killed;
use super::moments::{Awaited, Outlook, Place};
use super::timed::{State as TimedState, Timed};
use super::{Action, Schedule, State};
use crate::channel::protocol::EventKind;
use crate::plan::{self, key_of, Effect, Off, When};

/// How far faults may move a date together: a kernel has none before 1970, nor one much later than 2200.
/// `python/dilaton/lab/faults/clock.py` bounds each of them by the same.
const JUMP_NS_MAX: u64 = 50 * 365 * 86_400 * 1_000_000_000;

impl Schedule {
    /// An entry as it was planned.
    pub fn timed(&self, entry: usize) -> &plan::Timed {
        &self.course[entry].plan
    }

    /// When an entry has begun.
    pub fn began_ns(&self, entry: usize) -> i64 {
        self.course[entry].began_ns
    }

    /// How often an entry was done that is done again and again.
    pub fn times(&self, entry: usize) -> i64 {
        self.course[entry].times
    }

    /// All entries as they are planned now.
    pub fn course(&self) -> impl Iterator<Item = &plan::Timed> {
        self.course.iter().map(|entry| &entry.plan)
    }

    /// What has its effect in this guest now, in the order in which it began, and when it did.
    pub fn lasting(&self) -> Vec<(&plan::Timed, i64)> {
        let there = self.course.iter().filter(|entry| entry.is_there());
        let mut lasting: Vec<_> = there.map(|entry| (&entry.plan, entry.began_ns)).collect();
        lasting.sort_by_key(|&(_, began_ns)| began_ns);
        lasting
    }

    /// Takes over what a link becomes from now on, in place of all that was still to come; it is due at the next
    /// [`super::Input::Tick`].
    pub fn replan_link(&mut self, link: &str, changes: Vec<plan::Timed>) {
        for entry in &mut self.course {
            let is_its = matches!(&entry.plan.effect, Effect::ChangeLink { link: other, .. } if other == link);
            if is_its && entry.begin_ns().is_some() {
                entry.state = TimedState::Ended;
            }
        }
        let is_here = |node: &str| !self.nodes_elsewhere.contains(node);
        self.course.extend(changes.into_iter().map(|change| Timed::new(change, None, is_here)));
    }

    /// Undoes what is due to be undone, then begins what is due to begin; whether anything changed.
    pub(super) fn advance_course(&mut self, now_ns: i64) -> bool {
        let undone = self.undo_where(|entry| entry.end_ns().is_some_and(|instant| instant <= now_ns));
        let mut changed = undone > 0;
        for number in 0..self.course.len() {
            while let Some(is_there) = self.course[number].turn(now_ns) {
                self.actions.push(if is_there {
                    Action::Begin { entry: number }
                } else {
                    Action::Undo { entry: number }
                });
            }
            changed |= self.await_cause(now_ns, number);
            changed |= self.go_off(now_ns, number);
            if let Some(begin_ns) = self.course[number].begin_ns().filter(|&instant| instant <= now_ns) {
                self.begin(begin_ns, number);
                changed = true;
            }
        }
        changed
    }

    /// Undoes all that can be undone, now.
    pub(super) fn undo_all(&mut self) {
        // Nothing is to start again, be it a process or a node.
        let stays = |effect: &Effect| {
            matches!(effect, Effect::ChangeLink { .. } | Effect::Kill { .. } | Effect::PowerOff { .. })
        };
        self.undo_where(|entry| entry.has_begun() && !stays(&entry.plan.effect));
    }

    pub(super) fn undo_where(&mut self, is_over: impl Fn(&Timed) -> bool) -> usize {
        let over: Vec<usize> = (0..self.course.len()).filter(|&number| is_over(&self.course[number])).collect();
        for &number in &over {
            // A node that is to boot while it is still going off does not take its time any more.
            if self.course[number].goes_off() {
                self.actions.push(Action::Begin { entry: number });
            }
            self.course[number].state = TimedState::Ended;
            self.actions.push(Action::Undo { entry: number });
            self.boot(number);
            let what = self.course[number].plan.what.clone();
            self.report_timed(number, EventKind::Undone { what, load: None });
            if let Some(process) = self.killed_by(number) {
                self.entries[process].revive(self.now_ns);
            }
        }
        over.len()
    }

    /// Fixes when an entry begins that waits for another one, once that has come; whether anything changed.
    fn await_cause(&mut self, now_ns: i64, number: usize) -> bool {
        let entry = &self.course[number];
        let (TimedState::Waiting, Some(awaited), When::After { wait_ns, .. }) =
            (entry.state, entry.after, &entry.plan.when)
        else {
            return false;
        };
        match self.outlook(awaited) {
            Outlook::Pending => return false,
            Outlook::Reached => {
                self.course[number].state = TimedState::Due { at_ns: now_ns.saturating_add(*wait_ns) };
            }
            Outlook::Missed => {
                let reason = format!("it waits for {}", self.why_missed(awaited));
                self.skip_timed(number, reason, self.is_elsewhere(awaited.entry));
            }
        }
        true
    }

    fn begin(&mut self, begin_ns: i64, number: usize) {
        if let Some(reason) = self.why_not(&self.course[number].plan) {
            self.skip_timed(number, reason, false);
            return;
        }
        if let Effect::PowerOn { node } = &self.course[number].plan.effect {
            let node = node.clone();
            self.undo_where(|entry| entry.has_off(&node));
        }
        let entry = &mut self.course[number];
        entry.begin(begin_ns);
        let kind = match entry.plan.effect {
            Effect::ChangeLink { .. } => EventKind::LinkChanged { at_ns: begin_ns },
            _ => EventKind::Began { what: entry.plan.what.clone() },
        };
        if !self.course[number].goes_off() && !self.course[number].begins_later() {
            self.actions.push(Action::Begin { entry: number });
        }
        self.report_timed(number, kind);
        self.power_off(number);
        if let Some(process) = self.killed_by(number) {
            let revives = self.course[number].plan.for_ns.is_some();
            self.entries[process].killed = Some(Killed { revives, with_node: false, is_due: false });
        }
    }

    /// The processes of a node that goes off end with it; one that is shut down asks them to.
    fn power_off(&mut self, number: usize) {
        let Effect::PowerOff { node, how } = &self.course[number].plan.effect else { return };
        let (node, is_orderly) = (node.clone(), *how != Off::Crash);
        for process in 0..self.entries.len() {
            if self.entries[process].process.node != node {
                continue;
            }
            self.entries[process].power_off();
            if is_orderly && matches!(self.entries[process].state, State::Running { stop: None, .. }) {
                self.stop(self.now_ns, process, false);
            }
        }
    }

    /// A node that is being shut down is off once its processes have ended; whether it is now.
    fn go_off(&mut self, now_ns: i64, number: usize) -> bool {
        let Effect::PowerOff { node, how } = &self.course[number].plan.effect else { return false };
        let how = *how;
        let runs = self.entries.iter().any(|entry| entry.process.node == *node && entry.is_active());
        let TimedState::Begun { end_ns, is_done: false, .. } = self.course[number].state else { return false };
        if runs || how == Off::Crash {
            return false;
        }
        let end_ns = if how == Off::Reboot { Some(now_ns) } else { end_ns };
        self.course[number].state = TimedState::Begun { end_ns, turn: None, is_done: true };
        self.actions.push(Action::Begin { entry: number });
        if how == Off::Reboot {
            self.undo_where(|entry| entry.end_ns().is_some_and(|instant| instant <= now_ns));
        }
        true
    }

    /// A node boots, and what it is to start with that starts.
    fn boot(&mut self, number: usize) {
        let Effect::PowerOff { node, .. } = &self.course[number].plan.effect else { return };
        for entry in self.entries.iter_mut().filter(|entry| entry.process.node == *node) {
            entry.revive(self.now_ns);
        }
    }

    /// Whether a node is off, or going off.
    pub(super) fn is_off(&self, node: &str) -> bool {
        self.course.iter().any(|entry| entry.has_off(node))
    }

    /// Whether it is, and never boots again.
    pub(super) fn is_off_for_good(&self, node: &str) -> bool {
        let boots = |entry: &Timed| match &entry.plan.effect {
            Effect::PowerOff { how, .. } => entry.has_off(node) && (entry.end_ns().is_some() || *how == Off::Reboot),
            Effect::PowerOn { node: other } => {
                other == node && matches!(entry.state, TimedState::Waiting | TimedState::Due { .. })
            }
            _ => false,
        };
        self.is_off(node) && !self.course.iter().any(boots)
    }

    /// The process that an entry kills, if it does that.
    fn killed_by(&self, number: usize) -> Option<usize> {
        let Effect::Kill { process, .. } = &self.course[number].plan.effect else { return None };
        self.entries.iter().position(|entry| entry.process.name == *process)
    }

    /// Why an entry that is due cannot begin.
    pub(super) fn why_not(&self, entry: &plan::Timed) -> Option<String> {
        let effect = &entry.effect;
        if let Some(other) = self.course.iter().find(|other| other.has_begun() && other.meets(effect)) {
            let how = match effect {
                Effect::Pause { .. } => "paused",
                Effect::BreakDisk { .. } => "broken",
                Effect::SlowCpu { .. } => "slowed down",
                Effect::TakeMemory { .. } => "taken memory of",
                _ => "switched off",
            };
            return Some(format!("{} has {how} that already", other.plan.name));
        }
        if let Some(others) = self.no_place_beside(entry) {
            return Some(format!("{others} has a hold of that link already"));
        }
        let (node, process) = match effect {
            Effect::Pause { node, .. }
            | Effect::SendLoad { node, .. }
            | Effect::SetClock { node, .. }
            | Effect::SlowCpu { node, .. }
            | Effect::TakeMemory { node, .. }
                if self.is_off(node) =>
            {
                return Some(format!("node {node} is off"))
            }
            Effect::SetClock { node, by_ns, .. } => return self.no_such_date(node, *by_ns),
            Effect::Pause { node, process } => (node, process.as_ref()?),
            Effect::Kill { node, process } => (node, process),
            Effect::PowerOn { node } if !self.is_off(node) => return Some(format!("node {node} is on")),
            _ => return None,
        };
        let runs =
            |entry: &super::Entry| entry.process.name == *process && matches!(entry.state, State::Running { .. });
        (!self.entries.iter().any(runs)).then(|| format!("process {process} on {node} is not running"))
    }

    /// Why the date of a node cannot be that much later, with what others have made of it that last.
    fn no_such_date(&self, node: &str, by_ns: i64) -> Option<String> {
        let others =
            self.course.iter().filter(|other| other.has_begun()).filter_map(|other| match &other.plan.effect {
                Effect::SetClock { node: of, by_ns, .. } if of == node => Some(*by_ns),
                _ => None,
            });
        let is_far = others.fold(by_ns, i64::saturating_add).unsigned_abs() > JUMP_NS_MAX;
        is_far.then(|| format!("with the others that last, the clock of {node} would be off by more than 50 years"))
    }

    /// Those that have begun with a link that an entry is of, where the plan does not say what it is under all of them.
    fn no_place_beside(&self, entry: &plan::Timed) -> Option<String> {
        let Effect::ImpairLink { beside, .. } = &entry.effect else { return None };
        let lasting = self.course.iter().filter(|other| other.has_begun() && other.shares_link(&entry.effect));
        let others: BTreeSet<&str> = lasting.map(|other| other.plan.name.as_str()).collect();
        let all = others.iter().copied().chain([entry.name.as_str()]).collect::<BTreeSet<_>>();
        let is_known = others.is_empty() || beside.contains_key(&key_of(all.into_iter()));
        (!is_known).then(|| key_of(others.into_iter()))
    }

    /// An entry can never begin. It is the run's failure, unless what it waited for failed in another guest, or somebody
    /// has asked for it by hand.
    pub(super) fn skip_timed(&mut self, number: usize, reason: String, failed_elsewhere: bool) {
        if !failed_elsewhere && !self.course[number].by_hand {
            self.fail(format!("{} was skipped: {reason}", self.course[number].plan.name));
        }
        self.course[number].state = TimedState::Skipped;
        self.report_timed(number, EventKind::Skipped { reason });
    }

    fn report_timed(&mut self, number: usize, kind: EventKind) {
        if self.course[number].tells {
            self.actions.push(Action::Report { entry: Place::Timed(number), kind });
        }
    }

    /// Whether a moment comes.
    pub(super) fn outlook(&self, awaited: Awaited) -> Outlook {
        let moments = match awaited.entry {
            Place::Process(process) => self.entries[process].moments(),
            Place::Timed(number) => self.course[number].moments(),
        };
        moments.of(awaited.moment)
    }

    pub(super) fn is_elsewhere(&self, entry: Place) -> bool {
        match entry {
            Place::Process(process) => matches!(self.entries[process].state, State::Elsewhere(_)),
            Place::Timed(number) => matches!(self.course[number].state, TimedState::Elsewhere(_)),
        }
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "power_tests.rs"]
mod power_tests;
