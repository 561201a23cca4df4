//! The messages of the channel, as `PROTOCOL.md` defines them.

use serde::{Deserialize, Serialize};

/// The version of the channel's language.
pub const PROTOCOL: u32 = 1;

/// What the host says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FromHost {
    /// Make the nodes and links of `guest` from `run_dir/plan.json`.
    Build {
        /// Where the guest sees the run directory.
        run_dir: String,
        /// The name of this guest in the plan.
        guest: String,
    },
    /// Set virtual 0 of the run to now plus `lead_ns`; the clock is held.
    Arm {
        /// Virtual time from now to virtual 0.
        lead_ns: i64,
        /// The guest's CLOCK_REALTIME at virtual 0.
        date_ns: i64,
    },
    /// Tell which program computes.
    WhoComputes {},
    /// End the run early.
    Stop {
        /// Why, for the `finished` message.
        reason: String,
    },
    /// Make of a link what a file in the run directory says, a `LinkUpdate`.
    UpdateLink {
        /// Its path in the run directory.
        file: String,
    },
    /// Flush and power off.
    Halt {},
}

/// What the agent says.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FromAgent<'a> {
    /// The agent is up.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// The agent's version.
        version: &'a str,
        /// The guest kernel's release.
        kernel: &'a str,
    },
    /// The building of the guest goes on.
    Progress {
        /// How many are done.
        done: usize,
        /// Of how many.
        total: usize,
        /// Of what.
        what: &'a str,
    },
    /// Everything is up and nothing runs yet.
    Ready {},
    /// The schedule waits for virtual 0.
    Armed {
        /// Virtual 0 in the guest's CLOCK_MONOTONIC.
        zero_ns: i64,
    },
    /// Something happened to a process or a link.
    Event(Event<'a>),
    /// Something happened to what is measured; an event, too.
    #[serde(rename = "event")]
    Observed {
        /// Virtual time since the run's virtual 0.
        t_ns: i64,
        /// What happened.
        #[serde(flatten)]
        observation: &'a Observation,
    },
    /// A link's course is now what a file says.
    LinkUpdated {
        /// The file.
        file: &'a str,
        /// When, in virtual time of the run.
        t_ns: i64,
    },
    /// It cannot be what the file says, and is what it was.
    LinkRefused {
        /// The file.
        file: &'a str,
        /// What was tried and why it failed.
        reason: &'a str,
    },
    /// The schedule is over and all processes are gone.
    Finished {
        /// When, in virtual time of the run.
        t_ns: i64,
        /// How.
        outcome: Outcome,
        /// Why, where `outcome` is not `done`.
        reason: &'a str,
    },
    /// The agent cannot go on and powers off.
    Fatal {
        /// What was tried, on what, and why it failed.
        reason: &'a str,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything ran as it was meant to.
    Done,
    /// `stop_after` was reached or `stop` received.
    Stopped,
    /// A process did not do what the plan expects of it.
    Failed,
}

/// Something that happened.
#[derive(Debug, Serialize)]
pub struct Event<'a> {
    /// Virtual time since the run's virtual 0.
    pub t_ns: i64,
    /// What happened.
    #[serde(flatten)]
    pub kind: &'a EventKind,
    /// To what.
    #[serde(flatten)]
    pub subject: Subject<'a>,
}

/// What events happen to.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Subject<'a> {
    /// A process of the plan.
    Process {
        /// Its name.
        process: &'a str,
        /// Its node.
        node: &'a str,
    },
    /// A link of the plan.
    Link {
        /// Its name.
        link: &'a str,
    },
}

/// What can happen to a process or a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EventKind {
    /// The program was executed.
    Started {
        /// Its number in the node.
        pid: i32,
    },
    /// It could not be executed.
    StartFailed {
        /// What was tried and why it failed.
        reason: String,
    },
    /// Its readiness came.
    Ready,
    /// Its readiness did not come in time.
    ReadyTimeout {
        /// What was waited for, and how long.
        reason: String,
    },
    /// It ended.
    Exited {
        /// How.
        #[serde(flatten)]
        end: End,
        /// Whether that is what the plan expects.
        expected: bool,
        /// Whether it was ended for running longer than its timeout.
        timed_out: bool,
        /// Whether the agent ended it.
        stopped: bool,
    },
    /// A link has its new parameters.
    LinkChanged {
        /// When it was to have them; 0: at once.
        at_ns: i64,
    },
    /// It can never start.
    Skipped {
        /// What it waited for in vain.
        reason: String,
    },
}

/// What can happen to what is measured, and to programs that are not the plan's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Observation {
    /// The rest of a capture is missing.
    CaptureEnded {
        /// The node.
        node: String,
        /// Its interface.
        interface: String,
        /// Why.
        reason: String,
    },
    /// A program computes, or waits in a loop, without entering the kernel.
    Spinning {
        /// The node.
        node: String,
        /// Its command line.
        program: String,
    },
    /// The rest of a table of samples is missing.
    SamplingEnded {
        /// Its name.
        table: String,
        /// Why.
        reason: String,
    },
    /// Memory was short, and the kernel did what it then does.
    MemoryShort {
        /// The node in which it did.
        node: String,
        /// Which memory.
        memory: Memory,
        /// How often; of the node's and the guest's: how many programs it ended.
        times: u64,
    },
}

/// What can be short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// What all TCP connections of the guest may take together.
    Tcp,
    /// The same of UDP sockets.
    Udp,
    /// What the node may take.
    Node,
    /// What there is.
    Guest,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It exited with this status, 0..=255.
    Status(i32),
    /// This signal killed it.
    Signal(i32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_one_flat_object() {
        let kind = EventKind::Exited { end: End::Status(1), expected: false, timed_out: false, stopped: false };
        let subject = Subject::Process { process: "bulk", node: "a" };
        let event = FromAgent::Event(Event { t_ns: 5, kind: &kind, subject });
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"type":"event","t_ns":5,"kind":"exited","status":1,"expected":false,"timed_out":false,"stopped":false,"process":"bulk","node":"a"}"#
        );
    }

    #[test]
    fn the_end_of_a_capture_is_an_event_without_a_process() {
        let observation =
            Observation::CaptureEnded { node: "a".into(), interface: "eth0".into(), reason: "full".into() };
        assert_eq!(
            serde_json::to_string(&FromAgent::Observed { t_ns: 5, observation: &observation }).unwrap(),
            r#"{"type":"event","t_ns":5,"kind":"capture-ended","node":"a","interface":"eth0","reason":"full"}"#
        );
    }

    #[test]
    fn an_unknown_type_or_field_from_the_host_is_an_error() {
        assert!(serde_json::from_str::<FromHost>(r#"{"type":"dance"}"#).is_err());
        assert!(serde_json::from_str::<FromHost>(r#"{"type":"halt","now":true}"#).is_err());
        assert!(serde_json::from_str::<FromHost>(r#"{"type":"arm","lead_ns":1,"date_ns":3,"extra":2}"#).is_err());
    }
}
