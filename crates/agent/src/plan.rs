//! The plan as the agent reads it: the mirror of `python/dilaton/plan/model.py`, where every field is explained.
//!
//! What the agent does not act on (checks, seed) is still read, since an unknown field is an error; and what
//! only the inits of nodes need is in `plan/interior.rs`.

pub mod course;
pub mod interior;
pub mod queues;

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use virtual_time::Face;

use crate::error::{Error, Result};
use crate::plan::queues::Egress;
pub use course::{key_of, Awaited, Cut, Effect, EndChange, FaultUpdate, Flap, LinkUpdate, Moment, Off, Timed, When};

/// The format of the document that this agent reads.
pub const FORMAT: u32 = 20;

/// The whole document.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always [`FORMAT`].
    pub format: u32,
    #[serde(rename = "lab")]
    _lab: String,
    #[serde(rename = "seed")]
    _seed: serde_json::Value,
    /// What drives virtual time.
    pub time: Time,
    /// When everything is stopped at the latest.
    pub stop_after_ns: Option<i64>,
    /// Whether the run goes on when nothing is left to do.
    #[serde(default)]
    pub stays: bool,
    /// Virtual time between SIGTERM and SIGKILL.
    pub grace_ns: i64,
    /// The dilated kernels.
    pub guests: Vec<Guest>,
    /// The emulated machines.
    pub nodes: Vec<Node>,
    /// What connects them.
    pub links: Vec<Link>,
    /// What carries frames between guests.
    pub wires: Vec<Wire>,
    /// Distribution tables of netem.
    pub tables: BTreeMap<String, Vec<i16>>,
    /// Delivery traces.
    pub traces: BTreeMap<String, Vec<u64>>,
    /// What happens beside processes: effects that begin, and end, at exact instants.
    pub course: Vec<Timed>,
    #[serde(rename = "hosts")]
    _hosts: IgnoredAny,
    /// The programs to run.
    pub processes: Vec<Process>,
    /// What is measured.
    pub measure: Measure,
    #[serde(rename = "results")]
    _results: IgnoredAny,
    #[serde(rename = "checks")]
    _checks: serde_json::Value,
}

/// How virtual time passes.
#[derive(Debug, Deserialize)]
pub struct Time {
    /// What drives it.
    pub drive: Drive,
}

/// What drives virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drive {
    /// The host's clock.
    Wall,
    /// The guests' work.
    Work,
    /// Their steps.
    Event,
}

/// A dilated kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    /// Its name.
    pub name: String,
    #[serde(rename = "memory_bytes")]
    _memory_bytes: u64,
    #[serde(rename = "tdf")]
    _tdf: serde_json::Value,
    #[serde(rename = "machine")]
    _machine: IgnoredAny,
    /// How fast its clock runs.
    pub clock_rate: ClockRate,
    /// Kernel modules to load, in this order.
    pub modules: Vec<String>,
    /// Values to write below /proc/sys, for the kernel as a whole.
    pub sysctls: BTreeMap<String, String>,
}

/// Seconds of a guest's clock per second of virtual time.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClockRate {
    numerator: u64,
    denominator: u64,
}

impl Plan {
    /// The node that has the kernel of a guest to itself, if there is one, and that kernel may be another one in the middle of
    /// the run: not on the wall drive, on which no guest waits for another that is not there.
    pub fn owner_of_kernel(&self, guest: &str) -> Option<&str> {
        let mut here = self.nodes.iter().filter(|node| node.guest == guest).map(|node| node.name.as_str());
        let alone = here.next().filter(|_| here.next().is_none());
        alone.filter(|_| self.time.drive != Drive::Wall)
    }
}

impl ClockRate {
    /// How such a clock reads.
    ///
    /// # Errors
    /// The rate is zero, or divided by zero.
    pub fn face(self) -> Result<Face> {
        Face::new(self.numerator, self.denominator)
            .ok_or_else(|| Error::new("plan.json: a clock rate is not above zero"))
    }
}

/// An emulated machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name, which is also its host name.
    pub name: String,
    /// The guest that holds it.
    pub guest: String,
    #[serde(rename = "image")]
    _image: IgnoredAny,
    /// Its network interfaces.
    pub interfaces: Vec<Interface>,
    /// The bridge over all its interfaces, if it is a switch.
    pub bridge: Option<Bridge>,
    /// Addresses of its loopback, with prefix length.
    pub loopback: Vec<String>,
    #[serde(rename = "files")]
    _files: IgnoredAny,
    #[serde(rename = "binds")]
    _binds: IgnoredAny,
    #[serde(rename = "volumes")]
    _volumes: IgnoredAny,
    /// Its static routes.
    pub routes: Vec<Route>,
    #[serde(rename = "cpu")]
    _cpu: IgnoredAny,
    #[serde(rename = "sysctls")]
    _sysctls: IgnoredAny,
    #[serde(rename = "memory_bytes")]
    _memory_bytes: IgnoredAny,
    #[serde(rename = "disk")]
    _disk: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(rename = "position")]
    _position: IgnoredAny,
    #[serde(rename = "written")]
    _written: IgnoredAny,
}

