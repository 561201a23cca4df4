//! What the schedule is told, and what it answers.

use serde::{Deserialize, Serialize};

use super::moments::{Moments, Place};
use crate::channel::protocol::{End, EventKind, Outcome};

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
    /// The schedule of another guest tells how an entry of it stands.
    Told {
        /// Which.
        entry: Place,
        /// How.
        moments: Moments,
    },
    /// The host wants the run to end.
    Stop {
        /// Why.
        reason: String,
    },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Let an entry that is no process have its effect.
    Begin {
        /// Its place in the course.
        entry: usize,
    },
    /// Undo the effect of such an entry.
    Undo {
        /// Its place in the course.
        entry: usize,
    },
    /// Tell the other guests how an entry of this one stands now.
    Tell {
        /// Which.
        entry: Place,
        /// How.
        moments: Moments,
    },
    /// Tell the host what happened.
    Report {
        /// The entry that it happened to.
        entry: Place,
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
