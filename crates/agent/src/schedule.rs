//! Which process may start, which must end, and how the run ends: a state machine that reads no clock.
//!
//! The schedule is fed with what happened and when ([`Schedule::handle`]), answers with what to do, and names the next
//! instant at which it wants to be asked again ([`Schedule::next_deadline_ns`]). All instants are virtual nanoseconds
//! since the run's virtual 0. Since time is an argument, a run of an hour is tested by a table of numbers.
//!
//! A process goes through these states, each at most once:
//!
//! ```text
//! waiting ──► starting ──► running ──► ended
//!    │            └──► start failed
//!    └──► skipped: what it waits for can never come
//! ```
//!
//! What others wait for in a process is its *milestone*: its readiness if it has one, else its start if it is in the
//! background, else its end as expected. A milestone is pending, reached or missed; a missed one skips those that wait
//! for it, and theirs in turn. A failure never ends the run by itself, so that the other processes give their results;
//! it decides the outcome, and the first failure is the reason.
//!
//! The run goes on until no foreground process can do anything more, or `stop_after`, or a stop from outside. Then
//! whatever runs is stopped: SIGTERM, and SIGKILL after the grace. Without any foreground process `stop_after` is what
//! ends the run; without that either it ends at once. A run that stays goes on in any case, until it is stopped.
//!
//! Of a run over several guests each has a schedule of its own. It carries out its own processes, knows of the others
//! what their schedules tell it ([`Standing`]), and tells them the same of its own.

mod entry;

use std::time::Duration;

use crate::plan::{Plan, Ready};
use crate::protocol::{End, EventKind, Outcome};
use entry::{Entry, Readiness, State, Stop};
pub use entry::{Milestone, Standing};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// An instant came.
    Tick,
    /// A process was executed.
    Started {
        /// Its place in the plan.
        process: usize,
        /// Its number in the node.
        pid: i32,
    },
    /// A process could not be executed.
    StartFailed {
        /// Its place in the plan.
        process: usize,
        /// Why.
        reason: String,
    },
    /// The readiness of a process was seen.
    Ready {
        /// Its place in the plan.
        process: usize,
    },
    /// A process ended.
    Ended {
        /// Its place in the plan.
        process: usize,
        /// How.
        end: End,
    },
    /// The schedule of another guest tells how a process of it stands.
    Told {
        /// Its place in the plan.
        process: usize,
        /// How.
        standing: Standing,
    },
    /// The host wants the run to end.
    Stop {
        /// Why.
        reason: String,
    },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Execute a process.
    Start {
        /// Its place in the plan.
        process: usize,
    },
    /// Ask a process and its group to end (SIGTERM).
    Terminate {
        /// Its place in the plan.
        process: usize,
    },
    /// End a process and its group (SIGKILL).
    Kill {
        /// Its place in the plan.
        process: usize,
    },
    /// Tell the other guests how a process of this one stands now.
    Tell {
        /// Its place in the plan.
        process: usize,
        /// How.
        standing: Standing,
    },
    /// Tell the host what happened.
    Report {
        /// The process in the plan.
        process: usize,
        /// What happened.
        kind: EventKind,
    },
    /// The run is over.
    Finish {
        /// How.
        outcome: Outcome,
        /// Why.
        reason: String,
    },
}

/// How far the run is.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug)]
pub struct Schedule {
    entries: Vec<Entry>,
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
    /// The name in an `after` that no process has.
    pub fn new(plan: &Plan, guest: &str) -> Result<Self, String> {
        let is_elsewhere = |node: &str| plan.nodes.iter().any(|entry| entry.name == node && entry.guest != guest);
        let place =
            |name: &String| plan.processes.iter().position(|process| process.name == *name).ok_or_else(|| name.clone());
        let entries = plan
            .processes
            .iter()
            .map(|process| {
                Ok(Entry {
                    process: process.clone(),
                    after: process.after.iter().map(place).collect::<Result<_, _>>()?,
                    state: if is_elsewhere(&process.node) {
                        State::Elsewhere(Standing::AT_FIRST)
                    } else {
                        State::Waiting
                    },
                    readiness: Readiness::Awaited,
                    told: Standing::AT_FIRST,
                })
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            entries,
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
            Input::Ended { process, end } => self.on_ended(process, end),
            Input::Told { process, standing } => self.entries[process].state = State::Elsewhere(standing),
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
            State::Running { since_ns, stop } => entry.deadlines_ns(since_ns, stop).collect(),
            _ => Vec::new(),
        });
        entries.chain(self.stop_after_ns).filter(|&instant| instant > self.now_ns).min()
    }

