//! How an entry of the course stands: what those that wait for it have to know, in its own guest and in the others.

use serde::{Deserialize, Serialize};

use crate::plan::Moment;

/// Which entry of the course.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A process, by its place in the plan.
    Process(usize),
    /// Another entry, by its place in the plan's course.
    Timed(usize),
}

/// A moment of an entry, which another one waits for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Awaited {
    pub entry: Place,
    pub moment: Moment,
}

/// Whether a moment comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outlook {
    /// It may yet come.
    Pending,
    /// It came.
    Reached,
    /// It can never come.
    Missed,
}

/// How an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    /// See [`Moment`].
    pub begin: Outlook,
    /// See [`Moment`].
    pub milestone: Outlook,
    /// See [`Moment`].
    pub end: Outlook,
}

impl Moments {
    /// Before anything was told.
    pub const AT_FIRST: Self = Self::all(Outlook::Pending);

    /// All moments alike.
    pub const fn all(outlook: Outlook) -> Self {
        Self { begin: outlook, milestone: outlook, end: outlook }
    }

    /// Whether this moment comes.
    pub fn of(self, moment: Moment) -> Outlook {
        match moment {
            Moment::Begin => self.begin,
            Moment::Milestone => self.milestone,
            Moment::End => self.end,
        }
    }

    /// Whether nothing more can become of it.
    pub fn is_final(self) -> bool {
        self.end != Outlook::Pending
    }
}
