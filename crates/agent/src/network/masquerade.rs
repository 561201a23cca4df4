//! What leaves by an interface carries that interface's address, where the kernel has no tables of iptables (as Debian's Linux 7.2,
//! which has no chains of nftables for addresses either): by connection tracking where packets leave and arrive (tc-ct(8)).
//!
//! A packet that leaves makes its connection known, with the interface's address as its source and a port that is free there. One
//! that arrives is looked up, and belongs to whom the connection says. Connection tracking puts packets together that came in
//! fragments. Where packets arrive that is all right: who forwards one takes it apart again. Where they leave nobody does, and Linux 6.1
//! sends even what it keeps there, so that two write to one memory. So fragments make a detour before they leave, by a pair of
//! interfaces of the node's own: where it ends they arrive, become one packet with the right source, and leave from there, apart again.
//!
//! The filters run behind the programs of links (`programs.rs`), which see packets as they are inside; but fragments go on their detour
//! before them, or they would meet each program twice.

use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nameindex, if_nametoindex};

use crate::error::{Doing, Result};
use crate::network::addresses::octets;
use crate::network::flower::{
    action, by, filter, fragments, from, generic, leave_by, lose, protocol, NEXT_ACTION, NEXT_FILTER,
};
use crate::network::netlink::{Request, Requests, Socket};
use crate::network::programs::{self, Gate};
use crate::network::{interface_header, VETH_INFO_PEER};

/// The first argument of this program when it hides what is behind a node; the interface follows.
pub const WORD: &str = "masquerade";

/// Where filters of a node that hides others are, and those of machines outside: each has one of its own there.
const HIDING: u16 = 0x3000;
const OUTSIDE: u16 = 0x4000;
/// Where the filters are that send the fragments of either on their detour, before the programs of links.
const DETOUR: u16 = 0x1000;

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

/// The largest that there is: fragments are as large as where they leave wants them.
const DETOUR_MTU: u32 = 65_535;
/// `IFLA_INET6_ADDR_GEN_MODE` of `linux/if_link.h`, and its value for none.
const INET6_ADDRESSES: u16 = 8;
const NO_ADDRESSES: u8 = 1;

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
    let addresses = addresses()?;
    for (_, address) in addresses.iter().filter(|(name, _)| name == interface) {
        let address = *address;
        let version = usize::from(address.is_ipv6());
        let place = HIDING + 0x10 * version as u16;
        if std::mem::replace(&mut seen[version], true) {
            continue;
        }
        // The node's own packets have the right address, and may be fragments. Others that are make the detour, but for those
        // that came in by an interface which was made later.
        let own = filter(index, Gate::Out, place, address, from(address), |request| request);
        let whole = filter(index, Gate::Out, place + 1, address, fragments(false), |request| {
            sent(request, 1, address, NEXT_FILTER)
        });
        let stray = filter(index, Gate::Out, place + 2, address, fragments(true), |request| lose(request, 1));
        let known =
            filter(index, Gate::In, place, address, |request| request, |request| marked(received(request, 1), 2));
        let rule = (rule(interface, address), format!("rule for what {interface} brings"));
        requests.extend([own, whole, stray, known].map(|request| (request, format!("translation to {address}"))));
        requests.push(rule);
        let detour = Detour { index, place: DETOUR + version as u16, address };
        requests.extend(detour.make());
        for other in &if_nameindex().doing(|| "ask for the interfaces".to_owned())? {
            let name = other.name().to_string_lossy();
            if name != "lo" && name != interface {
                requests.push(detour.take(by(&name)));
            }
        }
        let others = addresses.iter().filter(|(name, other)| name != interface && other.is_ipv4() == address.is_ipv4());
        requests.extend(others.map(|(_, other)| detour.take(from(*other))));
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
    let own = u16::from(source.is_ipv6()) << 8 | u16::from(number);
    let place = OUTSIDE | own;
    for (interface, address) in addresses()?.into_iter().filter(|(_, address)| address.is_ipv4() == source.is_ipv4()) {
        let index = if_nametoindex(interface.as_str()).doing(|| interface.clone())?;
        let what = format!("translation of {source} to {address}");
        let detour = Detour { index, place: DETOUR + 0x10 + own, address };
        if on {
            requests.push((programs::place(index), format!("clsact on {interface}")));
            let leaving = |request| sent(request, 1, address, NEXT_FILTER);
            let matching = |request| fragments(false)(from(source)(request));
            requests.push((filter(index, Gate::Out, place, address, matching, leaving), what.clone()));
            let arriving = |request| received(request, 1);
            requests.push((filter(index, Gate::In, place, address, |request| request, arriving), what));
            requests.extend(detour.make());
            requests.push(detour.take(from(source)));
        } else {
            for (gate, place) in [(Gate::Out, place), (Gate::In, place), (Gate::Out, detour.place)] {
                let header = programs::header(index, gate, place, protocol(address));
                let request = Request::new(libc::RTM_DELTFILTER, 0).structure(&header);
                requests.push((request.text(libc::TCA_KIND, "flower"), format!("no {what}")));
            }
            requests.push(detour.remove());
        }
    }
    Socket::open()?.batch(requests)
}

