//! The messages of the channel, as `PROTOCOL.md` defines them.

use serde::{Deserialize, Serialize};

use crate::node::load::tally::Counts;

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
        /// Whether the kernel before this one has left the run to it.
        goes_on: bool,
    },
    /// Set virtual 0 of the run to now plus `lead_ns`; the clock is held.
    Arm {
        /// Virtual time from now to virtual 0; below 0 for a kernel that goes on with a run.
        lead_ns: i64,
        /// The guest's CLOCK_REALTIME at virtual 0.
        date_ns: i64,
        /// Virtual time stands still at virtual 0 until the host asks for a program.
        awaits_program: bool,
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
    /// Begin and undo faults by hand, as a file in the run directory says, a `FaultUpdate`.
    UpdateFaults {
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
        /// How many there are to do.
        total: usize,
        /// What is being done: nodes, links, and so on.
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
    /// The course is now what a file says.
    Updated {
        /// The file.
        file: &'a str,
        /// When, in virtual time of the run.
        t_ns: i64,
    },
    /// It cannot be what the file says, and is what it was.
    Refused {
        /// The file.
        file: &'a str,
        /// What was tried and why it failed.
        reason: &'a str,
    },
    /// The node boots that has this kernel to itself: another kernel is to go on, and this one waits for its end.
    HandsOver {
        /// From when on, in virtual time of the run; until then it has gone on itself.
        t_ns: i64,
        /// CLOCK_REALTIME at virtual 0, as the guest's date is now.
        date_ns: i64,
        /// How many messages of the host it has taken since `arm`; the others are to be sent to the next.
        heard: u64,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// What it happened to.
    #[serde(flatten)]
    pub subject: Subject<'a>,
}

/// What events happen to.
#[derive(Debug, Clone, Serialize)]
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
    /// Another entry of the plan's course.
    Fault {
        /// Its name.
        fault: &'a str,
    },
}

/// What can happen to an entry of the course or to a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// It has its effect from now on.
    Began {
        /// Which, in the words of the lab.
        what: String,
    },
    /// Its effect is undone.
    Undone {
        /// Which, in the words of the lab.
        what: String,
        /// What has come of it, if it was a load.
        #[serde(flatten)]
        load: Option<Counts>,
    },
    /// It can never start.
    Skipped {
        /// What it waited for in vain, or why it could not begin.
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
    /// What all UDP sockets of the guest may take together.
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

    /// An example of each message; the host's tests hold its types to the same.
    const EXAMPLES: &str = include_str!("../../messages.jsonl");

    /// All that the agent can say, once in each form.
    fn all_said() -> Vec<String> {
        let mut said = Vec::new();
        let mut say = |message: &FromAgent| said.push(serde_json::to_string(message).unwrap());
        say(&FromAgent::Hello { protocol: PROTOCOL, version: "0.1.0", kernel: "6.1.176" });
        say(&FromAgent::Progress { done: 12, total: 100, what: "nodes" });
        say(&FromAgent::Ready {});
        say(&FromAgent::Armed { zero_ns: 123 });
        let file = "link-update-1.json";
        say(&FromAgent::Updated { file, t_ns: 123 });
        say(&FromAgent::Refused { file, reason: "no such device" });
        say(&FromAgent::HandsOver { t_ns: 123, date_ns: 456, heard: 2 });
        for (outcome, reason) in [
            (Outcome::Done, ""),
            (Outcome::Stopped, "interrupted"),
            (Outcome::Failed, "bulk on a exited with status 1"),
        ] {
            say(&FromAgent::Finished { t_ns: 123, outcome, reason });
        }
        say(&FromAgent::Fatal { reason: "plan.json: no such file" });
        let (process, fault) = (Subject::Process { process: "bulk", node: "a" }, Subject::Fault { fault: "stall" });
        let counts = Counts { sent: 7, refused: 1, answered: 0, failed: 0 };
        let link = Subject::Link { link: "a:eth0--b:eth0" };
        for (kind, subject) in [
            (EventKind::Started { pid: 7 }, &process),
            (EventKind::StartFailed { reason: "exec /no/such: No such file or directory".into() }, &process),
            (EventKind::Ready, &process),
            (EventKind::ReadyTimeout { reason: "no TCP port 80 within 1 s".into() }, &process),
            (exited(End::Status(1), false, false), &process),
            (exited(End::Signal(9), true, true), &process),
            (EventKind::Skipped { reason: "server failed".into() }, &process),
            (EventKind::Began { what: "pause a".into() }, &fault),
            (EventKind::Undone { what: "pause a".into(), load: None }, &fault),
            (EventKind::Undone { what: "load a to b udp 7/s".into(), load: Some(counts) }, &fault),
            (EventKind::Skipped { reason: "server failed".into() }, &fault),
            (EventKind::LinkChanged { at_ns: 0 }, &link),
        ] {
            say(&FromAgent::Event(Event { t_ns: 5, kind: &kind, subject: subject.clone() }));
        }
        let (node, reason) = (|| "a".to_owned(), || "full".to_owned());
        let short = |memory| Observation::MemoryShort { node: node(), memory, times: 2 };
        for observation in [
            Observation::CaptureEnded { node: node(), interface: "eth0".into(), reason: reason() },
            Observation::Spinning { node: node(), program: "sh -c loop".into() },
            short(Memory::Tcp),
            short(Memory::Udp),
            short(Memory::Node),
            short(Memory::Guest),
            Observation::SamplingEnded { table: "interfaces".into(), reason: reason() },
        ] {
            say(&FromAgent::Observed { t_ns: 5, observation: &observation });
        }
        said
    }

    fn exited(end: End, expected: bool, stopped: bool) -> EventKind {
        EventKind::Exited { end, expected, timed_out: false, stopped }
    }

    /// Whether the host says this; a message that is new has to be put here, and into the examples.
    fn is_of_host(line: &str) -> bool {
        match serde_json::from_str::<FromHost>(line) {
            Ok(
                FromHost::Build { .. }
                | FromHost::Arm { .. }
                | FromHost::WhoComputes {}
                | FromHost::Stop { .. }
                | FromHost::UpdateLink { .. }
                | FromHost::UpdateFaults { .. }
                | FromHost::Halt {},
            ) => true,
            Err(_) => false,
        }
    }

    #[test]
    fn the_messages_are_those_of_the_examples() {
        let (asked, said): (Vec<&str>, Vec<&str>) = EXAMPLES.lines().partition(|line| is_of_host(line));
        assert_eq!(said, all_said());
        assert_eq!(asked.len(), 8);
    }

    #[test]
    fn an_unknown_type_or_field_from_the_host_is_an_error() {
        assert!(serde_json::from_str::<FromHost>(r#"{"type":"dance"}"#).is_err());
        assert!(serde_json::from_str::<FromHost>(r#"{"type":"halt","now":true}"#).is_err());
        assert!(serde_json::from_str::<FromHost>(
            r#"{"type":"arm","lead_ns":1,"date_ns":3,"awaits_program":false,"extra":2}"#
        )
        .is_err());
    }
}
