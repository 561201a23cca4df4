//! Interfaces: their counters, and what is in their queues.
//!
//! Queue disciplines stand in a tree. Packets wait in its leaves, so a queue's depth and drops are those of the leaves;
//! what the root has dropped beyond that was lost on the wire in front of the queue (`loss:` of a link). A netem without a
//! rate is such a wire even where it is the leaf: it holds packets that are under way, and none that wait. What programs
//! take away (`network/drops.rs`) nobody counts: it is what the clsact discipline that they hang on has seen, and the tree has not.

use std::io::Write;

use nix::net::if_::if_nametoindex;
use nix::sys::socket::SockProtocol;

use super::dump::{attributes, number, small_number, Dumps};
use super::instrument::Instrument;
use crate::error::{Doing, Result};
use crate::network::netlink::Request;
use crate::network::Namespace;
use crate::plan::Plan;

/// Numbers of `linux/if_link.h`.
const RTM_GETSTATS: u16 = 94;
const STATS_LINK_64: u16 = 1;
/// The size of `struct if_stats_msg`.
const STATS_MESSAGE_BYTES: usize = 12;
/// Where fields of `struct rtnl_link_stats64` are.
const TX_PACKETS_AT: usize = 8;
/// The size of `struct tcmsg`.
const TC_MESSAGE_BYTES: usize = 20;
/// Numbers of `linux/rtnetlink.h` and `linux/gen_stats.h`.
const TCA_STATS2: u16 = 7;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_PACKETS_64: u16 = 8;
/// `TC_H_ROOT` and `TC_H_CLSACT`.
const ROOT: u32 = 0xFFFF_FFFF;
const CLSACT: u32 = 0xFFFF_FFF1;
/// `struct tc_netem_qopt`, and the attribute behind it with the rate (see `network/tc.rs`).
const NETEM_OPTIONS_BYTES: usize = 24;
const NETEM_RATE: u16 = 6;

/// The interfaces of all nodes.
pub struct Interfaces {
    nodes: Vec<Names>,
    /// Two of each node, in their order: queue disciplines, then counters.
    dumps: Dumps,
    /// The disciplines of one node; used anew for each.
    disciplines: Vec<Discipline>,
}

/// The interfaces of a node: number, and what a row begins with behind the instant, node and name.
type Names = Vec<(u32, String)>;

/// What the kernel tells of a queue discipline.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Discipline {
    interface: u32,
    handle: u32,
    parent: u32,
    is_wire: bool,
    /// Packets that it has let go; of clsact, those that it has seen.
    sent: u64,
    bytes: u64,
    packets: u64,
    drops: u64,
    requeues: u64,
    overlimits: u64,
}

/// The queue of an interface.
#[derive(Debug, Default, PartialEq, Eq)]
struct Queue {
    bytes: u64,
    packets: u64,
    drops: u64,
    overlimits: u64,
    requeues: u64,
    /// Packets that were lost on the wire.
    lost: u64,
}

impl Interfaces {
    /// Opens sockets in the network namespace of each node.
    ///
    /// # Errors
    /// The kernel gives none, or an interface of the plan is not there.
    pub fn open(plan: &Plan, namespaces: &[Namespace]) -> Result<Self> {
        let mut dumps = Dumps::new("interfaces")?;
        let mut nodes = Vec::new();
        for namespace in namespaces {
            namespace.enter()?;
            nodes.push(names(plan, namespace.node())?);
            dumps.add(SockProtocol::NetlinkRoute, queues_request())?;
            dumps.add(SockProtocol::NetlinkRoute, counters_request())?;
        }
        Ok(Self { nodes, dumps, disciplines: Vec::new() })
    }
}

impl Instrument for Interfaces {
    fn name(&self) -> &'static str {
        "interfaces"
    }

    fn header(&self) -> &'static str {
        "t_ns,node,interface,rx_bytes,rx_packets,rx_dropped,tx_bytes,tx_packets,tx_dropped,queue_bytes,queue_packets,\
         queue_drops,queue_overlimits,queue_requeues,lost_packets"
    }

    fn sample(&mut self, t_ns: i64, rows: &mut Vec<u8>) -> Result<usize> {
        let Self { nodes, dumps, disciplines } = self;
        let mut count = 0;
        let mut present = usize::MAX;
        dumps.make(|place, message| {
            let is_of_queues = place % 2 == 0;
            if is_of_queues && place != present {
                disciplines.clear();
            }
            present = place;
            if is_of_queues {
                disciplines.extend(discipline(message));
                return;
            }
            let interface = small_number(message, 4);
            let name = nodes[place / 2].iter().find(|(number, _)| *number == interface);
            let stats = message.get(STATS_MESSAGE_BYTES..).and_then(|rest| attributes(rest).next());
            if let (Some((_, name)), Some((STATS_LINK_64, stats))) = (name, stats) {
                append(rows, t_ns, name, stats, &queue(disciplines, interface, number(stats, TX_PACKETS_AT)));
                count += 1;
            }
        })?;
        Ok(count)
    }
}

