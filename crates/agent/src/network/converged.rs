//! Seeing that routing has converged: this program, executed in a router's node, ends when the router has a route to every
//! network that it is told of.
//!
//! The kernel says what routes come and go (rtnetlink's groups), so nothing is looked for again and again. A router gets
//! hundreds of routes, and a program that is woken up for each of them costs more than the routing daemon's own part in
//! that. So it waits for one missing route at a time, by a filter in the kernel, and looks at the tables when that has
//! come: the last route that comes is waited for by then, so the end is its instant. A route to a network is one that
//! covers it, a default route too: then the kernel sends packets there. The tables decide, so that a route that went again
//! meanwhile, or a message that the kernel had no room for, leaves no mistake.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{bind, recv, socket, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};

use super::filter::attach;
use super::netlink::HEADER_BYTES;
use crate::error::{Doing, Error, Result};
use crate::plan::BpfInstruction;

/// The first argument of this program when it waits for routes.
pub const WORD: &str = "converged";

/// `struct rtmsg` of `linux/rtnetlink.h`.
const ROUTE_BYTES: usize = 12;
const GROUPS: u32 = (libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE) as u32;
/// `RTF_REJECT` of `linux/route.h`: packets are refused.
const REJECT: u32 = 0x200;
/// Where a message of `RTM_NEWROUTE` has its type (`struct nlmsghdr`), and what its route is of and how long its prefix is.
const TYPE_AT: u32 = 4;
const FAMILY_AT: u32 = HEADER_BYTES as u32;
const LENGTH_AT: u32 = FAMILY_AT + 1;
/// A load from here finds an attribute.
const ATTRIBUTE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_NLATTR) as u32;
/// How many networks a complaint names.
const NAMED_MAX: usize = 5;

/// A network: an address whose bits behind its length are of no account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Network {
    is_ipv6: bool,
    /// The address; one of IPv4 is in the highest bits.
    bits: u128,
    length: u8,
}

impl Network {
    fn new(address: IpAddr, length: u8) -> Self {
        let (is_ipv6, bits) = match address {
            IpAddr::V4(address) => (false, u128::from(u32::from(address)) << 96),
            IpAddr::V6(address) => (true, u128::from(address)),
        };
        Self { is_ipv6, bits, length }
    }

    /// Reads `10.0.0.0/24`.
    fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse().ok()?);
        (length <= if address.is_ipv6() { 128 } else { 32 }).then(|| Self::new(address, length))
    }

    fn covers(&self, other: &Self) -> bool {
        let differing = (self.bits ^ other.bits).checked_shr(128 - u32::from(self.length)).unwrap_or(0);
        self.is_ipv6 == other.is_ipv6 && self.length <= other.length && differing == 0
    }
}

/// Waits until there is a route to each network in a file, a line each, for `seconds` at most.
///
/// # Errors
/// It took longer, which names what is missing; an argument is not understood; the kernel gives no socket.
pub fn wait(seconds: &str, file: &str) -> Result<()> {
    let doing = || format!("{WORD}: wait for routes");
    let not_understood = |text: &str| Error::new(format!("{WORD}: {text}: not a network or a time"));
    let deadline = Instant::now() + Duration::from_secs(seconds.parse().map_err(|_| not_understood(seconds))?);
    let text = read_to_string(file).doing(|| format!("{WORD}: read {file}"))?;
    let networks: Vec<&str> = text.lines().collect();
    let wanted: BTreeSet<Network> =
        networks.iter().map(|text| Network::read(text).ok_or_else(|| not_understood(text))).collect::<Result<_>>()?;
    let messages = open().doing(doing)?;
    let mut missing = wanted.clone();
    while let Some(awaited) = missing.last().copied() {
        // The filter comes before the look, so that nothing is missed between them.
        attach(&messages, &filter(&awaited)).doing(doing)?;
        missing = missing_of(&wanted);
        if missing.contains(&awaited) {
            if !has_message(&messages, deadline.saturating_duration_since(Instant::now())).doing(doing)? {
                missing = missing_of(&wanted);
                if !missing.is_empty() {
                    return Err(Error::new(format!("no route after {seconds} s to {}", named(&missing, &networks))));
                }
            }
            drain(&messages).doing(doing)?;
        }
    }
    Ok(())
}

fn open() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let messages = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(messages.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
    Ok(messages)
}

fn has_message(messages: &OwnedFd, within: Duration) -> nix::Result<bool> {
    // Rounded up: a wait of 0 ms before the deadline would spin.
    let milliseconds = if within.is_zero() { 0 } else { within.as_millis() + 1 };
    let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
    Ok(poll(&mut [PollFd::new(messages.as_fd(), PollFlags::POLLIN)], timeout)? > 0)
}

