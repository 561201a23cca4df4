//! Addresses, neighbours and routes: how they are read, and what is asked of the kernel for them.

use std::net::IpAddr;

use crate::error::{Error, Result};
use crate::network::netlink::Request;

/// The size of `struct rtnexthop` of `linux/rtnetlink.h`.
const RTNEXTHOP_BYTES: usize = 8;

/// The request for an address of an interface.
pub fn address_request(index: u32, ip: IpAddr, prefix: u8) -> Request {
    // An address of a point-to-point link cannot be a duplicate: no detection, which would delay its use.
    let flags = if ip.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
    let index = index.to_ne_bytes();
    Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE)
        .structure(&[family(ip), prefix, flags, libc::RT_SCOPE_UNIVERSE, index[0], index[1], index[2], index[3]])
        .attribute(libc::IFA_LOCAL, &octets(ip))
        .attribute(libc::IFA_ADDRESS, &octets(ip))
}

/// The request for a permanent neighbour.
pub fn neighbour_request(index: u32, ip: IpAddr, mac: [u8; 6]) -> Request {
    let mut header = [0; 12]; // struct ndmsg
    header[0] = family(ip);
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
    Request::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE)
        .structure(&header)
        .attribute(libc::NDA_DST, &octets(ip))
        .attribute(libc::NDA_LLADDR, &mac)
}

/// A next hop of a route.
#[derive(Clone, Copy)]
pub struct Gateway {
    /// The number of the interface that leads there.
    pub index: u32,
    pub via: IpAddr,
}

/// The request for a route by these hops, among which the kernel divides flows equally; `None` without any.
pub fn route_request(hops: &[Gateway], destination: Option<(IpAddr, u8)>) -> Option<Request> {
    let via = hops.first()?.via;
    let mut header = [0; 12]; // struct rtmsg
    header[0] = family(via);
    header[1] = destination.map_or(0, |(_, prefix)| prefix);
    header[4] = libc::RT_TABLE_MAIN;
    header[5] = libc::RTPROT_STATIC;
    header[6] = libc::RT_SCOPE_UNIVERSE;
    header[7] = libc::RTN_UNICAST;
    let mut request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE).structure(&header);
    if let Some((ip, _)) = destination {
        request = request.attribute(libc::RTA_DST, &octets(ip));
    }
    if let [Gateway { index, via }] = hops {
        return Some(
            request.attribute(libc::RTA_GATEWAY, &octets(*via)).attribute(libc::RTA_OIF, &index.to_ne_bytes()),
        );
    }
    Some(request.nested(libc::RTA_MULTIPATH, |request| {
        hops.iter().fold(request, |request, hop| request.append(&multipath_hop(*hop)))
    }))
}

/// One hop of a multipath route: `struct rtnexthop`, whose length counts its attributes too.
fn multipath_hop(hop: Gateway) -> Request {
    let gateway = Request::empty().attribute(libc::RTA_GATEWAY, &octets(hop.via));
    let mut header = [0; RTNEXTHOP_BYTES];
    header[0..2].copy_from_slice(&((RTNEXTHOP_BYTES + gateway.len()) as u16).to_ne_bytes());
    header[4..8].copy_from_slice(&hop.index.to_ne_bytes());
    Request::empty().structure(&header).append(&gateway)
}

fn family(ip: IpAddr) -> u8 {
    let family = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    family as u8
}

/// Its bytes, in network byte order.
pub fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Reads an address.
///
/// # Errors
/// It is none.
pub fn parse_address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| Error::new(format!("\"{text}\" is no IP address")))
}

/// Reads an address with prefix length, as "10.0.0.0/31".
///
/// # Errors
/// It is none.
pub fn parse_prefix(text: &str) -> Result<(IpAddr, u8)> {
    text.split_once('/')
        .and_then(|(ip, prefix)| Some((ip.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?)))
        .filter(|(ip, prefix)| *prefix <= if ip.is_ipv4() { 32 } else { 128 })
        .ok_or_else(|| Error::new(format!("\"{text}\" is no IP address with prefix length")))
}

/// Reads an Ethernet address, as "02:00:00:00:00:01".
///
/// # Errors
/// It is none.
pub fn parse_mac(text: &str) -> Result<[u8; 6]> {
    text.split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect::<Option<Vec<u8>>>()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| Error::new(format!("\"{text}\" is no Ethernet address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_their_prefix_or_refused() {
        assert_eq!(parse_prefix("10.0.0.1/31").unwrap(), ("10.0.0.1".parse().unwrap(), 31));
        assert_eq!(parse_prefix("fd00::1/64").unwrap(), ("fd00::1".parse().unwrap(), 64));
        for wrong in ["10.0.0.1", "10.0.0.1/33", "10.0.0/24", "/8"] {
            assert!(parse_prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ethernet_addresses_have_six_bytes() {
        assert_eq!(parse_mac("02:00:00:00:00:0a").unwrap(), [2, 0, 0, 0, 0, 10]);
        assert!(parse_mac("02:00:00:00:00").is_err());
        assert!(parse_mac("02:00:00:00:00:zz").is_err());
    }
}
