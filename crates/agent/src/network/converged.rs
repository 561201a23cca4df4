//! Seeing that routing has converged: this program, executed in a router's node, ends when the router has a route to every
//! network that it is told of.
//!
//! The kernel says what routes come and go (rtnetlink's groups), so nothing is looked for again and again, and the end is
//! the instant of the last route that was missing. A route to a network is one that covers it, a default route too: then
//! the kernel sends packets there. What the messages say is only what may still be missing; the tables decide, so that a
//! route that went again meanwhile, or a message that the kernel had no room for, leaves no mistake.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{bind, recv, socket, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};

use super::netlink::{read_u16, read_u32, HEADER_BYTES};
use crate::error::{Doing, Error, Result};

/// The first argument of this program when it waits for routes.
pub const WORD: &str = "converged";

/// `struct rtmsg` of `linux/rtnetlink.h`.
const ROUTE_BYTES: usize = 12;
const GROUPS: u32 = (libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE) as u32;
/// `RTF_REJECT` of `linux/route.h`: packets are refused.
const REJECT: u32 = 0x200;
const MESSAGES_BYTES_MAX: usize = 32768;
const ALIGNMENT: usize = 4;
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
    // The socket comes before the first look, so that nothing is missed between them.
    let messages = open().doing(doing)?;
    let mut missing = missing_of(&wanted);
    while !missing.is_empty() {
        if !has_message(&messages, deadline.saturating_duration_since(Instant::now())).doing(doing)? {
            missing = missing_of(&wanted);
            if missing.is_empty() {
                break;
            }
            return Err(Error::new(format!("no route after {seconds} s to {}", named(&missing, &networks))));
        }
        if may_have_all(&messages, &mut missing).doing(doing)? {
            missing = missing_of(&wanted);
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

/// Takes from `missing` what messages say that there is. Whether that is all, or cannot be told by messages alone.
fn may_have_all(messages: &OwnedFd, missing: &mut BTreeSet<Network>) -> nix::Result<bool> {
    let mut bytes = vec![0; MESSAGES_BYTES_MAX];
    loop {
        match recv(messages.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
            Ok(length) => {
                for route in routes_of(&bytes[..length]) {
                    missing.retain(|network| !route.covers(network));
                }
            }
            Err(Errno::EAGAIN) => return Ok(missing.is_empty()),
            // There were more than the socket has room for.
            Err(Errno::ENOBUFS) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

/// The networks to which messages tell of a new route.
fn routes_of(messages: &[u8]) -> Vec<Network> {
    let mut found = Vec::new();
    let mut rest = messages;
    while let Some(length) = read_u32(rest, 0).map(|length| length as usize) {
        let Some(message) = rest.get(..length).filter(|message| message.len() >= HEADER_BYTES) else { break };
        if read_u16(message, 4) == Some(libc::RTM_NEWROUTE) {
            found.extend(route_of(&message[HEADER_BYTES..]));
        }
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
    }
    found
}

/// The network that one message of a route that leads somewhere is about.
fn route_of(message: &[u8]) -> Option<Network> {
    let (family, length, kind) = (*message.first()?, *message.get(1)?, *message.get(7)?);
    if kind != libc::RTN_UNICAST && kind != libc::RTN_LOCAL {
        return None;
    }
    let unspecified: IpAddr = if i32::from(family) == libc::AF_INET { [0; 4].into() } else { [0; 16].into() };
    let mut rest = message.get(ROUTE_BYTES..)?;
    while let (Some(bytes), Some(attribute)) = (read_u16(rest, 0).map(usize::from), read_u16(rest, 2)) {
        let payload = rest.get(4..bytes)?;
        if attribute == libc::RTA_DST {
            let address = <[u8; 4]>::try_from(payload).map(IpAddr::from);
            return Some(Network::new(
                address.or_else(|_| <[u8; 16]>::try_from(payload).map(IpAddr::from)).ok()?,
                length,
            ));
        }
        rest = rest.get(bytes.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
    }
    // A default route has no destination.
    (length == 0).then(|| Network::new(unspecified, 0))
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

    /// A message of `RTM_NEWROUTE` as rtnetlink has it, to 10.1.2.0/24.
    fn message(kind: u8) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[0] = (HEADER_BYTES + ROUTE_BYTES + 8) as u8;
        bytes[4..6].copy_from_slice(&libc::RTM_NEWROUTE.to_ne_bytes());
        bytes.extend([libc::AF_INET as u8, 24, 0, 0, 254, 12, 0, kind, 0, 0, 0, 0]);
        bytes.extend([8, 0]);
        bytes.extend(libc::RTA_DST.to_ne_bytes());
        bytes.extend([10, 1, 2, 0]);
        bytes
    }

    #[test]
    fn messages_of_new_routes_are_read_and_what_is_cut_off_is_left() {
        let (new, refused) = (message(libc::RTN_UNICAST), message(libc::RTN_UNREACHABLE));
        assert_eq!(routes_of(&[new.clone(), refused, new.clone()].concat()), [network("10.1.2.0/24"); 2]);
        for length in 0..new.len() {
            assert_eq!(routes_of(&new[..length]), []);
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