/// Takes all messages; what they say is in the tables.
fn drain(messages: &OwnedFd) -> nix::Result<()> {
    let mut bytes = [0; HEADER_BYTES];
    loop {
        match recv(messages.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
            // There were more than the socket has room for.
            Ok(_) | Err(Errno::ENOBUFS) => {}
            Err(Errno::EAGAIN) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A filter that lets in only messages of new routes that may cover the network; of IPv6, it looks at the first 32 bits.
fn filter(network: &Network) -> [BpfInstruction; 24] {
    let load = |size: u32, mode: u32, k: u32| of(libc::BPF_LD | size | mode, k);
    let jump = |test: u32, k: u32, jt: u8, jf: u8| BpfInstruction((libc::BPF_JMP | test) as u16, jt, jf, k);
    let family = if network.is_ipv6 { libc::AF_INET6 } else { libc::AF_INET };
    [
        // The kernel loads numbers as networks have them; the header has them as memory does.
        load(libc::BPF_H, libc::BPF_ABS, TYPE_AT),
        jump(libc::BPF_JEQ, u32::from(libc::RTM_NEWROUTE.swap_bytes()), 0, 20),
        load(libc::BPF_B, libc::BPF_ABS, FAMILY_AT),
        jump(libc::BPF_JEQ, family as u32, 0, 18),
        load(libc::BPF_B, libc::BPF_ABS, LENGTH_AT),
        // A default route, which has no destination, covers all; a longer prefix covers nothing of this one's length.
        jump(libc::BPF_JEQ, 0, 17, 0),
        jump(libc::BPF_JGT, u32::from(network.length), 15, 0),
        // How many of the first 32 bits are of no account, for later.
        jump(libc::BPF_JGE, 32, 0, 1),
        load(libc::BPF_W, libc::BPF_IMM, 32),
        of(libc::BPF_ALU | libc::BPF_NEG, 0),
        of(libc::BPF_ALU | libc::BPF_ADD, 32),
        of(libc::BPF_ST, 0),
        // Where the destination is among the attributes; and its first bits beside those that are wanted.
        of(libc::BPF_LDX | libc::BPF_IMM, u32::from(libc::RTA_DST)),
        load(libc::BPF_W, libc::BPF_IMM, (HEADER_BYTES + ROUTE_BYTES) as u32),
        load(libc::BPF_W, libc::BPF_ABS, ATTRIBUTE),
        jump(libc::BPF_JEQ, 0, 6, 0),
        of(libc::BPF_MISC | libc::BPF_TAX, 0),
        load(libc::BPF_W, libc::BPF_IND, 4),
        of(libc::BPF_ALU | libc::BPF_XOR, (network.bits >> 96) as u32),
        of(libc::BPF_LDX | libc::BPF_MEM, 0),
        of(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_X, 0),
        jump(libc::BPF_JEQ, 0, 1, 0),
        of(libc::BPF_RET, 0),
        of(libc::BPF_RET, u32::MAX),
    ]
}

/// An instruction that does not jump.
fn of(code: u32, k: u32) -> BpfInstruction {
    BpfInstruction(code as u16, 0, 0, k)
}

/// The networks to which the node has no route.
fn missing_of(wanted: &BTreeSet<Network>) -> BTreeSet<Network> {
    // Without IPv6 in the node's kernel the second table does not exist.
    let table = |name: &str| read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
    let routes: Vec<Network> = table("route")
        .lines()
        .filter_map(ipv4_route)
        .chain(table("ipv6_route").lines().filter_map(ipv6_route))
        .collect();
    wanted.iter().filter(|network| !routes.iter().any(|route| route.covers(network))).copied().collect()
}

/// A line of /proc/net/route, whose numbers are as memory has them.
fn ipv4_route(line: &str) -> Option<Network> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |place: usize| u32::from_str_radix(fields.get(place)?, 16).ok();
    let (destination, flags, mask) = (number(1)?.to_ne_bytes(), number(3)?, number(7)?);
    (flags & REJECT == 0).then(|| Network::new(destination.into(), mask.count_ones() as u8))
}

/// A line of /proc/net/ipv6_route.
fn ipv6_route(line: &str) -> Option<Network> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let destination = u128::from_str_radix(fields.first()?, 16).ok()?.to_be_bytes();
    let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
    let length = u8::from_str_radix(fields.get(1)?, 16).ok()?;
    (flags & REJECT == 0).then(|| Network::new(destination.into(), length))
}

/// Some of the networks, as they were told.
fn named(missing: &BTreeSet<Network>, networks: &[&str]) -> String {
    let all: Vec<&str> = networks
        .iter()
        .filter(|text| Network::read(text).is_some_and(|network| missing.contains(&network)))
        .copied()
        .collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    let some = all[..all.len() - more].join(", ");
    if more > 0 {
        format!("{some} and {more} more")
    } else {
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::read(text).expect("a network")
    }

    #[test]
    fn a_route_covers_what_its_prefix_does() {
        assert!(network("10.0.0.0/8").covers(&network("10.1.2.0/24")));
        assert!(network("0.0.0.0/0").covers(&network("10.1.2.0/24")));
        assert!(network("10.1.2.3/32").covers(&network("10.1.2.3/32")));
        assert!(!network("10.1.2.0/25").covers(&network("10.1.2.0/24")));
        assert!(!network("11.0.0.0/8").covers(&network("10.1.2.0/24")));
        assert!(!network("::/0").covers(&network("10.1.2.0/24")));
        assert!(network("fd00::/16").covers(&network("fd00:1::/64")));
    }

    #[test]
    fn tables_are_read_and_what_refuses_is_no_route() {
        let line = "eth0\t0002010A\t0100000A\t0003\t0\t0\t32\t00FFFFFF\t0\t0\t0";
        assert_eq!(ipv4_route(line), Some(network("10.1.2.0/24")));
        assert_eq!(ipv4_route(&line.replace("\t0003\t", "\t0201\t")), None);
        assert_eq!(ipv4_route("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask"), None);
        let line = "fd000001000000000000000000000000 40 00000000000000000000000000000000 00 \
                    fe800000000000000000000000000001 00000020 00000001 00000000 00000003     eth0";
        assert_eq!(ipv6_route(line), Some(network("fd00:1::/64")));
        assert_eq!(ipv6_route(&line.replace(" 00000003 ", " 00200200 ")), None);
    }

    /// A message as rtnetlink has it: its table, which comes first, and its destination.
    fn message(kind: u16, network: &str) -> Vec<u8> {
        let to = self::network(network);
        let octets = if to.is_ipv6 { 16 } else { 4 };
        let family = if to.is_ipv6 { libc::AF_INET6 } else { libc::AF_INET };
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend([family as u8, to.length, 0, 0, 254, 12, 0, libc::RTN_UNICAST, 0, 0, 0, 0]);
        bytes.extend([8, 0, 15, 0, 254, 0, 0, 0]);
        if to.length > 0 {
            bytes.extend([4 + octets, 0]);
            bytes.extend(libc::RTA_DST.to_ne_bytes());
            bytes.extend(&to.bits.to_be_bytes()[..usize::from(octets)]);
        }
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    #[test]
    fn the_kernel_wakes_up_for_routes_that_cover_what_is_waited_for_and_for_no_others() {
        let (from, to) = nix::sys::socket::socketpair(
            AddressFamily::Unix,
            SockType::Datagram,
            None,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        )
        .unwrap();
        let wakes = |awaited: &str, kind: u16, route: &str| {
            attach(&to, &filter(&network(awaited))).unwrap();
            nix::unistd::write(&from, &message(kind, route)).unwrap();
            let found = has_message(&to, Duration::ZERO).unwrap();
            drain(&to).unwrap();
            found
        };
        for (route, comes) in [
            ("10.1.2.0/24", true),
            ("10.1.0.0/16", true),
            ("0.0.0.0/0", true),
            ("10.1.2.0/25", false),
            ("10.1.3.0/24", false),
            ("138.1.2.0/24", false),
            ("::/0", false),
        ] {
            assert_eq!(wakes("10.1.2.0/24", libc::RTM_NEWROUTE, route), comes, "{route}");
            assert!(!wakes("10.1.2.0/24", libc::RTM_DELROUTE, route), "{route}");
        }
        assert!(wakes("10.0.0.1/32", libc::RTM_NEWROUTE, "10.0.0.1/32"));
        assert!(!wakes("10.0.0.1/32", libc::RTM_NEWROUTE, "10.0.0.0/32"));
        for (route, comes) in [
            ("fd00:1::/64", true),
            ("fd00::/16", true),
            ("::/0", true),
            ("fd01:1::/64", false),
            ("fd00:1::1/128", false),
        ] {
            assert_eq!(wakes("fd00:1::/64", libc::RTM_NEWROUTE, route), comes, "{route}");
        }
    }

    #[test]
    fn a_complaint_names_some_of_what_is_missing() {
        let texts = ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24", "10.0.4.0/24", "10.0.5.0/24", "::/0"];
        let missing = texts[..6].iter().map(|text| network(text)).collect();
        assert_eq!(named(&missing, &texts), format!("{} and 1 more", texts[..5].join(", ")));
        assert_eq!(named(&[network("::/0")].into(), &texts), "::/0");
    }
}
