//! Building a guest from the plan: modules, nodes, links, and what makes the links usable.

use std::cell::RefCell;
use std::collections::HashMap;

use nix::sched::CloneFlags;
use nix::unistd::Pid;

use crate::channel::protocol::FromAgent;
use crate::channel::Channel;
use crate::clock;
use crate::error::{Doing, Error, Result};
use crate::guest;
use crate::guest::maker::{enter, namespace_file, Maker};
use crate::guest::modules::{self, Modules};
use crate::guest::run_dir::RunDir;
use crate::guest::shortage::Wanted;
use crate::measure::Sampler;
use crate::network::egress::Interfaces;
use crate::network::{Namespace, Port};
use crate::node::load::tally::Tally;
use crate::node::{ready, Handle};
use crate::peers::Peers;
use crate::plan::interior::{Interior, Interiors};
use crate::plan::{self, FaultUpdate, Link, LinkEnd, LinkUpdate, Node, Plan, Process, FORMAT};
use crate::priority::{self, Priority};

/// The plan in the run directory.
const PLAN: &str = "plan.json";
/// What the agent itself uses of the kernel, whatever the plan names.
const OWN_MODULES: [&str; 3] = ["overlay", "veth", "sch_netem"];
/// How often progress is told during each part of the building.
const PROGRESS_MESSAGES: usize = 10;

/// A guest that is ready to run its plan.
pub struct Guest {
    /// Its name in the plan.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// The nodes of this guest by name.
    pub nodes: HashMap<String, Handle>,
    /// The run directory.
    pub run_dir: RunDir,
    /// Who measures; `None` when nothing is measured.
    pub sampler: Option<Sampler>,
    /// What its interfaces do to packets.
    pub interfaces: RefCell<Interfaces>,
    /// The agents of the other guests.
    pub peers: Peers,
    /// What loads that last have come to, by the names of their faults.
    pub loads: RefCell<HashMap<String, Tally>>,
    /// Programs that the kernel has ended because faults wanted memory to be short.
    pub wanted_shortages: RefCell<Wanted>,
}

impl Guest {
    /// Reads what a link becomes while the run goes on, and sees to it that it can.
    ///
    /// # Errors
    /// The file is unusable, or the kernel lacks what it takes.
    pub fn prepare_update(&self, file: &str) -> Result<LinkUpdate> {
        let update: LinkUpdate = serde_json::from_str(&self.run_dir.read(file)?).doing(|| file.to_owned())?;
        self.prepare_link(&update)?;
        Ok(update)
    }

    /// Reads which faults begin and end by hand, and sees to it that they can.
    ///
    /// # Errors
    /// As of [`Guest::prepare_update`].
    pub fn prepare_faults(&self, file: &str) -> Result<FaultUpdate> {
        let update: FaultUpdate = serde_json::from_str(&self.run_dir.read(file)?).doing(|| file.to_owned())?;
        load(&update.modules)?;
        update.links.iter().try_for_each(|link| self.prepare_link(link))?;
        Ok(update)
    }

    fn prepare_link(&self, update: &LinkUpdate) -> Result<()> {
        load(&update.modules)?;
        self.interfaces.borrow_mut().add_tables(&update.tables);
        Ok(())
    }
}

fn load(names: &[String]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let mut modules = Modules::find()?;
    names.iter().try_for_each(|name| modules.load(name))
}

/// Builds the guest named `name` from the plan in `run_dir`.
///
/// # Errors
/// The plan is unusable or the kernel refuses something.
pub fn build(channel: &mut Channel, run_dir: &str, name: &str) -> Result<Guest> {
    // Before all that is in memory because of the plan.
    let maker = Maker::start(run_dir)?;
    let directory = RunDir::open(run_dir)?;
    let (namespaces, handles) = make_nodes(channel, &directory.parse(PLAN)?, name, maker)?;
    let plan: Plan = directory.parse(PLAN)?;
    check(&plan, name)?;
    let nodes: Vec<&Node> = plan.nodes.iter().filter(|node| node.guest == name).collect();

    let peers = Peers::open(&plan, name)?;
    let wiring = Wiring { guest: name, nodes, namespaces };
    wiring.make_links(channel, &plan)?;
    wiring.configure(channel, &handles)?;
    // Not earlier: a long stretch of real-time work would keep the kernel's own threads from freeing memory.
    for process in handles.values().map(|handle| handle.init).chain([Pid::this()]) {
        priority::set(process, Priority::Agent).doing(|| "set the priority of the agent".to_owned())?;
    }
    priority::set_network_thread()?;
    let sampler = Sampler::start(&plan, name, &wiring.namespaces, &directory)?;
    let namespaces = wiring.nodes.iter().map(|node| node.name.clone()).zip(wiring.namespaces).collect();
    let mut interfaces = Interfaces::new(&plan, namespaces, clock::face());
    for node in wiring.nodes {
        node.interfaces.iter().try_for_each(|port| interfaces.set(&node.name, &port.name, &port.egress))?;
    }
    interfaces.make_places(&plan)?;
    let interfaces = RefCell::new(interfaces);
    Ok(Guest {
        name: name.to_owned(),
        plan,
        nodes: handles,
        run_dir: directory,
        sampler,
        interfaces,
        peers,
        loads: RefCell::default(),
        wanted_shortages: RefCell::default(),
    })
}

