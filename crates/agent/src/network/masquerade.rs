//! What leaves by an interface carries that interface's address, where the kernel has no tables of iptables (as Debian's Linux 7.2,
//! which has no chains of nftables for addresses either): by connection tracking where packets leave and arrive (tc-ct(8)).
//!
//! A packet that leaves makes its connection known, with the interface's address as its source and a port that is free there. One
//! that arrives is looked up, and belongs to whom the connection says. Nothing of that is between these two points, so the
//! kernel puts a packet together there that came in fragments, and nobody takes it apart again: what is larger than the
//! interface's MTU then is lost, and counted among what it dropped. With the tables it would be sent in fragments again.
//!
//! The filters run behind the programs of links (`programs.rs`), which see packets as they are inside.

use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;

use crate::error::{Doing, Result};
use crate::network::addresses::octets;
use crate::network::netlink::{Request, Requests, Socket};
use crate::network::programs::{self, Gate};

/// The first argument of this program when it hides what is behind a node; the interface follows.
pub const WORD: &str = "masquerade";

/// Where filters of a node that hides others are, and those of machines outside: each has one of its own there.
const HIDING: u16 = 0x100;
const OUTSIDE: u16 = 0x4000;

/// Of `linux/pkt_cls.h`.
const FLOWER_ACTIONS: u16 = 3;
const FLOWER_ETHERNET_TYPE: u16 = 8;
const FLOWER_IPV4_SOURCE: u16 = 10;
const FLOWER_IPV6_SOURCE: u16 = 14;
const ACTION_KIND: u16 = 1;
/// With `NLA_F_NESTED`, which the kernel asks of newer attributes.
const ACTION_OPTIONS: u16 = 2 | 1 << 15;
/// `TC_ACT_UNSPEC`: the next filter looks at the packet. `TC_ACT_PIPE`: the next action does.
const NEXT_FILTER: i32 = -1;
const NEXT_ACTION: i32 = 3;

/// Of `linux/tc_act/tc_ct.h`.
const CT_PARAMETERS: u16 = 1;
const CT_ACTION: u16 = 3;
const CT_MARK: u16 = 5;
const CT_MARK_MASK: u16 = 6;
const CT_IPV4_FIRST: u16 = 9;
const CT_IPV6_FIRST: u16 = 11;
const CT_COMMIT: u16 = 1;
const CT_TRANSLATE: u16 = 1 << 3;
const CT_TRANSLATE_SOURCE: u16 = 1 << 4;
/// Of `linux/tc_act/tc_connmark.h`.
const CONNMARK_PARAMETERS: u16 = 1;

/// Of `linux/fib_rules.h`.
const RULE_INPUT: u16 = 3;
const RULE_PRIORITY: u16 = 6;
const RULE_MARK: u16 = 10;
const RULE_MASK: u16 = 16;
const RULE_BLACKHOLE: u8 = 6;
/// Behind that for the node's own addresses, before those for all others.
const RULE_PLACE: u32 = 1;

/// What connections have that were made from inside, and packets that belong to one.
const MARK: u32 = 1;

/// Whether the kernel has tables of iptables, once their modules are loaded.
pub fn has_tables() -> bool {
    Path::new("/proc/net/ip_tables_names").exists()
}

/// Lets what the node forwards by an interface carry its address, and only answers come in by it, whose receivers are not the
/// node itself.
///
/// # Errors
/// There is no such interface, or the kernel refuses it.
pub fn hide(interface: &str) -> Result<()> {
    let index = if_nametoindex(interface).doing(|| interface.to_owned())?;
    let mut requests = vec![(programs::place(index), format!("clsact on {interface}"))];
    let mut seen = [false; 2];
    for (_, address) in addresses()?.into_iter().filter(|(name, _)| name == interface) {
        let version = usize::from(address.is_ipv6());
        let place = HIDING + 0x10 * version as u16;
        if std::mem::replace(&mut seen[version], true) {
            continue;
        }
        // The node's own packets have the right address, and may be fragments.
        let own = filter(index, Gate::Out, place, address, Some(address), |request| request);
        let others = filter(index, Gate::Out, place + 1, address, None, |request| sent(request, 1, address));
        let known = filter(index, Gate::In, place, address, None, |request| marked(received(request, 1), 2));
        let rule = (rule(interface, address), format!("rule for what {interface} brings"));
        requests.extend([own, others, known].map(|request| (request, format!("translation to {address}"))));
        requests.push(rule);
    }
    Socket::open()?.batch(requests)
}

/// Lets what has this source and leaves by any interface that was there carry the address of that one; or no more.
///
/// # Errors
/// The kernel refuses it.
pub fn mask(source: IpAddr, on: bool) -> Result<()> {
    let mut requests = Requests::new();
    // Of its own, as far as the numbers of machines differ; a place has filters of one protocol alone.
    let number = octets(source).last().copied().unwrap_or_default();
    let place = OUTSIDE | u16::from(source.is_ipv6()) << 8 | u16::from(number);
    for (interface, address) in addresses()?.into_iter().filter(|(_, address)| address.is_ipv4() == source.is_ipv4()) {
        let index = if_nametoindex(interface.as_str()).doing(|| interface.clone())?;
        let what = format!("translation of {source} to {address}");
        if on {
            requests.push((programs::place(index), format!("clsact on {interface}")));
            let leaving = |request| sent(request, 1, address);
            requests.push((filter(index, Gate::Out, place, address, Some(source), leaving), what.clone()));
            requests.push((filter(index, Gate::In, place, address, None, |request| received(request, 1)), what));
        } else {
            for gate in [Gate::Out, Gate::In] {
                let header = programs::header(index, gate, place, protocol(address));
                let request = Request::new(libc::RTM_DELTFILTER, 0).structure(&header);
                requests.push((request.text(libc::TCA_KIND, "flower"), format!("no {what}")));
            }
        }
    }
    Socket::open()?.batch(requests)
}

