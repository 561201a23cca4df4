//! The course of a run: what may begin, what must end, and how the run ends: a state machine that reads no clock.
//!
//! The schedule is fed with what happened and when ([`Schedule::handle`]), answers with what to do, and names the next
//! instant at which it wants to be asked again ([`Schedule::next_deadline_ns`]). All instants are virtual nanoseconds
//! since the run's virtual 0. Since time is an argument, a run of an hour is tested by a table of numbers.
//!
//! A process goes through these states, each at most once unless it is started again:
//!
//! ```text
//! waiting ──► starting ──► running ──► ended
//!    │            └──► start failed
//!    └──► skipped: what it waits for can never come
//! ```
//!
//! One that is to be started again goes from its end to *restarting*, and from there to starting.
//!
//! Beside processes the course has other entries (`schedule/timed.rs`): effects that begin at an instant, or so long after
//! a moment of another entry, and are undone so long after they began.
//!
//! Others may wait for three moments of an entry: its begin, its end, however it comes, and its *milestone*. That is its
//! readiness if it has one, else its start if it is in the background, else its end as expected. A moment is pending,
//! reached or missed; a missed one skips those that wait for it, and theirs in turn. A failure never ends the run by itself, so that the other processes give their results;
//! it decides the outcome, and the first failure is the reason.
//!
//! The run goes on until no foreground process can do anything more, or `stop_after`, or a stop from outside. Then
//! whatever runs is stopped: SIGTERM, and SIGKILL after the grace. Without any foreground process `stop_after` is what
//! ends the run; without that either it ends at once. A run that stays goes on in any case, until it is stopped.
//!
//! Of a run over several guests each has a schedule of its own. It carries out its own processes, knows of the others
//! what their schedules tell it ([`Moments`]), and tells them the same of its own.

mod by_hand;
mod course;
mod entry;
mod exchange;
mod moments;
mod timed;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::channel::protocol::{End, EventKind, Outcome};
use crate::plan::{self, Plan, Ready, When};
use entry::{Entry, Readiness, State, Stop};
pub use exchange::{Action, Input};
use moments::Awaited;
pub use moments::{Moments, Outlook, Place};
use timed::{State as TimedState, Timed};

/// How far the run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// Virtual 0 is yet to come.
    Ahead,
    Running,
    /// Everything is being stopped; the reason, if the run was cut short.
    Stopping {
        cut_short: Option<String>,
    },
    Over,
}

/// The state of the whole schedule.
#[derive(Debug, Serialize, Deserialize)]
pub struct Schedule {
    entries: Vec<Entry>,
    course: Vec<Timed>,
    /// Nodes of other guests.
    nodes_elsewhere: BTreeSet<String>,
    grace_ns: i64,
    stop_after_ns: Option<i64>,
    stays: bool,
    phase: Phase,
    /// The instant that was handled last; an event that was told late may be older than the one before it.
    now_ns: i64,
    failure: Option<String>,
    actions: Vec<Action>,
    has_others: bool,
}

impl Schedule {
    /// The schedule of a plan for the guest named `guest`, before virtual 0.
    ///
    /// # Errors
    /// The name in an `after` that nothing has.
    pub fn new(plan: &Plan, guest: &str) -> Result<Self, String> {
        let elsewhere = plan.nodes.iter().filter(|node| node.guest != guest);
        let nodes_elsewhere: BTreeSet<String> = elsewhere.map(|node| node.name.clone()).collect();
        let is_here = |node: &str| !nodes_elsewhere.contains(node);
        let entries = plan
            .processes
            .iter()
            .map(|process| {
                let after = process.after.iter().map(|awaited| find(plan, awaited)).collect::<Result<_, _>>()?;
                Ok(Entry::new(process.clone(), after, is_here(&process.node)))
            })
            .collect::<Result<_, String>>()?;
        let course = plan
            .course
            .iter()
            .map(|timed| {
                let after = match &timed.when {
                    When::At { .. } => None,
                    When::After { awaited, .. } => Some(find(plan, awaited)?),
                };
                Ok(Timed::new(timed.clone(), after, is_here))
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            entries,
            course,
            nodes_elsewhere,
            grace_ns: plan.grace_ns,
            stop_after_ns: plan.stop_after_ns,
            stays: plan.stays,
            phase: Phase::Ahead,
            now_ns: i64::MIN,
            failure: None,
            actions: Vec::new(),
            has_others: plan.guests.len() > 1,
        })
    }