/// Makes the nodes with their namespaces, which are in the order of the plan.
fn make_nodes(
    channel: &mut Channel,
    interiors: &Interiors,
    name: &str,
    mut maker: Maker,
) -> Result<(Vec<Namespace>, HashMap<String, Handle>)> {
    prepare_kernel(&interiors.guests, name)?;
    guest::prepare_for_nodes(&interiors.hosts)?;
    let nodes: Vec<&Interior> = interiors.nodes.iter().filter(|node| node.guest == name).collect();
    guest::images::mount_all(&nodes)?;
    guest::volumes::make_all(&nodes)?;
    let clock_rate = interiors.guests.iter().find(|entry| entry.name == name).map(|entry| entry.clock_rate);
    maker.begin(clock_rate, nodes.len() > 1)?;
    let mut processes: HashMap<&str, Vec<(usize, &Process)>> = HashMap::new();
    for (place, process) in interiors.processes.iter().enumerate() {
        processes.entry(&process.node).or_default().push((place, process));
    }
    let mut handles = HashMap::new();
    let mut namespaces = Vec::new();
    for (done, node) in nodes.iter().enumerate() {
        progress(channel, done, nodes.len(), "nodes")?;
        let own = processes.remove(node.name.as_str()).unwrap_or_default();
        let (namespace, handle) = maker.make(node, &own)?;
        namespaces.push(namespace);
        handles.insert(node.name.clone(), handle);
    }
    maker.end()?;
    Ok((namespaces, handles))
}

/// Finds out now what would otherwise fail in the middle of the run.
fn check(plan: &Plan, guest: &str) -> Result<()> {
    if plan.format != FORMAT {
        return Err(Error::new(format!("plan.json: format {}; this agent reads format {FORMAT}", plan.format)));
    }
    if plan.guests.iter().all(|entry| entry.name != guest) {
        return Err(Error::new(format!("plan.json: no guest {guest}")));
    }
    for process in &plan.processes {
        if let Some(crate::plan::Ready::Output { regex }) = &process.ready {
            ready::compile(process, regex)?;
        }
        if !plan.nodes.iter().any(|node| node.name == process.node) {
            return Err(Error::new(format!("process {}: no node {}", process.name, process.node)));
        }
    }
    Ok(())
}

/// Loads the modules and sets the parameters that the plan gives the kernel as a whole, and lets it rest.
fn prepare_kernel(guests: &[plan::Guest], name: &str) -> Result<()> {
    let entry = guests.iter().find(|entry| entry.name == name);
    entry.iter().try_for_each(|entry| entry.clock_rate.face().map(clock::set_face))?;
    guest::keep_pages_in_order()?;
    let mut modules = Modules::find()?;
    let wanted = entry.iter().flat_map(|entry| &entry.modules);
    for module in OWN_MODULES.into_iter().chain(wanted.map(String::as_str)) {
        modules.load(module)?;
    }
    modules::serve_kernel()?;
    guest::let_rest()?;
    entry.iter().try_for_each(|entry| guest::set_sysctls(&entry.sysctls))
}

/// The nodes of the guest, each with its network.
struct Wiring<'a> {
    guest: &'a str,
    nodes: Vec<&'a Node>,
    namespaces: Vec<Namespace>,
}

impl Wiring<'_> {
    fn make_links(&self, channel: &mut Channel, plan: &Plan) -> Result<()> {
        let places: HashMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
        for (done, link) in plan.links.iter().enumerate() {
            progress(channel, done, plan.links.len(), "links")?;
            let find = |end: &LinkEnd| {
                let place = *places.get(end.node.as_str())?;
                let port =
                    Port::all(&self.nodes[place].interfaces).find(|port| port.interface.name == end.interface)?;
                Some((place, port))
            };
            match (find(&link.ends.0), find(&link.ends.1)) {
                (Some((here, here_port)), Some((there, there_port))) => {
                    self.namespaces[here].create_link(&here_port, &self.namespaces[there], &there_port)?;
                }
                (Some((place, port)), None) | (None, Some((place, port))) => {
                    self.namespaces[place].adopt(self.device_of(plan, link)?, &port)?;
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// The device of this guest at which the wire of a link to another one ends.
    fn device_of<'p>(&self, plan: &'p Plan, link: &Link) -> Result<&'p str> {
        let wires = plan.wires.iter().filter(|wire| wire.link.as_ref() == Some(&link.name));
        let mut ends = wires.flat_map(|wire| [&wire.ends.0, &wire.ends.1]);
        let found = ends.find(|end| end.guest == self.guest).map(|end| end.device.as_str());
        found.ok_or_else(|| Error::new(format!("link {}: no wire of it ends in guest {}", link.name, self.guest)))
    }

    /// Everything that needs the links: first all interfaces come up, then what needs a link with both ends up.
    fn configure(&self, channel: &mut Channel, handles: &HashMap<String, Handle>) -> Result<()> {
        let total = self.nodes.len();
        let outside = namespace_file("net")?;
        for (done, (node, namespace)) in self.nodes.iter().zip(&self.namespaces).enumerate() {
            progress(channel, done, total, "interfaces")?;
            let sysctls = &handles[&node.name].interface_sysctls;
            if !sysctls.is_empty() {
                // Whose /proc/sys/net is depends on who looks.
                namespace.enter()?;
                guest::set_sysctls(sysctls).doing(|| format!("node {}", node.name))?;
            }
            namespace.carry_out(namespace.configuration(node)?)?;
        }
        enter(&outside, CloneFlags::CLONE_NEWNET)?;
        for (done, (node, namespace)) in self.nodes.iter().zip(&self.namespaces).enumerate() {
            progress(channel, done, total, "routes")?;
            namespace.carry_out(namespace.routing(node)?)?;
        }
        Ok(())
    }
}

fn progress(channel: &mut Channel, done: usize, total: usize, what: &str) -> Result<()> {
    if done % total.div_ceil(PROGRESS_MESSAGES) == 0 {
        channel.send(&FromAgent::Progress { done, total, what })?;
    }
    Ok(())
}
