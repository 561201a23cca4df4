//! What interfaces do to packets: programs that look at each one, then queue disciplines where it leaves.
//!
//! The state of every interface is kept here, so that a change touches only what differs: counters of packets, queues
//! and traces go on through a change of something else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::OwnedFd;

use virtual_time::Face;

use crate::error::{Error, Result};
use crate::network::drops;
use crate::network::partition::{self, Partitions};
use crate::network::programs::{Gate, Programs, Purpose};
use crate::network::tc::{self, Tables};
use crate::network::trace::Player;
use crate::network::{Namespace, Port};
use crate::plan::queues::{Delivery, Egress};
use crate::plan::{key_of, Cut, Effect, EndChange, Node, Plan, Timed};

/// The unit in which delivery traces count.
const MILLISECOND_NS: u64 = 1_000_000;

/// The egress of every interface of a guest.
pub struct Interfaces {
    namespaces: HashMap<String, Namespace>,
    tables: Tables,
    traces: BTreeMap<String, Vec<u64>>,
    /// How the kernel's clock reads, by which it delays packets.
    face: Face,
    /// What each interface sends through, by node and interface.
    states: HashMap<(String, String), State>,
    partitions: Partitions,
}

/// What the plan wants of an interface.
#[derive(Clone)]
struct Side {
    egress: Egress,
    up: bool,
}

impl From<&EndChange> for Side {
    fn from(end: &EndChange) -> Self {
        Self { egress: end.egress.clone(), up: end.up }
    }
}

/// An interface as it is, and as it is to be without a fault and under each set of them.
struct State {
    index: u32,
    egress: Egress,
    up: bool,
    programs: Programs,
    player: Option<Player>,
    plain: Side,
    under: BTreeMap<String, Side>,
    /// The faults that last. The schedule lets a link have those sets of them that the plan knows.
    faults: BTreeSet<String>,
    /// Its node is off.
    is_off: bool,
}

impl State {
    fn wanted(&self) -> Result<&Side> {
        if self.faults.is_empty() {
            return Ok(&self.plain);
        }
        let unknown = |key: &String| Error::new(format!("plan.json: nothing says what a link is under {key}"));
        let key = key_of(self.faults.iter().map(String::as_str));
        self.under.get(&key).ok_or_else(|| unknown(&key))
    }
}

impl Interfaces {
    /// The interfaces of the nodes with these namespaces, which do nothing to packets yet.
    pub fn new(plan: &Plan, namespaces: HashMap<String, Namespace>, face: Face) -> Self {
        let nodes = plan.nodes.iter().filter(|node| namespaces.contains_key(&node.name));
        let states = nodes
            .flat_map(|node| Port::all(&node.interfaces).map(|port| (node.name.clone(), port)))
            .map(|(node, port)| {
                let egress = Egress { drops: None, delivery: None, qdiscs: Vec::new() };
                let plain = Side { egress: port.interface.egress.clone(), up: true };
                let state = State {
                    index: port.index,
                    egress,
                    up: true,
                    programs: Programs::default(),
                    player: None,
                    plain,
                    under: BTreeMap::new(),
                    faults: BTreeSet::new(),
                    is_off: false,
                };
                ((node, port.interface.name.clone()), state)
            })
            .collect();
        let mut interfaces = Self {
            namespaces,
            tables: plan.tables.clone(),
            traces: plan.traces.clone(),
            face,
            states,
            partitions: Partitions::default(),
        };
        for fault in &plan.course {
            interfaces.expect(fault);
        }
        interfaces
    }

    /// Makes one interface do what `egress` says.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses it.
    pub fn set(&mut self, node: &str, interface: &str, egress: &Egress) -> Result<()> {
        let unknown = || Error::new(format!("no interface {node}:{interface} in this guest"));
        let state = self.states.get_mut(&(node.to_owned(), interface.to_owned())).ok_or_else(unknown)?;
        let namespace = self.namespaces.get(node).ok_or_else(unknown)?;
        let old = state.egress.clone();
        let egress = egress.on(self.face);
        let mut requests = tc::requests(state.index, &old.qdiscs, &egress.qdiscs, &self.tables)?;
        let mut programs: Vec<OwnedFd> = Vec::new();
        if old.drops != egress.drops {
            let program = egress.drops.as_ref().map(drops::program).transpose()?;
            requests.extend(state.programs.replace(state.index, Gate::Out, Purpose::Drops, program.as_ref()));
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
            requests.extend(state.programs.replace(state.index, Gate::Out, Purpose::Delivery, program.as_ref()));
            programs.extend(program);
        }
        state.egress = egress;
        namespace.batch(interface, requests)
    }

    /// Keeps what the ends of links are under a fault, by itself and beside others.
    pub fn expect(&mut self, fault: &Timed) {
        if let Effect::ImpairLink { ends, beside, .. } = &fault.effect {
            self.keep_under(&fault.name, ends);
            for (key, ends) in beside {
                self.keep_under(key, ends);
            }
        }
    }

