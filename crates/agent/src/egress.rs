//! What interfaces do to the packets that leave by them: programs that look at each packet, then queue disciplines.
//!
//! The state of every interface is kept here, so that a change touches only what differs: counters of packets, queues
//! and traces go on through a change of something else.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsRawFd, OwnedFd};

use virtual_time::Face;

use crate::delivery::Player;
use crate::drops;
use crate::error::{Error, Result};
use crate::netlink::Request;
use crate::network::{Network, Port};
use crate::plan::{EndChange, Node, Plan};
use crate::queues::{Delivery, Egress};
use crate::tc::{self, Tables};

/// `TC_H_CLSACT`, and its place for packets that leave.
const CLSACT: u32 = 0xFFFF_FFF1;
const CLSACT_HANDLE: u32 = 0xFFFF_0000;
const CLSACT_EGRESS: u32 = 0xFFFF_FFF3;
/// `ETH_P_ALL` in network byte order.
const ALL_PROTOCOLS: u32 = 0x0300;
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_FLAG_ACT_DIRECT: u32 = 1;
/// Losses come before the queue.
const DROPS_PRIORITY: u32 = 1;
const DELIVERY_PRIORITY: u32 = 2;
/// In which delivery traces count.
const MILLISECOND_NS: u64 = 1_000_000;

/// The egress of every interface of a guest.
pub struct Interfaces {
    networks: HashMap<String, Network>,
    tables: Tables,
    traces: BTreeMap<String, Vec<u64>>,
    /// How the kernel's clock reads, by which it delays packets.
    face: Face,
    /// By node and interface.
    states: HashMap<(String, String), State>,
}

/// An interface as it is.
struct State {
    index: u32,
    egress: Egress,
    up: bool,
    has_programs: bool,
    player: Option<Player>,
}

impl Interfaces {
    /// The interfaces of the nodes with these networks, which do nothing to packets yet.
    pub fn new(plan: &Plan, networks: HashMap<String, Network>, face: Face) -> Self {
        let nodes = plan.nodes.iter().filter(|node| networks.contains_key(&node.name));
        let states = nodes
            .flat_map(|node| Port::all(&node.interfaces).map(|port| (node.name.clone(), port)))
            .map(|(node, port)| {
                let egress = Egress { drops: None, delivery: None, qdiscs: Vec::new() };
                let state = State { index: port.index, egress, up: true, has_programs: false, player: None };
                ((node, port.interface.name.clone()), state)
            })
            .collect();
        Self { networks, tables: plan.tables.clone(), traces: plan.traces.clone(), face, states }
    }

    /// Makes one interface do what `egress` says.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses it.
    pub fn set(&mut self, node: &str, interface: &str, egress: &Egress) -> Result<()> {
        let unknown = || Error::new(format!("no interface {node}:{interface} in this guest"));
        let state = self.states.get_mut(&(node.to_owned(), interface.to_owned())).ok_or_else(unknown)?;
        let network = self.networks.get(node).ok_or_else(unknown)?;
        let old = state.egress.clone();
        let egress = egress.on(self.face);
        let mut requests = tc::requests(state.index, &old.qdiscs, &egress.qdiscs, &self.tables)?;
        let mut programs: Vec<OwnedFd> = Vec::new();
        if old.drops != egress.drops {
            let program = egress.drops.as_ref().map(drops::program).transpose()?;
            requests.extend(filter(state, DROPS_PRIORITY, "drops", program.as_ref()));
            programs.extend(program);
        }
        if old.delivery != egress.delivery {
            let program = match &egress.delivery {
                None => None,
                Some(delivery) => {
                    let (player, program) = play(&self.traces, delivery, self.face, state.player.take())?;
                    state.player = Some(player);
                    Some(program)
                }
            };
            requests.extend(filter(state, DELIVERY_PRIORITY, "delivery", program.as_ref()));
            programs.extend(program);
        }
        state.egress = egress;
        network.batch(interface, requests)
    }

    /// Adds distribution tables to those of the plan.
    pub fn add_tables(&mut self, tables: &Tables) {
        self.tables.extend(tables.iter().map(|(name, table)| (name.clone(), table.clone())));
    }

    /// Makes the ends of a link, which are of these nodes, what a change says.
    ///
    /// # Errors
    /// As for [`Interfaces::set`].
    pub fn change(&mut self, nodes: &[Node], ends: &[&EndChange]) -> Result<()> {
        ends.iter().try_for_each(|end| self.set(&end.node, &end.interface, &end.egress))?;
        let mut coming_up = Vec::new();
        for end in ends {
            let key = (end.node.clone(), end.interface.clone());
            let (Some(state), Some(network)) = (self.states.get_mut(&key), self.networks.get(&end.node)) else {
                continue;
            };
            if state.up == end.up {
                continue;
            }
            state.up = end.up;
            network.set_running(state.index, &end.interface, end.up)?;
            if end.up {
                coming_up.extend(nodes.iter().find(|node| node.name == end.node).map(|node| (network, node, end)));
            }
        }
        // As when the guest was built: what needs a link with both ends up comes when they are.
        coming_up.into_iter().try_for_each(|(network, node, end)| network.restore(node, &end.interface))
    }

    /// Starts all delivery traces: the guest's clock reads `zero_ns` at virtual 0 of the run.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn start(&self, zero_ns: i64) -> Result<()> {
        self.states.values().filter_map(|state| state.player.as_ref()).try_for_each(|player| player.start(zero_ns))
    }
}

fn play(
    traces: &BTreeMap<String, Vec<u64>>,
    delivery: &Delivery,
    face: Face,
    before: Option<Player>,
) -> Result<(Player, OwnedFd)> {
    let trace = traces.get(&delivery.trace).filter(|trace| trace.last().is_some_and(|last| *last > 0));
    let trace = trace.ok_or_else(|| Error::new(format!("plan.json: no trace {}", delivery.trace)))?;
    Player::load(trace, face.own_ns(MILLISECOND_NS), delivery.delay_ns, delivery.limit_packets, before)
}

/// The requests that make `program` look at every packet of an interface, or no program any more.
fn filter(state: &mut State, priority: u32, name: &str, program: Option<&OwnedFd>) -> Vec<(Request, String)> {
    let mut requests = Vec::new();
    if !state.has_programs {
        let header = tc::header(state.index, CLSACT_HANDLE, CLSACT);
        let request = Request::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_EXCL).structure(&header);
        requests.push((request.text(libc::TCA_KIND, "clsact"), "clsact".to_owned()));
        state.has_programs = true;
    }
    let mut header = tc::header(state.index, 1, CLSACT_EGRESS);
    header[16..20].copy_from_slice(&(priority << 16 | ALL_PROTOCOLS).to_ne_bytes());
    let (kind, flags) = match program {
        Some(_) => (libc::RTM_NEWTFILTER, libc::NLM_F_CREATE),
        None => (libc::RTM_DELTFILTER, 0),
    };
    let mut request = Request::new(kind, flags).structure(&header).text(libc::TCA_KIND, "bpf");
    if let Some(program) = program {
        request = request.nested(libc::TCA_OPTIONS, |request| {
            request
                .attribute(BPF_FD, &program.as_raw_fd().to_ne_bytes())
                .text(BPF_NAME, name)
                .attribute(BPF_FLAGS, &BPF_FLAG_ACT_DIRECT.to_ne_bytes())
        });
    }
    requests.push((request, format!("program {name}")));
    requests
}
