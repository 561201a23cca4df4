//! A process of a schedule: where it is in its life, and what others have to know of it.

use serde::{Deserialize, Serialize};

use super::moments::{Awaited, Moments, Outlook};
use crate::channel::protocol::End;
use crate::plan::{Process, Ready};

/// Where a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Waiting,
    Starting,
    Running {
        since_ns: i64,
        stop: Option<Stop>,
    },
    Ended {
        as_expected: bool,
    },
    /// It has ended, and starts again at this instant; `None`: when the fault ends that has killed it.
    Restarting {
        at_ns: Option<i64>,
    },
    StartFailed,
    Skipped,
    /// It is in another guest, where this is what was told of it.
    Elsewhere(Moments),
}

impl State {
    pub fn is_final(self) -> bool {
        match self {
            Self::Elsewhere(moments) => moments.is_final(),
            _ => matches!(self, Self::Ended { .. } | Self::StartFailed | Self::Skipped),
        }
    }
}

/// How far we are with ending a process, and when patience ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// `None` once SIGKILL was sent.
    pub kill_ns: Option<i64>,
    pub timed_out: bool,
}

/// What holds a process that a fault has killed, or whose node goes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// It starts again when the fault ends.
    pub revives: bool,
    /// Nothing else starts it again, as its node is off.
    pub with_node: bool,
    /// The fault has ended, maybe before the process was gone.
    pub is_due: bool,
}

/// The readiness of a process that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    Awaited,
    Reached,
    Missed,
}

/// A process, where it is, and what it waits for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry {
    pub process: Process,
    pub after: Vec<Awaited>,
    pub state: State,
    pub readiness: Readiness,
    /// What the other guests know of it.
    pub told: Moments,
    /// Set from the kill until it starts again, or for good.
    pub killed: Option<Killed>,
    /// How often it was started again without having lived for long.
    pub restarts: u32,
}

impl Entry {
    /// The state of one that a plan has, before virtual 0.
    pub fn new(process: Process, after: Vec<Awaited>, is_here: bool) -> Self {
        let state = if is_here { State::Waiting } else { State::Elsewhere(Moments::AT_FIRST) };
        let (readiness, told) = (Readiness::Awaited, Moments::AT_FIRST);
        Self { process, after, state, readiness, told, killed: None, restarts: 0 }
    }

    /// Its node goes off, and all that it runs ends with it.
    pub fn power_off(&mut self) {
        let revives = self.process.boot;
        match self.state {
            State::Starting | State::Running { .. } => {
                self.killed = Some(Killed { revives, with_node: true, is_due: false });
            }
            State::Restarting { .. } if revives => {
                self.killed = Some(Killed { revives, with_node: true, is_due: false });
                self.state = State::Restarting { at_ns: None };
            }
            State::Restarting { .. } => self.state = State::Ended { as_expected: false },
            _ => {}
        }
    }

    /// The fault that has killed it ends; also one that was to last for ever, which somebody undoes by hand.
    pub fn revive(&mut self, now_ns: i64) {
        if let Some(killed) = &mut self.killed {
            killed.is_due = true;
        }
        let is_revived = matches!(self.state, State::Ended { .. }) && self.killed.is_some_and(|killed| killed.revives);
        if is_revived || matches!(self.state, State::Restarting { at_ns: None }) {
            self.state = State::Restarting { at_ns: Some(now_ns) };
        }
    }

    /// Its state if it is started again after this end, which nobody of us has asked for.
    pub fn restarted(&mut self, since_ns: i64, now_ns: i64, end: End) -> Option<State> {
        if let Some(killed) = self.killed.filter(|killed| killed.revives) {
            return Some(State::Restarting { at_ns: killed.is_due.then_some(now_ns) });
        }
        if self.killed.is_some_and(|killed| killed.with_node) {
            return None;
        }
        let restart = self.process.restart.as_ref()?;
        let failed = end != End::Status(self.process.expect_exit.unwrap_or(0));
        if restart.on_failure && !failed && self.killed.is_none() {
            return None;
        }
        if now_ns.saturating_sub(since_ns) >= restart.reset_ns {
            self.restarts = 0;
        }
        let longer = 1_i64.checked_shl(self.restarts.min(62)).unwrap_or(i64::MAX);
        self.restarts += 1;
        let delay_ns = restart.delay_ns.saturating_mul(longer).min(restart.delay_max_ns);
        Some(State::Restarting { at_ns: Some(now_ns.saturating_add(delay_ns)) })
    }

    pub fn moments(&self) -> Moments {
        let (begin, end) = match self.state {
            State::Elsewhere(moments) => return moments,
            State::Waiting | State::Starting => (Outlook::Pending, Outlook::Pending),
            State::Running { .. } | State::Restarting { .. } => (Outlook::Reached, Outlook::Pending),
            State::Ended { .. } => (Outlook::Reached, Outlook::Reached),
            State::StartFailed | State::Skipped => (Outlook::Missed, Outlook::Missed),
        };
        Moments { begin, milestone: self.milestone(begin), end }
    }

    fn milestone(&self, begin: Outlook) -> Outlook {
        if self.process.ready.is_some() {
            return match self.readiness {
                Readiness::Reached => Outlook::Reached,
                Readiness::Missed => Outlook::Missed,
                Readiness::Awaited if self.state.is_final() => Outlook::Missed,
                Readiness::Awaited => Outlook::Pending,
            };
        }
        match self.state {
            State::Ended { as_expected: false } if !self.process.background => Outlook::Missed,
            State::Running { .. } | State::Restarting { .. } if !self.process.background => Outlook::Pending,
            _ => begin,
        }
    }

    /// The instants at which a running process needs attention.
    pub fn deadlines_ns(&self, since_ns: i64, stop: Option<Stop>) -> impl Iterator<Item = i64> {
        let readiness = match (&self.process.ready, self.readiness) {
            (Some(Ready::Delay { delay_ns }), Readiness::Awaited) => Some(since_ns.saturating_add(*delay_ns)),
            (Some(_), Readiness::Awaited) => Some(since_ns.saturating_add(self.process.ready_timeout_ns)),
            _ => None,
        };
        let end = match stop {
            Some(stop) => [stop.kill_ns, None],
            None => [self.process.stop_ns, self.process.timeout_ns.map(|limit| since_ns.saturating_add(limit))],
        };
        readiness.into_iter().chain(end.into_iter().flatten())
    }

    /// Whether it has a readiness that did not come yet.
    pub fn is_awaited(&self) -> bool {
        self.process.ready.is_some() && self.readiness == Readiness::Awaited
    }

    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Starting | State::Running { .. })
    }

    pub fn name(&self) -> String {
        format!("process {} on {}", self.process.name, self.process.node)
    }
}