    /// Makes a place for the programs that come later in the course of a plan.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn make_places(&mut self, plan: &Plan) -> Result<()> {
        let has_program = |end: &&EndChange| end.egress.drops.is_some() || end.egress.delivery.is_some();
        for effect in plan.course.iter().map(|entry| &entry.effect) {
            let places: Vec<(&String, &String)> = match effect {
                Effect::ChangeLink { ends, under, .. } => {
                    let every = ends.iter().chain(under.values().flatten());
                    every.filter(has_program).map(|end| (&end.node, &end.interface)).collect()
                }
                Effect::ImpairLink { ends, beside, .. } => {
                    let every = ends.iter().chain(beside.values().flatten());
                    every.filter(has_program).map(|end| (&end.node, &end.interface)).collect()
                }
                Effect::Partition { cuts } => {
                    let is_cut = |node: &&Node| cuts.iter().any(|cut| cut.is_of(&node.name));
                    let nodes = plan.nodes.iter().filter(is_cut);
                    nodes.flat_map(|node| node.interfaces.iter().map(|port| (&node.name, &port.name))).collect()
                }
                _ => continue,
            };
            for (node, interface) in places {
                let key = (node.clone(), interface.clone());
                let (Some(state), Some(namespace)) = (self.states.get_mut(&key), self.namespaces.get(node)) else {
                    continue;
                };
                namespace.batch(interface, state.programs.make_place(state.index))?;
            }
        }
        Ok(())
    }

    /// Adds distribution tables to those of the plan.
    pub fn add_tables(&mut self, tables: &Tables) {
        self.tables.extend(tables.iter().map(|(name, table)| (name.clone(), table.clone())));
    }

    /// Makes the ends of a link, as far as they are here, what a change says from now on: without a fault, and under each.
    ///
    /// # Errors
    /// As for [`Interfaces::set`].
    pub fn change(
        &mut self,
        nodes: &[Node],
        ends: &[EndChange],
        under: &BTreeMap<String, Vec<EndChange>>,
    ) -> Result<()> {
        for end in ends {
            if let Some(state) = self.state_mut(end) {
                state.plain = end.into();
            }
        }
        for (fault, ends) in under {
            self.keep_under(fault, ends);
        }
        self.apply(nodes, ends)
    }

    /// Puts the ends of links, as far as they are here, under a fault, or lets them be what they are without it.
    ///
    /// # Errors
    /// As for [`Interfaces::set`].
    pub fn impair(&mut self, nodes: &[Node], fault: &str, ends: &[EndChange], on: bool) -> Result<()> {
        for end in ends {
            if let Some(state) = self.state_mut(end) {
                if on {
                    state.faults.insert(fault.to_owned());
                } else {
                    state.faults.remove(fault);
                }
            }
        }
        self.apply(nodes, ends)
    }

    /// Makes cuts between nodes, as far as these are here, or lets what they say to each other pass again.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn cut(&mut self, nodes: &[Node], fault: &str, cuts: &[Cut], on: bool) -> Result<()> {
        if on {
            self.partitions.begin(fault, cuts);
        } else {
            self.partitions.end(fault);
        }
        let is_cut = |node: &&Node| cuts.iter().any(|cut| cut.is_of(&node.name));
        for node in nodes.iter().filter(is_cut) {
            let Some(namespace) = self.namespaces.get(&node.name) else { continue };
            let refused = self.partitions.refused(&node.name, nodes)?;
            let mut programs = Vec::new();
            for (gate, addresses) in [(Gate::In, &refused.from), (Gate::Out, &refused.to)] {
                let program =
                    (!addresses.is_empty()).then(|| partition::program(gate, addresses, &refused.own)).transpose()?;
                programs.push((gate, program));
            }
            for interface in &node.interfaces {
                let key = (node.name.clone(), interface.name.clone());
                let Some(state) = self.states.get_mut(&key) else { continue };
                let replace = |(gate, program): &(Gate, Option<OwnedFd>)| {
                    state.programs.replace(state.index, *gate, Purpose::Partition, program.as_ref())
                };
                namespace.batch(&interface.name, programs.iter().flat_map(replace).collect())?;
            }
        }
        Ok(())
    }

    fn state_mut(&mut self, end: &EndChange) -> Option<&mut State> {
        self.states.get_mut(&(end.node.clone(), end.interface.clone()))
    }

    fn keep_under(&mut self, fault: &str, ends: &[EndChange]) {
        for end in ends {
            if let Some(state) = self.state_mut(end) {
                state.under.insert(fault.to_owned(), end.into());
            }
        }
    }

    /// Makes these ends what they are to be.
    fn apply(&mut self, nodes: &[Node], ends: &[EndChange]) -> Result<()> {
        let here = |end: &&EndChange| self.states.contains_key(&(end.node.clone(), end.interface.clone()));
        let ends: Vec<&EndChange> = ends.iter().filter(here).collect();
        for end in &ends {
            let Some(state) = self.state_mut(end) else { continue };
            let egress = state.wanted()?.egress.clone();
            self.set(&end.node, &end.interface, &egress)?;
        }
        self.set_running(nodes, ends.into_iter().map(|end| (end.node.clone(), end.interface.clone())))
    }

    /// Takes the interfaces of a node down as it goes off, or lets them be what they would be otherwise.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn power(&mut self, nodes: &[Node], node: &str, on: bool) -> Result<()> {
        let mut own = Vec::new();
        for (key, state) in self.states.iter_mut().filter(|((name, _), _)| name == node) {
            state.is_off = !on;
            own.push((state.index, key.clone()));
        }
        own.sort();
        self.set_running(nodes, own.into_iter().map(|(_, key)| key))
    }

    /// Sets interfaces, by node and name, up or down, as they are to be.
    fn set_running(&mut self, nodes: &[Node], interfaces: impl Iterator<Item = (String, String)>) -> Result<()> {
        let mut coming_up = Vec::new();
        for key in interfaces {
            let (Some(state), Some(namespace)) = (self.states.get_mut(&key), self.namespaces.get(&key.0)) else {
                continue;
            };
            let up = state.wanted()?.up && !state.is_off;
            if state.up == up {
                continue;
            }
            state.up = up;
            namespace.set_running(state.index, &key.1, up)?;
            if up {
                coming_up.extend(nodes.iter().find(|node| node.name == key.0).map(|node| (namespace, node, key.1)));
            }
        }
        // As when the guest was built: what needs a link with both ends up comes when they are.
        coming_up.into_iter().try_for_each(|(namespace, node, interface)| namespace.restore(node, &interface))
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