/// The names of a node's interfaces, whose namespace the caller is in.
fn names(plan: &Plan, node: &str) -> Result<Names> {
    let interfaces = plan.nodes.iter().filter(|entry| entry.name == node).flat_map(|entry| &entry.interfaces);
    interfaces
        .map(|interface| {
            let name = &interface.name;
            let number = if_nametoindex(name.as_str()).doing(|| format!("look for {node}:{name}"))?;
            Ok((number, format!("{node},{name}")))
        })
        .collect()
}

fn counters_request() -> Request {
    // struct if_stats_msg: family, padding, interface, a mask of what is wanted.
    let mut body = [0; STATS_MESSAGE_BYTES];
    body[8..12].copy_from_slice(&(1_u32 << (STATS_LINK_64 - 1)).to_ne_bytes());
    Request::new(RTM_GETSTATS, libc::NLM_F_DUMP).structure(&body)
}

fn queues_request() -> Request {
    Request::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP).structure(&[0; TC_MESSAGE_BYTES])
}

/// Reads one `struct tcmsg` with its attributes.
fn discipline(message: &[u8]) -> Option<Discipline> {
    let mut found = Discipline {
        interface: small_number(message, 4),
        handle: small_number(message, 8),
        parent: small_number(message, 12),
        ..Discipline::default()
    };
    let mut is_netem = false;
    for (kind, payload) in attributes(message.get(TC_MESSAGE_BYTES..)?) {
        match kind {
            libc::TCA_KIND => is_netem = payload == b"netem\0",
            libc::TCA_OPTIONS if is_netem => {
                let options = payload.get(NETEM_OPTIONS_BYTES..).unwrap_or_default();
                let rate = attributes(options).find(|(kind, _)| *kind == NETEM_RATE);
                found.is_wire = rate.map_or(true, |(_, rate)| small_number(rate, 0) == 0);
            }
            TCA_STATS2 => {
                let of = |wanted| attributes(payload).find(|(kind, _)| *kind == wanted).map(|(_, stats)| stats);
                // struct gnet_stats_basic: bytes (64 bits), packets. The kernel adds their whole number only where it
                // needs more than 32 bits.
                found.sent = of(STATS_PACKETS_64).map_or_else(
                    || small_number(of(STATS_BASIC).unwrap_or_default(), 8).into(),
                    |packets| number(packets, 0),
                );
                // struct gnet_stats_queue: packets, bytes, drops, requeues, overlimits.
                let stats = of(STATS_QUEUE).unwrap_or_default();
                found.packets = small_number(stats, 0).into();
                found.bytes = small_number(stats, 4).into();
                found.drops = small_number(stats, 8).into();
                found.requeues = small_number(stats, 12).into();
                found.overlimits = small_number(stats, 16).into();
            }
            _ => {}
        }
    }
    Some(found)
}

/// What waits, and what was dropped, in the tree of one interface, which has sent `tx_packets`.
fn queue(disciplines: &[Discipline], interface: u32, tx_packets: u64) -> Queue {
    let tree = || disciplines.iter().filter(|discipline| discipline.interface == interface);
    let is_leaf = |one: &Discipline| one.handle == 0 || !tree().any(|other| other.parent >> 16 == one.handle >> 16);
    let mut found = Queue::default();
    for leaf in tree().filter(|one| is_leaf(one) && !one.is_wire && one.parent != CLSACT) {
        found.bytes += leaf.bytes;
        found.packets += leaf.packets;
        found.drops += leaf.drops;
        found.overlimits += leaf.overlimits;
        found.requeues += leaf.requeues;
    }
    // An interface without a tree has a root without a handle, which counts nothing.
    let root = tree().find(|one| one.parent == ROOT && one.handle != 0).copied();
    let root = root.unwrap_or(Discipline { sent: tx_packets, ..Discipline::default() });
    let seen = tree().find(|one| one.parent == CLSACT).map_or(0, |clsact| clsact.sent);
    let taken_away = seen.saturating_sub(root.sent + root.packets + root.drops);
    found.lost = root.drops.saturating_sub(found.drops) + taken_away;
    found
}

