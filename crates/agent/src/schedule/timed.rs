//! An entry of the course that is no process: an effect with a begin and, where it is undone, an end.

use serde::{Deserialize, Serialize};

use super::moments::{Awaited, Moments, Outlook};
use crate::plan::{self, Effect, Flap, Off, When};

/// Where an entry is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Waiting,
    /// What it waits for has come; it begins at this instant.
    Due {
        at_ns: i64,
    },
    /// It has its effect, until this instant if it has an end.
    Begun {
        end_ns: Option<i64>,
        turn: Option<Turn>,
        /// It is carried out; a node that is being shut down is off later than that begins.
        is_done: bool,
    },
    Ended,
    Skipped,
    /// Another guest carries it out, and this is what was told of it.
    Elsewhere(Moments),
}

/// When an effect that comes and goes, or is done again and again, is so next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    at_ns: i64,
    /// Whether it is there until then.
    is_there: bool,
}

/// An entry, where it is, and what it waits for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Timed {
    pub plan: plan::Timed,
    pub after: Option<Awaited>,
    pub state: State,
    /// When it began, if it has.
    pub began_ns: i64,
    /// Whether this guest is the one that tells of it. Of several that carry it out only one does.
    pub tells: bool,
    /// What the other guests know of it.
    pub told: Moments,
    /// How often it was done to its thing, of those that are done again and again.
    pub times: i64,
    /// Somebody has asked for it while the run goes on; other guests have it at another place, or not at all.
    pub by_hand: bool,
}

/// Whether a fault that somebody asks for at an instant begins then, and not later.
pub fn begins_now(plan: &plan::Timed, now_ns: i64) -> bool {
    matches!(plan.when, When::At { at_ns } if at_ns <= now_ns)
}

impl Timed {
    pub fn new(plan: plan::Timed, after: Option<Awaited>, is_here: impl Fn(&str) -> bool) -> Self {
        let (carries_out, tells) = match &plan.effect {
            Effect::ChangeLink { ends, .. } | Effect::ImpairLink { ends, .. } => {
                (ends.iter().any(|end| is_here(&end.node)), ends.first().is_some_and(|end| is_here(&end.node)))
            }
            Effect::Partition { cuts } => {
                let mut nodes = cuts.iter().flat_map(|cut| cut.sources.iter().chain(&cut.targets));
                let tells = nodes.clone().next().is_some_and(|node| is_here(node));
                (nodes.any(|node| is_here(node)), tells)
            }
            Effect::BreakDisk { node, .. }
            | Effect::Pause { node, .. }
            | Effect::Kill { node, .. }
            | Effect::SetClock { node, .. }
            | Effect::SendLoad { node, .. }
            | Effect::SlowCpu { node, .. }
            | Effect::TakeMemory { node, .. }
            | Effect::PowerOff { node, .. }
            | Effect::PowerOn { node } => (is_here(node), is_here(node)),
        };
        let state = if carries_out { State::Waiting } else { State::Elsewhere(Moments::AT_FIRST) };
        Self { plan, after, state, began_ns: 0, tells, told: Moments::AT_FIRST, times: 0, by_hand: false }
    }

    /// One that somebody asks for, which begins at this instant unless it is for later.
    pub fn by_hand(plan: plan::Timed, after: Option<Awaited>, now_ns: i64, is_here: impl Fn(&str) -> bool) -> Self {
        let is_now = begins_now(&plan, now_ns);
        let entry = Self { by_hand: true, ..Self::new(plan, after, is_here) };
        let is_due = is_now && entry.state == State::Waiting;
        let state = if is_due { State::Due { at_ns: now_ns } } else { entry.state };
        Self { state, ..entry }
    }

    /// Whether another entry may wait for it: nobody does for what has no name, or what came by hand.
    pub fn is_waited_for(&self) -> bool {
        !self.plan.name.is_empty() && !self.by_hand
    }

    pub fn moments(&self) -> Moments {
        let (begin, end) = match self.state {
            State::Waiting | State::Due { .. } => (Outlook::Pending, Outlook::Pending),
            State::Begun { .. } => (Outlook::Reached, Outlook::Pending),
            State::Ended => (Outlook::Reached, Outlook::Reached),
            State::Skipped => (Outlook::Missed, Outlook::Missed),
            State::Elsewhere(moments) => return moments,
        };
        Moments { begin, milestone: begin, end }
    }

    /// The instant at which it needs attention.
    pub fn deadline_ns(&self) -> Option<i64> {
        match (self.state, &self.plan.when) {
            (State::Waiting, When::At { at_ns }) => Some(*at_ns),
            (State::Due { at_ns }, _) => Some(at_ns),
            (State::Begun { end_ns, turn, .. }, _) => end_ns.into_iter().chain(turn.map(|turn| turn.at_ns)).min(),
            _ => None,
        }
    }