/// The first address of each version that interfaces of this network namespace have, loopback and link-local ones aside.
fn addresses() -> Result<Vec<(String, IpAddr)>> {
    let of = getifaddrs().doing(|| "ask for the addresses of interfaces".to_owned())?.filter_map(|one| {
        let address = one.address?;
        let ipv4 = address.as_sockaddr_in().map(|it| IpAddr::from(it.ip()));
        let ipv6 = address.as_sockaddr_in6().map(|it| IpAddr::from(it.ip()));
        Some((one.interface_name, ipv4.or(ipv6)?))
    });
    let mut found: Vec<(String, IpAddr)> = Vec::new();
    for (name, address) in of.filter(|(name, address)| name != "lo" && !is_link_local(*address)) {
        if !found.iter().any(|(other, there)| *other == name && there.is_ipv4() == address.is_ipv4()) {
            found.push((name, address));
        }
    }
    Ok(found)
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.segments()[0] & 0xFFC0 == 0xFE80)
}

/// The protocol of Ethernet that carries addresses of this version, in network byte order.
fn protocol(address: IpAddr) -> u16 {
    let protocol = if address.is_ipv4() { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
    (protocol as u16).to_be()
}

/// A filter for packets of the version of `address`, of all or of one source, with the actions that `act` writes.
fn filter(
    index: u32,
    gate: Gate,
    place: u16,
    address: IpAddr,
    source: Option<IpAddr>,
    act: impl FnOnce(Request) -> Request,
) -> Request {
    let protocol = protocol(address);
    Request::new(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .structure(&programs::header(index, gate, place, protocol))
        .text(libc::TCA_KIND, "flower")
        .nested(libc::TCA_OPTIONS, |request| {
            let request = request.attribute(FLOWER_ETHERNET_TYPE, &protocol.to_ne_bytes());
            let request = match source {
                None => request,
                Some(source) => {
                    let kind = if source.is_ipv4() { FLOWER_IPV4_SOURCE } else { FLOWER_IPV6_SOURCE };
                    let octets = octets(source);
                    request.attribute(kind, &octets).attribute(kind + 1, &vec![0xFF; octets.len()])
                }
            };
            request.nested(FLOWER_ACTIONS, act)
        })
}

/// The action that makes a connection known, with this source.
fn sent(request: Request, number: u16, address: IpAddr) -> Request {
    let first = if address.is_ipv4() { CT_IPV4_FIRST } else { CT_IPV6_FIRST };
    action(request, number, "ct", |request| {
        request
            .attribute(CT_PARAMETERS, &generic(NEXT_FILTER))
            .attribute(CT_ACTION, &(CT_COMMIT | CT_TRANSLATE | CT_TRANSLATE_SOURCE).to_ne_bytes())
            .attribute(CT_MARK, &MARK.to_ne_bytes())
            .attribute(CT_MARK_MASK, &u32::MAX.to_ne_bytes())
            .attribute(first, &octets(address))
            .attribute(first + 1, &octets(address))
    })
}

/// The action that gives a packet to whom its connection says.
fn received(request: Request, number: u16) -> Request {
    action(request, number, "ct", |request| {
        request.attribute(CT_PARAMETERS, &generic(NEXT_ACTION)).attribute(CT_ACTION, &CT_TRANSLATE.to_ne_bytes())
    })
}

/// The action that gives a packet the mark of its connection.
fn marked(request: Request, number: u16) -> Request {
    action(request, number, "connmark", |request| {
        // struct tc_connmark: the zone is behind what all actions have.
        request.attribute(CONNMARK_PARAMETERS, &[generic(NEXT_FILTER).as_slice(), &[0; 4]].concat())
    })
}

fn action(request: Request, number: u16, kind: &str, fill: impl FnOnce(Request) -> Request) -> Request {
    request.nested(number, |request| request.text(ACTION_KIND, kind).nested(ACTION_OPTIONS, fill))
}

/// What the parameters of all actions begin with (`tc_gen`): what comes after it is the third number.
fn generic(then: i32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[8..12].copy_from_slice(&then.to_ne_bytes());
    bytes
}

/// What comes in by the interface and belongs to no connection from inside goes nowhere but to the node itself.
fn rule(interface: &str, address: IpAddr) -> Request {
    let mut header = [0; 12]; // struct fib_rule_hdr
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    header[0] = family as u8;
    header[7] = RULE_BLACKHOLE;
    Request::new(libc::RTM_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .structure(&header)
        .text(RULE_INPUT, interface)
        .attribute(RULE_PRIORITY, &RULE_PLACE.to_ne_bytes())
        .attribute(RULE_MARK, &0_u32.to_ne_bytes())
        .attribute(RULE_MASK, &MARK.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_link_itself_are_link_local() {
        let found = ["fe80::1", "febf::1", "fec0::1", "fd00::1", "169.254.0.1"].map(|text| text.parse().unwrap());
        assert_eq!(found.map(is_link_local), [true, true, false, false, false]);
    }

    #[test]
    fn an_interface_without_a_name_here_hides_nobody() {
        assert!(hide("no-such-one").unwrap_err().to_string().contains("no-such-one"));
    }
}
