//! A process of a schedule: where it is in its life, and what others have to know of it.

use serde::{Deserialize, Serialize};

use crate::plan::{Process, Ready};

/// Where a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    StartFailed,
    Skipped,
    /// It is in another guest, where this is what was told of it.
    Elsewhere(Standing),
}

impl State {
    pub fn is_final(self) -> bool {
        match self {
            Self::Elsewhere(standing) => standing.is_final,
            _ => matches!(self, Self::Ended { .. } | Self::StartFailed | Self::Skipped),
        }
    }

    pub fn is_skipped(self) -> bool {
        match self {
            Self::Elsewhere(standing) => standing.skipped,
            _ => self == Self::Skipped,
        }
    }
}

/// What other guests have to know of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// How far it is with what others wait for.
    pub milestone: Milestone,
    /// Whether nothing more can become of it.
    pub is_final: bool,
    /// Whether that is since it never started.
    pub skipped: bool,
}

impl Standing {
    /// Before anything was told.
    pub const AT_FIRST: Self = Self { milestone: Milestone::Pending, is_final: false, skipped: false };
}

/// That we are ending a process, and when patience ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// `None` once SIGKILL was sent.
    pub kill_ns: Option<i64>,
    pub timed_out: bool,
}

/// The readiness of a process that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Awaited,
    Reached,
    Missed,
}

/// What others wait for in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Milestone {
    /// It may yet come.
    Pending,
    /// It came.
    Reached,
    /// It can never come.
    Missed,
}

/// A process, where it is, and what it waits for.
#[derive(Debug)]
pub struct Entry {
    pub process: Process,
    pub after: Vec<usize>,
    pub state: State,
    pub readiness: Readiness,
    /// What the other guests know of it.
    pub told: Standing,
}

impl Entry {
    pub fn milestone(&self) -> Milestone {
        let is_elsewhere = matches!(self.state, State::Elsewhere(_));
        if self.process.ready.is_some() && !is_elsewhere {
            return match self.readiness {
                Readiness::Reached => Milestone::Reached,
                Readiness::Missed => Milestone::Missed,
                Readiness::Awaited if self.state.is_final() => Milestone::Missed,
                Readiness::Awaited => Milestone::Pending,
            };
        }
        match self.state {
            State::Running { .. } | State::Ended { .. } if self.process.background => Milestone::Reached,
            State::Waiting | State::Starting | State::Running { .. } => Milestone::Pending,
            State::Ended { as_expected: true } => Milestone::Reached,
            State::StartFailed | State::Skipped | State::Ended { as_expected: false } => Milestone::Missed,
            State::Elsewhere(standing) => standing.milestone,
        }
    }

    pub fn standing(&self) -> Standing {
        Standing { milestone: self.milestone(), is_final: self.state.is_final(), skipped: self.state.is_skipped() }
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

    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Starting | State::Running { .. })
    }

    pub fn name(&self) -> String {
        format!("process {} on {}", self.process.name, self.process.node)
    }
}