/// A network interface.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Its name in the node.
    pub name: String,
    /// Its Ethernet address, as "02:00:00:00:00:01".
    pub mac: String,
    /// The largest packet in bytes.
    pub mtu: u32,
    /// Whether the kernel may pass packets larger than the MTU through it.
    pub offload: bool,
    /// Addresses with prefix length.
    pub addresses: Vec<String>,
    /// Permanent neighbours.
    pub neighbours: Vec<Neighbour>,
    /// What it does to packets that leave by it, at the start.
    pub egress: Egress,
    #[serde(rename = "wire_delay_ns")]
    _wire_delay_ns: u64,
}

/// An entry of the neighbour table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// IPv4 or IPv6 address.
    pub address: String,
    /// Its Ethernet address.
    pub mac: String,
}

/// A kernel bridge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// Whether it runs the spanning tree protocol.
    pub stp: bool,
}

/// A static route.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destination with prefix length, or `default`.
    pub to: String,
    /// The next hops, all equally good.
    pub hops: Vec<Hop>,
    /// The hop, by number, of each of so many equal shares of the flows; empty: as the kernel divides them.
    pub shares: Vec<usize>,
}

/// The next node on the way.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Its address.
    pub via: String,
    /// The interface towards it.
    pub interface: String,
}

/// A point-to-point link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its two ends.
    pub ends: (LinkEnd, LinkEnd),
}

/// What carries frames between two guests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Whose frames; `None`: those of the agents.
    pub link: Option<String>,
    /// Both ends, in the order of the link's.
    pub ends: (WireEnd, WireEnd),
    #[serde(rename = "delays_ns")]
    _delays_ns: (u64, u64),
    #[serde(rename = "mtu")]
    _mtu: u32,
    #[serde(rename = "ring_bytes")]
    _ring_bytes: (u64, u64),
}

/// Where a wire ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireEnd {
    /// The guest.
    pub guest: String,
    /// The guest's network device.
    pub device: String,
}

/// One end of a link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEnd {
    /// The node.
    pub node: String,
    /// The interface of the node.
    pub interface: String,
}

/// When a process counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Ready {
    /// Its node listens on this TCP port.
    Tcp {
        /// The port.
        port: u16,
    },
    /// A line of its output matches.
    Output {
        /// The regular expression.
        regex: String,
    },
    /// So long after its start.
    Delay {
        /// How long.
        delay_ns: i64,
    },
}

/// A program to run.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The node that it runs in.
    pub node: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Its working directory.
    pub cwd: String,
    /// A user name or number.
    pub user: String,
    /// The file that it reads, in the node.
    pub stdin: String,
    /// It starts at this instant at the earliest.
    pub start_ns: i64,
    /// What it waits for.
    pub after: Vec<Awaited>,
    /// When it counts as ready.
    pub ready: Option<Ready>,
    /// How long its readiness may take, from its start.
    pub ready_timeout_ns: i64,
    /// Whether it is stopped with the run instead of waited for.
    pub background: bool,
    /// The instant at which it is stopped.
    pub stop_ns: Option<i64>,
    /// How long it may run.
    pub timeout_ns: Option<i64>,
    /// The exit status that counts as success; `None`: any end.
    pub expect_exit: Option<i32>,
    /// Whether it is started again when it has ended by itself.
    pub restart: Option<Restart>,
    /// Whether it is started again when its node boots.
    pub boot: bool,
    /// Output file relative to the run directory.
    pub stdout: String,
    /// Output file relative to the run directory.
    pub stderr: String,
}

/// How a process is started again, later after each time, until it has lived for a while.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Only after a failure.
    pub on_failure: bool,
    /// How long after its end, the first time; each further time it is twice as long.
    pub delay_ns: i64,
    /// How long at most.
    pub delay_max_ns: i64,
    /// Having lived so long, it begins anew with the first delay.
    pub reset_ns: i64,
}

/// What is measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// How often interfaces and their queues are sampled; `None`: never.
    pub interfaces_period_ns: Option<i64>,
    /// How often TCP connections are.
    pub tcp_period_ns: Option<i64>,
    /// How often CPU, memory and disk of nodes are.
    pub nodes_period_ns: Option<i64>,
    /// Whether it is noted when processes wrote what.
    pub outputs: bool,
    /// Packets that are kept.
    pub captures: Vec<Capture>,
}

impl Measure {
    /// Whether nothing is measured.
    pub fn is_empty(&self) -> bool {
        let periods = [self.interfaces_period_ns, self.tcp_period_ns, self.nodes_period_ns];
        periods.iter().all(Option::is_none) && !self.outputs && self.captures.is_empty()
    }
}

/// The packets of an interface that are kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// The node.
    pub node: String,
    /// Its interface.
    pub interface: String,
    /// The filter as it was written, for the file.
    pub filter: Option<String>,
    /// Bytes of a packet that are kept at most.
    pub snaplen: u32,
    /// Filter and `snaplen` as a classic BPF program.
    pub program: Vec<BpfInstruction>,
    /// Path relative to the run directory.
    pub file: String,
}

/// An instruction: code, jumps if true and if false, operand (`struct sock_filter` of `linux/filter.h`).
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct BpfInstruction(pub u16, pub u8, pub u8, pub u32);