fn append(rows: &mut Vec<u8>, t_ns: i64, name: &str, stats: &[u8], queue: &Queue) {
    // struct rtnl_link_stats64: packets, bytes, errors and drops, each received, then sent.
    let field = |place: usize| number(stats, 8 * place);
    let [rx_packets, tx_packets, rx_bytes, tx_bytes] = [0, 1, 2, 3].map(field);
    let [rx_dropped, tx_dropped] = [6, 7].map(field);
    let Queue { bytes, packets, drops, overlimits, requeues, lost } = queue;
    // Writing into memory cannot fail.
    let _ = writeln!(
        rows,
        "{t_ns},{name},{rx_bytes},{rx_packets},{rx_dropped},{tx_bytes},{tx_packets},{tx_dropped},\
         {bytes},{packets},{drops},{overlimits},{requeues},{lost}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: Discipline = Discipline {
        interface: 2,
        handle: 0x1_0000,
        parent: ROOT,
        is_wire: true,
        sent: 100,
        bytes: 9000,
        packets: 9,
        drops: 7,
        requeues: 0,
        overlimits: 0,
    };
    const QUEUE: Discipline = Discipline {
        handle: 0x2_0000,
        parent: 0x1_0001,
        is_wire: false,
        bytes: 3000,
        packets: 3,
        drops: 5,
        overlimits: 4,
        requeues: 1,
        ..WIRE
    };

    const CLSACT_SEEN: Discipline =
        Discipline { handle: 0xFFFF_0000, parent: CLSACT, is_wire: false, drops: 0, ..WIRE };
    const NO_QUEUE: Discipline =
        Discipline { handle: 0, is_wire: false, sent: 0, packets: 0, bytes: 0, drops: 0, ..WIRE };

    #[test]
    fn packets_under_way_are_in_no_queue_and_losses_are_no_drops_of_it() {
        let expected = Queue { bytes: 3000, packets: 3, drops: 5, overlimits: 4, requeues: 1, lost: 2 };
        assert_eq!(queue(&[WIRE, QUEUE], 2, 100), expected);
        assert_eq!(queue(&[WIRE], 2, 100), Queue { lost: 7, ..Queue::default() });
    }

    #[test]
    fn what_a_program_has_taken_away_is_lost() {
        let clsact = Discipline { sent: 100 + 9 + 7 + 11, ..CLSACT_SEEN };
        assert_eq!(queue(&[WIRE, QUEUE, clsact], 2, 100).lost, 2 + 11);
        let clsact = Discipline { sent: 45, ..CLSACT_SEEN };
        assert_eq!(queue(&[NO_QUEUE, clsact], 2, 41), Queue { lost: 4, ..Queue::default() });
    }

    #[test]
    fn a_queue_alone_is_all_there_is_and_other_interfaces_do_not_count() {
        let alone = Discipline { parent: ROOT, ..QUEUE };
        let other = Discipline { interface: 3, ..WIRE };
        assert_eq!(queue(&[other, alone], 2, 100).drops, 5);
        assert_eq!(queue(&[other, alone], 2, 100).lost, 0);
        assert_eq!(queue(&[other, alone], 4, 100), Queue::default());
    }

    #[test]
    fn packets_are_counted_beyond_32_bits() {
        let sent = |packets: u64| {
            let low = (packets as u32).to_ne_bytes();
            let mut stats = Request::empty().attribute(STATS_BASIC, &[[0; 8].as_slice(), &low, &[0; 4]].concat());
            if packets > u32::MAX.into() {
                stats = stats.attribute(STATS_PACKETS_64, &packets.to_ne_bytes());
            }
            let message = Request::new(0, 0).structure(&[0; TC_MESSAGE_BYTES]);
            let message = message.nested(TCA_STATS2, |request| request.append(&stats)).finish();
            discipline(&message[16..]).unwrap().sent
        };
        assert_eq!([7, 5_000_000_000].map(sent), [7, 5_000_000_000]);
    }

    #[test]
    fn a_netem_is_a_wire_unless_it_has_a_rate() {
        let message = |rate: u32| {
            let options =
                Request::empty().structure(&[0; NETEM_OPTIONS_BYTES]).attribute(NETEM_RATE, &rate.to_ne_bytes());
            let stats = Request::empty().attribute(STATS_QUEUE, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
            let attributes = Request::new(0, 0)
                .structure(&[0; TC_MESSAGE_BYTES])
                .text(libc::TCA_KIND, "netem")
                .nested(libc::TCA_OPTIONS, |request| request.append(&options))
                .nested(TCA_STATS2, |request| request.append(&stats));
            discipline(&attributes.finish()[16..]).unwrap()
        };
        assert!(message(0).is_wire);
        assert!(!message(1000).is_wire);
        assert_eq!((message(0).packets, message(0).bytes, message(0).drops), (1, 2, 3));
    }
}