    /// Takes in what happened at `now_ns` and says what is to be done, in this order.
    pub fn handle(&mut self, now_ns: i64, input: Input) -> Vec<Action> {
        self.now_ns = now_ns;
        match input {
            Input::Tick => {}
            Input::Started { process, pid } => self.on_started(now_ns, process, pid),
            Input::StartFailed { process, reason } => self.on_start_failed(process, reason),
            Input::Ready { process } => self.on_ready(process),
            Input::Ended { process, end } => self.on_ended(now_ns, process, end),
            Input::Told { entry, moments } => self.on_told(entry, moments),
            Input::Stop { reason } => self.stop_all(now_ns, Some(reason)),
        }
        if self.phase == Phase::Ahead && now_ns >= 0 {
            self.phase = Phase::Running;
        }
        self.meet_deadlines(now_ns);
        if self.phase == Phase::Running {
            self.advance(now_ns);
        }
        self.tell_others();
        self.finish_if_gone();
        std::mem::take(&mut self.actions)
    }

    /// The next instant at which [`Input::Tick`] is wanted; `None`: only an event can change anything.
    pub fn next_deadline_ns(&self) -> Option<i64> {
        if self.phase == Phase::Ahead {
            return Some(0);
        }
        let entries = self.entries.iter().flat_map(|entry| match entry.state {
            State::Waiting => std::iter::once(entry.process.start_ns).chain(entry.process.stop_ns).collect(),
            State::Restarting { at_ns } => at_ns.into_iter().chain(entry.process.stop_ns).collect(),
            State::Running { since_ns, stop } => entry.deadlines_ns(since_ns, stop).collect(),
            _ => Vec::new(),
        });
        let course = self.course.iter().filter_map(Timed::deadline_ns);
        entries.chain(course).chain(self.stop_after_ns).filter(|&instant| instant > self.now_ns).min()
    }

