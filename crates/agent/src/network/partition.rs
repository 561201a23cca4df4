//! Partitions: what some nodes send to others is lost, and nothing else is.
//!
//! A cut is made at both ends, by addresses: a packet is lost if it leaves while the cut lasts, or arrives while it does.
//! So it holds from its very instant to its very end, whatever is on the way then, and whichever switches and routers are
//! between; what these nodes forward for others passes. A node has the addresses that the plan gives it and the link-local
//! ones that its kernel makes of its interfaces' MAC addresses (RFC 4291, appendix A).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;

use crate::error::Result;
use crate::network::addresses::{parse_mac, parse_prefix};
use crate::network::bpf::{Code, Map, Op, When, DROP, PASS, R, SKB_LOAD_BYTES};
use crate::network::programs::Gate;
use crate::plan::{Cut, Node};

/// Where `struct __sk_buff` has the protocol, in network byte order.
const PROTOCOL: i16 = 16;
/// Where it has whom the frame is for: this interface alone, or others too.
const PACKET_TYPE: i16 = 4;
const PACKET_HOST: i32 = 0;
const IPV4: i32 = 0x0008;
const IPV6: i32 = 0xDD86;
/// Where addresses are in an Ethernet frame: of senders, and how much later those of receivers.
const IPV4_SOURCE: i32 = 14 + 12;
const IPV6_SOURCE: i32 = 14 + 8;
const IPV4_BYTES: i32 = 4;
const IPV6_BYTES: i32 = 16;
/// The third word of an IPv4 address as IPv6 (RFC 4291, 2.5.5.2), in network byte order.
const MAPPED: u64 = 0xFFFF_0000;

/// The partitions that last, by the names of their faults.
#[derive(Default)]
pub struct Partitions(BTreeMap<String, Vec<Cut>>);

/// What a node neither takes nor sends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Whose packets it does not take.
    pub from: BTreeSet<Ipv6Addr>,
    /// Those to whom it sends none.
    pub to: BTreeSet<Ipv6Addr>,
    /// Its own addresses.
    pub own: BTreeSet<Ipv6Addr>,
}

impl Partitions {
    /// A partition begins.
    pub fn begin(&mut self, fault: &str, cuts: &[Cut]) {
        self.0.insert(fault.to_owned(), cuts.to_vec());
    }

    /// It ends.
    pub fn end(&mut self, fault: &str) {
        self.0.remove(fault);
    }

    /// What a node refuses by all partitions that last.
    ///
    /// # Errors
    /// An address in the plan is malformed.
    pub fn refused(&self, node: &str, nodes: &[Node]) -> Result<Refused> {
        let has = |names: &[String]| names.iter().any(|name| name == node);
        let own = addresses(&[node.to_owned()], nodes)?.into_iter().collect();
        let mut refused = Refused { own, ..Refused::default() };
        for cut in self.0.values().flatten() {
            if has(&cut.targets) {
                refused.from.extend(addresses(&cut.sources, nodes)?);
            }
            if has(&cut.sources) {
                refused.to.extend(addresses(&cut.targets, nodes)?);
            }
        }
        Ok(refused)
    }
}

fn addresses(names: &[String], nodes: &[Node]) -> Result<Vec<Ipv6Addr>> {
    let mut found = Vec::new();
    for node in nodes.iter().filter(|node| names.contains(&node.name)) {
        let own = node.interfaces.iter().flat_map(|interface| &interface.addresses);
        for address in own.chain(&node.loopback) {
            found.push(match parse_prefix(address)?.0 {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            });
        }
        for interface in &node.interfaces {
            found.push(link_local(parse_mac(&interface.mac)?));
        }
    }
    Ok(found)
}

fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[0xFE, 0x80]);
    bytes[8..11].copy_from_slice(&mac[..3]);
    bytes[8] ^= 2;
    bytes[11..13].copy_from_slice(&[0xFF, 0xFE]);
    bytes[13..].copy_from_slice(&mac[3..]);
    bytes.into()
}

/// Loads the program that drops, at this gate of a node, what comes from or goes to these addresses. What the node
/// forwards passes: it is neither from nor to an address of its `own`, and no broadcast that has arrived.
///
/// # Errors
/// The kernel refuses it.
pub fn program(gate: Gate, refused: &BTreeSet<Ipv6Addr>, own: &BTreeSet<Ipv6Addr>) -> Result<OwnedFd> {
    let set = |members: &BTreeSet<Ipv6Addr>| Map::keys(&members.iter().map(Ipv6Addr::octets).collect::<Vec<_>>());
    let (refused, own) = (set(refused)?, set(own)?);
    let mut code = Code::default();
    code.by(Op::Mov, R::R6, R::R1).load_32(R::R7, R::R6, PROTOCOL);
    code.jump(When::Equal, R::R7, IPV4, "IPv4").jump(When::Equal, R::R7, IPV6, "IPv6").end(PASS);
    for (label, source, bytes) in [("IPv4", IPV4_SOURCE, IPV4_BYTES), ("IPv6", IPV6_SOURCE, IPV6_BYTES)] {
        let (other, mine) = if gate == Gate::In { (source, source + bytes) } else { (source + bytes, source) };
        // The key, 16 bytes, is below the frame pointer.
        code.label(label).with(Op::Mov, R::R8, 0).store(R::R10, -16, R::R8);
        code.constant(R::R8, MAPPED).store_32(R::R10, -8, R::R8);
        load_bytes(&mut code, other, bytes).look_up(&refused, -16).jump(When::Equal, R::R0, 0, "pass");
        if gate == Gate::In {
            code.load_32(R::R7, R::R6, PACKET_TYPE).jump(When::Greater, R::R7, PACKET_HOST, "drop");
        }
        load_bytes(&mut code, mine, bytes).look_up(&own, -16).jump(When::Greater, R::R0, 0, "drop").end(PASS);
    }
    code.label("pass").end(PASS).label("drop").end(DROP);
    code.load_program("partition")
}

/// Copies bytes of the packet, which R6 points to, to the end of the key; a packet that is too short passes.
fn load_bytes(code: &mut Code, from: i32, bytes: i32) -> &mut Code {
    code.by(Op::Mov, R::R1, R::R6).with(Op::Mov, R::R2, from);
    code.by(Op::Mov, R::R3, R::R10).with(Op::Add, R::R3, -bytes).with(Op::Mov, R::R4, bytes);
    code.call(SKB_LOAD_BYTES).jump(When::Greater, R::R0, 0, "pass")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_address_makes_the_link_local_one_that_kernels_make_of_it() {
        assert_eq!(link_local([0x02, 0, 0, 0x12, 0x34, 0x56]), "fe80::ff:fe12:3456".parse::<Ipv6Addr>().unwrap());
    }
}
