//! What happens in a run beside processes, as the plan says it: the mirror of `python/dilaton/plan/course/entries.py`, where
//! every field is explained.

use std::collections::BTreeMap;

use disk::Fault;
use serde::{Deserialize, Serialize};

use crate::node::load::Load;
use crate::plan::interior::Cpu;
use crate::plan::queues::Egress;

/// The complete new state of one end of a link.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EndChange {
    /// The node.
    pub node: String,
    /// The interface of the node.
    pub interface: String,
    /// What it does from then on to packets that leave by it.
    pub egress: Egress,
    /// Whether it is up.
    pub up: bool,
}

/// An entry of the course that is no process.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Timed {
    /// The name by which others wait for it; empty: nobody can.
    pub name: String,
    /// What it does, in the words of the lab.
    pub what: String,
    /// When it begins.
    pub when: When,
    /// How long after that it is undone; `None`: never.
    pub for_ns: Option<i64>,
    /// What it does.
    pub effect: Effect,
}

/// When an entry begins.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum When {
    /// At an instant.
    At {
        /// Since virtual 0.
        at_ns: i64,
    },
    /// So long after a moment of another entry.
    After {
        /// The moment.
        awaited: Awaited,
        /// How long.
        wait_ns: i64,
    },
}

/// A moment in the life of an entry, which others wait for.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Awaited {
    /// The entry: a process, or another one with a name.
    pub name: String,
    /// Which moment.
    pub moment: Moment,
}

/// The moments of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// It began; a process was executed.
    Begin,
    /// What a process is there for: its readiness if it has one, else its start if it is in the background, else its
    /// end as expected. Of other entries, their begin.
    Milestone,
    /// It ended, however.
    End,
}

/// What an entry does while it lasts. `run/effects.rs` carries it out.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Something is wrong with the disk of a node.
    BreakDisk {
        /// The node.
        node: String,
        /// Which disk of its guest's it is.
        number: u32,
        /// What.
        wrong: WrongDisk,
    },
    /// A link is something else from then on; this is never undone, since the plan says what comes next.
    ChangeLink {
        /// The link.
        link: String,
        /// The ends that change.
        ends: Vec<EndChange>,
        /// What these ends are while faults last, by their names.
        under: BTreeMap<String, Vec<EndChange>>,
    },
    /// Links are what they are while this fault lasts, and then what they would be without it.
    ImpairLink {
        /// The links: one, or the ports of a segment.
        links: Vec<String>,
        /// All their ends under the fault, at virtual 0; changes say what later becomes of them.
        ends: Vec<EndChange>,
        /// The same while others last, too, by all their names; no others can.
        beside: BTreeMap<String, Vec<EndChange>>,
        /// If the fault comes and goes.
        flap: Option<Flap>,
    },
    /// A process is killed, and started again at the end, if it has one.
    Kill {
        /// Its node.
        node: String,
        /// The process, with its group.
        process: String,
    },
    /// What some nodes send to others is lost.
    Partition {
        /// Which to which.
        cuts: Vec<Cut>,
    },
    /// Programs stand still, and go on as if nothing had been.
    Pause {
        /// The node.
        node: String,
        /// Its process, with its group; `None`: all that the node runs.
        process: Option<String>,
    },
    /// A node sends something to another one, so often.
    SendLoad {
        /// The node.
        node: String,
        /// What, and to whom.
        load: Load,
    },
    /// The CPU of a node is slower, where that is a share of its guest's.
    SlowCpu {
        /// The node.
        node: String,
        /// Its CPU meanwhile.
        to: Cpu,
        /// Its CPU at other times.
        usual: Cpu,
    },
    /// A node has less memory; who has more loses what can be read again, or ends.
    TakeMemory {
        /// The node.
        node: String,
        /// So much is left of it.
        leave_bytes: u64,
    },
    /// The date of a node that has a kernel of its own is another one; at the end, what it would be without that.
    SetClock {
        /// The node.
        node: String,
        /// By so much later; less than 0: earlier.
        by_ns: i64,
        /// By so much after each of these, again and again; `None`: once, at the begin.
        every_ns: Option<i64>,
    },
    /// A node goes off, and boots at the end, if there is one.
    PowerOff {
        /// The node.
        node: String,
        /// How it goes off.
        how: Off,
    },
    /// A node that is off boots; nothing is undone.
    PowerOn {
        /// The node.
        node: String,
    },
}

/// What is wrong with a disk.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WrongDisk {
    /// The share of reads and writes that fail.
    pub errors: f64,
    /// The share of reads in which a bit is wrong.
    pub corrupt: f64,
    /// So much longer each request takes.
    pub delay_ns: i64,
    /// So long from the begin on nothing is answered.
    pub stall_ns: i64,
    /// Why writes fail, if they do.
    pub refuses: Option<Refusal>,
    /// The seed of what is drawn.
    pub seed: u64,
}

/// Why a disk does not take what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It may only be read.
    ReadOnly = 1,
    /// It has no room.
    Full = 2,
}

impl WrongDisk {
    /// The same as the clock takes it, from an instant of the guest's until another one.
    pub fn between(&self, begin_ns: i64, end_ns: i64) -> Fault {
        let instant = |ns: i64| ns.max(0).unsigned_abs();
        Fault {
            seed: self.seed,
            errors: parts(self.errors),
            corrupt: parts(self.corrupt),
            delay_ns: instant(self.delay_ns),
            stalled_until_ns: instant(begin_ns.saturating_add(self.stall_ns).min(end_ns)),
            refusal: self.refuses.map_or(0, |refusal| refusal as u64),
            until_ns: if end_ns == i64::MAX { u64::MAX } else { instant(end_ns) },
        }
    }
}

/// A share in parts of 2^32.
fn parts(share: f64) -> u64 {
    (share * 2_f64.powi(32)).round() as u64
}

/// How a node goes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Off {
    /// It loses its power.
    Crash,
    /// Its processes are asked to end first, and it is off when they have.
    Stop,
    /// The same, and it boots as soon as it is off.
    Reboot,
}

/// What a set of faults is called, of their names in alphabetical order.
pub fn key_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join("+")
}

/// How a fault comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flap {
    /// So long it is there, from its begin on.
    pub down_ns: i64,
    /// Then so long it is not.
    pub up_ns: i64,
}

/// A part of a partition.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// What these nodes send is lost,
    pub sources: Vec<String>,
    /// if it is to one of these.
    pub targets: Vec<String>,
}

impl Cut {
    /// Whether a node is on either side.
    pub fn is_of(&self, node: &str) -> bool {
        self.sources.iter().chain(&self.targets).any(|name| name == node)
    }
}

/// Faults that somebody begins or undoes by hand while the run goes on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultUpdate {
    /// The agent only says whether it could.
    pub is_question: bool,
    /// What becomes of links that these faults are of.
    pub links: Vec<LinkUpdate>,
    /// Kernel modules that this takes and the plan does not name.
    pub modules: Vec<String>,
    /// Other faults of these links, as they are from now on.
    pub again: Vec<Timed>,
    /// Those that begin now, whatever instant they name.
    pub begin: Vec<Timed>,
    /// The names of those that end now.
    pub undo: Vec<String>,
}

/// What a link becomes while the run goes on, in place of what was planned for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkUpdate {
    /// The link.
    pub link: String,
    /// Kernel modules that this takes and the plan does not name.
    pub modules: Vec<String>,
    /// Distribution tables that this uses.
    pub tables: BTreeMap<String, Vec<i16>>,
    /// All that is still to come, in the order of time.
    pub course: Vec<Timed>,
}