    /// The processes whose readiness has to be looked for.
    pub fn awaited(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let running = matches!(entry.state, State::Running { .. });
            let looked_for = matches!(entry.process.ready, Some(Ready::Tcp { .. } | Ready::Output { .. }));
            (running && looked_for && entry.readiness == Readiness::Awaited).then_some(index)
        })
    }

    fn on_started(&mut self, now_ns: i64, process: usize, pid: i32) {
        self.entries[process].state = State::Running { since_ns: now_ns, stop: None };
        self.report(process, EventKind::Started { pid });
        if matches!(self.phase, Phase::Stopping { .. }) {
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

    fn on_ended(&mut self, process: usize, end: End) {
        let entry = &mut self.entries[process];
        let State::Running { stop, .. } = entry.state else { return };
        let timed_out = stop.is_some_and(|stop| stop.timed_out);
        let stopped = stop.is_some();
        let wanted = entry.process.expect_exit;
        let expected = !timed_out && (stopped || wanted.map_or(true, |status| end == End::Status(status)));
        entry.state = State::Ended { as_expected: expected };
        let name = entry.name();
        if !expected && !timed_out {
            let wanted = wanted.unwrap_or_default();
            self.fail(match end {
                End::Status(status) => format!("{name} exited with status {status}, expected {wanted}"),
                End::Signal(signal) => format!("{name} was killed by signal {signal}, expected status {wanted}"),
            });
        } else if !stopped && entry.process.ready.is_some() && entry.readiness == Readiness::Awaited {
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

    /// Starts what may start, skips what never can, and ends the run when nothing is left to wait for.
    fn advance(&mut self, now_ns: i64) {
        // A skip can make another one certain, so this goes on until nothing changes.
        while (0..self.entries.len()).filter(|&process| self.try_start(now_ns, process)).count() > 0 {}
        let mut foreground = self.entries.iter().filter(|entry| !entry.process.background).peekable();
        let ends_by_itself = !self.stays && (foreground.peek().is_some() || self.stop_after_ns.is_none());
        if ends_by_itself && foreground.all(|entry| entry.state.is_final()) {
            self.stop_all(now_ns, None);
        }
    }

    /// Whether the state of a waiting process changed.
    fn try_start(&mut self, now_ns: i64, process: usize) -> bool {
        let entry = &self.entries[process];
        if entry.state != State::Waiting {
            return false;
        }
        let missed = entry.after.iter().find(|&&other| self.entries[other].milestone() == Milestone::Missed);
        let why = match (missed, entry.process.stop_ns) {
            (Some(&other), _) => Some(format!("it waits for {}", self.why_missed(other))),
            (None, Some(stop_ns)) if stop_ns <= now_ns => {
                Some(format!("it could not start before its stop at {}", seconds(stop_ns)))
            }
            _ => None,
        };
        if let Some(reason) = why {
            // A failure elsewhere is the outcome of that guest.
            if !missed.is_some_and(|&other| matches!(self.entries[other].state, State::Elsewhere(_))) {
                self.fail(format!("{} was skipped: {reason}", entry.name()));
            }
            self.entries[process].state = State::Skipped;
            self.report(process, EventKind::Skipped { reason });
            return true;
        }
        let due = entry.process.start_ns <= now_ns
            && entry.after.iter().all(|&other| self.entries[other].milestone() == Milestone::Reached);
        if due {
            self.entries[process].state = State::Starting;
            self.actions.push(Action::Start { process });
        }
        due
    }

    fn why_missed(&self, process: usize) -> String {
        let entry = &self.entries[process];
        let how = match entry.state {
            state if state.is_skipped() => "which was skipped",
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
        for process in 0..self.entries.len() {
            if matches!(self.entries[process].state, State::Running { stop: None, .. }) {
                self.stop(now_ns, process, false);
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
            let standing = entry.standing();
            if standing != entry.told && !matches!(entry.state, State::Elsewhere(_)) {
                entry.told = standing;
                self.actions.push(Action::Tell { process, standing });
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
        self.actions.push(Action::Report { process, kind });
    }
}

/// A duration for people, as `1.5 s`.
fn seconds(duration_ns: i64) -> String {
    format!("{} s", Duration::from_nanos(duration_ns.unsigned_abs()).as_secs_f64())
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