    /// The instant at which it begins, if that is known.
    pub fn begin_ns(&self) -> Option<i64> {
        self.deadline_ns().filter(|_| matches!(self.state, State::Waiting | State::Due { .. }))
    }

    pub fn has_begun(&self) -> bool {
        matches!(self.state, State::Begun { .. })
    }

    /// Whether it has its effect now: one that comes and goes may be gone.
    pub fn is_there(&self) -> bool {
        matches!(self.state, State::Begun { turn, .. } if turn.map_or(true, |turn| turn.is_there))
    }

    /// Whether somebody has asked for it by hand, for later.
    pub fn is_yet_to_come_by_hand(&self) -> bool {
        self.by_hand && matches!(self.state, State::Waiting | State::Due { .. })
    }

    /// The instant at which it is undone, if it has begun and is undone at all.
    pub fn end_ns(&self) -> Option<i64> {
        match self.state {
            State::Begun { end_ns, .. } => end_ns,
            _ => None,
        }
    }

    /// It has its effect from `begin_ns` on.
    pub fn begin(&mut self, begin_ns: i64) {
        self.began_ns = begin_ns;
        let end_ns = self.plan.for_ns.map(|for_ns| begin_ns.saturating_add(for_ns));
        let first_ns = self.flap().map(|flap| flap.down_ns).or_else(|| self.every_ns());
        let turn = first_ns.map(|ns| Turn { at_ns: begin_ns.saturating_add(ns), is_there: true });
        let takes_time = matches!(&self.plan.effect, Effect::PowerOff { how, .. } if *how != Off::Crash);
        self.state = match self.plan.effect {
            // What is killed for good is dead at once, and nothing is left to be undone.
            Effect::PowerOn { .. } => State::Ended,
            Effect::Kill { .. } if self.plan.for_ns.is_none() => State::Ended,
            _ => State::Begun { end_ns, turn, is_done: !takes_time },
        };
    }

    /// Whether it is a node that is being shut down, and not off yet.
    pub fn goes_off(&self) -> bool {
        matches!(self.state, State::Begun { is_done: false, .. })
    }

    /// Whether a node is off by it, or going off.
    pub fn has_off(&self, node: &str) -> bool {
        self.has_begun() && matches!(&self.plan.effect, Effect::PowerOff { node: other, .. } if other == node)
    }

    /// An effect that comes and goes, or is done again and again, is so, if it is time: whether it is there from then on.
    pub fn turn(&mut self, now_ns: i64) -> Option<bool> {
        let (flap, every_ns) = (self.flap(), self.every_ns());
        let State::Begun { turn: Some(turn), .. } = &mut self.state else { return None };
        if turn.at_ns > now_ns {
            return None;
        }
        let lasts_ns = match (flap, every_ns) {
            (Some(flap), _) => {
                turn.is_there = !turn.is_there;
                if turn.is_there {
                    flap.down_ns
                } else {
                    flap.up_ns
                }
            }
            (None, every_ns) => every_ns?,
        };
        turn.at_ns = turn.at_ns.saturating_add(lasts_ns);
        self.times += 1;
        Some(turn.is_there)
    }

    /// Whether it has no effect at its begin yet: it is done after each of so many nanoseconds.
    pub fn begins_later(&self) -> bool {
        self.every_ns().is_some()
    }

    fn every_ns(&self) -> Option<i64> {
        match self.plan.effect {
            Effect::SetClock { every_ns, .. } => every_ns,
            _ => None,
        }
    }

    fn flap(&self) -> Option<Flap> {
        match self.plan.effect {
            Effect::ImpairLink { flap, .. } => flap,
            _ => None,
        }
    }

    /// Whether it does something to what `effect` does the same to, or to a part of that, or to more.
    pub fn meets(&self, effect: &Effect) -> bool {
        match (&self.plan.effect, effect) {
            (Effect::Pause { node, process }, Effect::Pause { node: other_node, process: other }) => {
                node == other_node && (process.is_none() || other.is_none() || process == other)
            }
            (Effect::PowerOff { node, .. }, Effect::PowerOff { node: other, .. })
            | (Effect::BreakDisk { node, .. }, Effect::BreakDisk { node: other, .. })
            | (Effect::SlowCpu { node, .. }, Effect::SlowCpu { node: other, .. })
            | (Effect::TakeMemory { node, .. }, Effect::TakeMemory { node: other, .. }) => node == other,
            _ => false,
        }
    }

    /// Whether it makes something of a link of which `effect` does, too.
    pub fn shares_link(&self, effect: &Effect) -> bool {
        match (&self.plan.effect, effect) {
            (Effect::ImpairLink { links, .. }, Effect::ImpairLink { links: others, .. }) => {
                links.iter().any(|link| others.contains(link))
            }
            _ => false,
        }
    }
}