    /// The processes whose readiness has to be looked for.
    pub fn awaited(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let running = matches!(entry.state, State::Running { .. });
            let looked_for = matches!(entry.process.ready, Some(Ready::Tcp { .. } | Ready::Output { .. }));
            (running && looked_for && entry.readiness == Readiness::Awaited).then_some(index)
        })
    }

    fn on_told(&mut self, entry: Place, moments: Moments) {
        match entry {
            Place::Process(process) => self.entries[process].state = State::Elsewhere(moments),
            // What this guest carries out, too, it knows better.
            Place::Timed(number) => {
                let state = &mut self.course[number].state;
                if matches!(state, TimedState::Elsewhere(_)) {
                    *state = TimedState::Elsewhere(moments);
                }
            }
        }
    }

    fn on_started(&mut self, now_ns: i64, process: usize, pid: i32) {
        self.entries[process].state = State::Running { since_ns: now_ns, stop: None };
        self.report(process, EventKind::Started { pid });
        if matches!(self.phase, Phase::Stopping { .. }) || self.is_off(&self.entries[process].process.node) {
            self.stop(now_ns, process, false);
        }
    }

    fn on_start_failed(&mut self, process: usize, reason: String) {
        self.entries[process].state = State::StartFailed;
        self.fail(format!("{} could not start: {reason}", self.entries[process].name()));
        self.report(process, EventKind::StartFailed { reason });
    }

    fn on_ready(&mut self, process: usize) {
        if self.entries[process].readiness == Readiness::Awaited {
            self.entries[process].readiness = Readiness::Reached;
            self.report(process, EventKind::Ready);
        }
    }

    fn on_ended(&mut self, now_ns: i64, process: usize, end: End) {
        let entry = &mut self.entries[process];
        let State::Running { since_ns, stop } = entry.state else { return };
        let timed_out = stop.is_some_and(|stop| stop.timed_out);
        let stopped = stop.is_some();
        let wanted = entry.process.expect_exit;
        let as_expected = !timed_out && (stopped || wanted.map_or(true, |status| end == End::Status(status)));
        let is_running = self.phase == Phase::Running;
        let goes_on = is_running && (!stopped || entry.killed.is_some());
        let restarted = if goes_on { entry.restarted(since_ns, now_ns, end) } else { None };
        // What a fault has killed has not failed, and has not done either what it is there for.
        let is_meant = entry.killed.is_some() || restarted.is_some();
        let expected = as_expected || (!timed_out && is_meant);
        entry.state = restarted.unwrap_or(State::Ended { as_expected });
        let never_ready = !stopped && !is_meant && entry.is_awaited();
        let name = entry.name();
        if !expected && !timed_out {
            let wanted = wanted.unwrap_or_default();
            self.fail(match end {
                End::Status(status) => format!("{name} exited with status {status}, expected {wanted}"),
                End::Signal(signal) => format!("{name} was killed by signal {signal}, expected status {wanted}"),
            });
        } else if never_ready {
            self.fail(format!("{name} ended before it was ready"));
        }
        self.report(process, EventKind::Exited { end, expected, timed_out, stopped });
    }

    /// Does what the running processes are due for.
    fn meet_deadlines(&mut self, now_ns: i64) {
        for process in 0..self.entries.len() {
            let State::Running { since_ns, stop } = self.entries[process].state else { continue };
            self.meet_readiness(now_ns, process, since_ns);
            let plan = &self.entries[process].process;
            match stop {
                Some(Stop { kill_ns: Some(kill_ns), timed_out }) if kill_ns <= now_ns => {
                    let stop = Some(Stop { kill_ns: None, timed_out });
                    self.entries[process].state = State::Running { since_ns, stop };
                    self.actions.push(Action::Kill { process });
                }
                Some(_) => {}
                None if plan.stop_ns.is_some_and(|instant| instant <= now_ns) => self.stop(now_ns, process, false),
                None => match plan.timeout_ns {
                    Some(limit_ns) if since_ns.saturating_add(limit_ns) <= now_ns => {
                        self.fail(format!(
                            "{} ran longer than its timeout of {}",
                            self.entries[process].name(),
                            seconds(limit_ns)
                        ));
                        self.stop(now_ns, process, true);
                    }
                    _ => {}
                },
            }
        }
        if self.phase == Phase::Running && self.stop_after_ns.is_some_and(|instant| instant <= now_ns) {
            let limit = seconds(self.stop_after_ns.unwrap_or_default());
            self.stop_all(now_ns, Some(format!("stop_after of {limit} was reached")));
        }
    }

    fn meet_readiness(&mut self, now_ns: i64, process: usize, since_ns: i64) {
        let entry = &self.entries[process];
        if entry.readiness != Readiness::Awaited {
            return;
        }
        let limit_ns = entry.process.ready_timeout_ns;
        let what = match &entry.process.ready {
            None => return,
            Some(Ready::Delay { delay_ns }) => {
                if since_ns.saturating_add(*delay_ns) <= now_ns {
                    self.on_ready(process);
                }
                return;
            }
            Some(Ready::Tcp { port }) => format!("it did not listen on TCP port {port}"),
            Some(Ready::Output { regex }) => format!("no line of its output matched \"{regex}\""),
        };
        if since_ns.saturating_add(limit_ns) <= now_ns {
            let reason = format!("{what} within {}", seconds(limit_ns));
            self.fail(format!("{} was not ready: {reason}", entry.name()));
            self.entries[process].readiness = Readiness::Missed;
            self.report(process, EventKind::ReadyTimeout { reason });
        }
    }

    /// Begins what may begin, skips what never can, and ends the run when nothing is left to wait for.
    fn advance(&mut self, now_ns: i64) {
        // A skip can make another one certain, so this goes on until nothing changes. A process that starts at the
        // instant of an effect finds it there.
        loop {
            let changed = self.advance_course(now_ns);
            let started = (0..self.entries.len()).filter(|&process| self.try_start(now_ns, process)).count();
            if !changed && started == 0 {
                break;
            }
        }
        let mut foreground = self.entries.iter().filter(|entry| !entry.process.background).peekable();
        let ends_by_itself = !self.stays && (foreground.peek().is_some() || self.stop_after_ns.is_none());
        if ends_by_itself && foreground.all(|entry| entry.state.is_final()) {
            self.stop_all(now_ns, None);
        }
    }

    /// Whether the state of a waiting process changed.
    fn try_start(&mut self, now_ns: i64, process: usize) -> bool {
        let node = &self.entries[process].process.node;
        let (is_off, is_off_for_good) = (self.is_off(node), self.is_off_for_good(node));
        let entry = &mut self.entries[process];
        if let State::Restarting { at_ns } = entry.state {
            let is_due = at_ns.is_some_and(|at_ns| at_ns <= now_ns) && !is_off;
            let is_over = is_off_for_good || entry.process.stop_ns.is_some_and(|stop_ns| stop_ns <= now_ns);
            if is_over {
                entry.state = State::Ended { as_expected: !is_off_for_good };
            } else if is_due {
                entry.state = State::Starting;
                entry.killed = None;
                self.actions.push(Action::Start { process });
            }
            return is_over || is_due;
        }
        let entry = &self.entries[process];
        if entry.state != State::Waiting {
            return false;
        }
        let missed = entry.after.iter().copied().find(|&awaited| self.outlook(awaited) == Outlook::Missed);
        let why = match (missed, entry.process.stop_ns) {
            _ if is_off_for_good && entry.process.start_ns <= now_ns => {
                Some(format!("node {} is off", entry.process.node))
            }
            (Some(awaited), _) => Some(format!("it waits for {}", self.why_missed(awaited))),
            (None, Some(stop_ns)) if stop_ns <= now_ns => {
                Some(format!("it could not start before its stop at {}", seconds(stop_ns)))
            }
            _ => None,
        };
        if let Some(reason) = why {
            // A failure elsewhere is the outcome of that guest.
            if !missed.is_some_and(|awaited| self.is_elsewhere(awaited.entry)) {
                self.fail(format!("{} was skipped: {reason}", entry.name()));
            }
            self.entries[process].state = State::Skipped;
            self.report(process, EventKind::Skipped { reason });
            return true;
        }
        let due = entry.process.start_ns <= now_ns
            && !is_off
            && entry.after.iter().all(|&awaited| self.outlook(awaited) == Outlook::Reached);
        if due {
            self.entries[process].state = State::Starting;
            self.actions.push(Action::Start { process });
        }
        due
    }

    /// What an entry is that waits for a moment in vain, and why that never comes.
    fn why_missed(&self, awaited: Awaited) -> String {
        let entry = match awaited.entry {
            Place::Process(process) => &self.entries[process],
            Place::Timed(number) => return format!("{}, which never began", self.course[number].plan.name),
        };
        let how = match entry.state {
            State::Skipped => "which was skipped",
            State::Elsewhere(moments) if moments.begin == Outlook::Missed => "which never began",
            _ if entry.process.ready.is_some() => "which did not become ready",
            _ => "which failed",
        };
        format!("{}, {how}", entry.process.name)
    }

    fn stop_all(&mut self, now_ns: i64, cut_short: Option<String>) {
        if !matches!(self.phase, Phase::Ahead | Phase::Running) {
            return;
        }
        self.phase = Phase::Stopping { cut_short };
        self.undo_all();
        for process in 0..self.entries.len() {
            match self.entries[process].state {
                State::Running { stop: None, .. } => self.stop(now_ns, process, false),
                State::Restarting { .. } => self.entries[process].state = State::Ended { as_expected: true },
                _ => {}
            }
        }
    }

    fn stop(&mut self, now_ns: i64, process: usize, timed_out: bool) {
        if let State::Running { since_ns, .. } = self.entries[process].state {
            let stop = Some(Stop { kill_ns: Some(now_ns.saturating_add(self.grace_ns)), timed_out });
            self.entries[process].state = State::Running { since_ns, stop };
            self.actions.push(Action::Terminate { process });
        }
    }

    /// Tells the other guests of what has changed for them.
    fn tell_others(&mut self) {
        if !self.has_others {
            return;
        }
        for (process, entry) in self.entries.iter_mut().enumerate() {
            let moments = entry.moments();
            if moments != entry.told && !matches!(entry.state, State::Elsewhere(_)) {
                entry.told = moments;
                self.actions.push(Action::Tell { entry: Place::Process(process), moments });
            }
        }
        for (number, entry) in self.course.iter_mut().enumerate().filter(|(_, entry)| entry.is_waited_for()) {
            let moments = entry.moments();
            if moments != entry.told && entry.tells {
                entry.told = moments;
                self.actions.push(Action::Tell { entry: Place::Timed(number), moments });
            }
        }
    }

    fn finish_if_gone(&mut self) {
        let Phase::Stopping { cut_short } = &self.phase else { return };
        if self.entries.iter().any(Entry::is_active) {
            return;
        }
        let (outcome, reason) = match (self.failure.take(), cut_short) {
            (Some(failure), _) => (Outcome::Failed, failure),
            (None, Some(reason)) => (Outcome::Stopped, reason.clone()),
            (None, None) => (Outcome::Done, String::new()),
        };
        self.phase = Phase::Over;
        self.actions.push(Action::Finish { outcome, reason });
    }

    fn fail(&mut self, reason: String) {
        self.failure.get_or_insert(reason);
    }

    fn report(&mut self, process: usize, kind: EventKind) {
        self.actions.push(Action::Report { entry: Place::Process(process), kind });
    }
}

/// The entry of a plan that something waits for.
fn find(plan: &Plan, awaited: &plan::Awaited) -> Result<Awaited, String> {
    let process = plan.processes.iter().position(|process| process.name == awaited.name).map(Place::Process);
    let timed = || plan.course.iter().position(|timed| timed.name == awaited.name).map(Place::Timed);
    let entry = process.or_else(timed).ok_or_else(|| awaited.name.clone())?;
    Ok(Awaited { entry, moment: awaited.moment })
}

/// A duration for people, as `1.5 s`.
fn seconds(duration_ns: i64) -> String {
    format!("{} s", Duration::from_nanos(duration_ns.unsigned_abs()).as_secs_f64())
}

#[cfg(test)]
mod tests;