/// How fragments leave by an interface with this address: by a pair of interfaces before.
struct Detour {
    /// The number of the interface by which they leave.
    index: u32,
    /// Where its filters are there.
    place: u16,
    address: IpAddr,
}

impl Detour {
    /// The numbers of the pair, where fragments leave first, and where they arrive: no others are as large.
    fn pair(&self) -> [u32; 2] {
        let first = u32::from(self.place) << 16 | self.index << 1;
        [first, first + 1]
    }

    /// What makes the pair. Nothing has an address there, so only what is sent there comes.
    fn make(&self) -> Requests {
        let end = |request: Request, index: u32| {
            request
                .structure(&interface_header(index, 0, 0))
                .text(libc::IFLA_IFNAME, &format!("detour{index:x}"))
                .attribute(libc::IFLA_ADDRESS, &[&[0x02, 0xFF], index.to_be_bytes().as_slice()].concat())
                .attribute(libc::IFLA_MTU, &DETOUR_MTU.to_ne_bytes())
        };
        let set = |index: u32, flags: u32| {
            Request::new(libc::RTM_NEWLINK, 0).structure(&interface_header(index, flags, flags))
        };
        let [leaving, arriving] = self.pair();
        let new = Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        let mut requests = vec![end(new, leaving).nested(libc::IFLA_LINKINFO, |request| {
            request.text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, |request| {
                request.nested(VETH_INFO_PEER, |request| end(request, arriving))
            })
        })];
        if Path::new("/proc/sys/net/ipv6").exists() {
            requests.extend(self.pair().map(|index| {
                set(index, 0).nested(libc::IFLA_AF_SPEC, |request| {
                    request.nested(libc::AF_INET6 as u16, |request| request.attribute(INET6_ADDRESSES, &[NO_ADDRESSES]))
                })
            }));
        }
        requests.extend(self.pair().map(|index| set(index, libc::IFF_UP as u32)));
        requests.push(programs::place(arriving));
        let act = |request| leave_by(sent(request, 1, self.address, NEXT_ACTION), 2, self.index);
        requests.push(filter(arriving, Gate::In, 1, self.address, |request| request, act));
        requests.into_iter().map(|request| (request, self.what())).collect()
    }

    /// What sends those fragments there.
    fn take(&self, matching: impl FnOnce(Request) -> Request) -> (Request, String) {
        let matching = |request| fragments(true)(matching(request));
        let [leaving, _] = self.pair();
        let act = |request| leave_by(request, 1, leaving);
        (filter(self.index, Gate::Out, self.place, self.address, matching, act), self.what())
    }

    fn remove(&self) -> (Request, String) {
        let [leaving, _] = self.pair();
        (Request::new(libc::RTM_DELLINK, 0).structure(&interface_header(leaving, 0, 0)), self.what())
    }

    fn what(&self) -> String {
        format!("detour of fragments to {}", self.address)
    }
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

/// The action that makes a connection known, with this source, and what comes after it.
fn sent(request: Request, number: u16, address: IpAddr, then: i32) -> Request {
    let first = if address.is_ipv4() { CT_IPV4_FIRST } else { CT_IPV6_FIRST };
    action(request, number, "ct", |request| {
        request
            .attribute(CT_PARAMETERS, &generic(then))
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
