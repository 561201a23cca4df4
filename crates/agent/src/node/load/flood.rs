//! Floods: segments and datagrams that nobody answers to.
//!
//! **First segments of TCP.** A kernel that gets the answer to one that it does not know of resets the connection, and the
//! server is rid of it. Who floods uses addresses of others, whose answers nobody gets; in a lab those would have no routes.
//! So each port from which segments go has a socket that listens there, with a filter that takes nothing: answers are
//! dropped before TCP looks at them, and are with the socket gone. The ports are above those that the kernel gives to programs
//! (ip(7), ip_local_port_range); one that a program has got is left out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    bind, connect, getsockname, listen, send, socket, AddressFamily, Backlog, MsgFlags, SockFlag, SockProtocol,
    SockType, SockaddrStorage,
};

use crate::error::{Doing, Result};
use crate::network::filter::attach;
use crate::plan::BpfInstruction;

/// The first of the ports from which segments go, and how many there are: more than a server waits for answers of at a time.
const PORTS: (u16, u16) = (61_000, 4096);
/// What a host on Ethernet says of the longest segment it takes, and of its window.
const SEGMENT_BYTES_MAX: u16 = 1460;
const WINDOW_BYTES: u16 = 64_240;
/// Bytes of the header, with one option.
const HEADER_BYTES: usize = 24;
const SYN: u8 = 2;

/// First segments of TCP connections.
pub struct Syns {
    to: SocketAddr,
    /// The socket that they leave by and the address that they are from, once there is a way.
    way: Option<(OwnedFd, IpAddr)>,
    /// What keeps quiet about answers, by port.
    silent: Vec<Option<OwnedFd>>,
    number: u32,
}

impl Syns {
    /// Those to a port.
    pub fn new(to: IpAddr, port: u16) -> Self {
        Self { to: SocketAddr::new(to, port), way: None, silent: Vec::new(), number: 0 }
    }

    /// Sends the next one.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn send(&mut self) -> nix::Result<()> {
        let place = usize::try_from(self.number % u32::from(PORTS.1)).expect("16 bits");
        if place == self.silent.len() {
            self.silent.push(silent_socket(self.to.ip(), PORTS.0 + place as u16)?);
        }
        let (way, from) = match self.way.take() {
            Some(way) => way,
            None => way_to(self.to.ip())?,
        };
        // Each connection begins at a number of its own, far from that of the one before.
        let sequence = self.number.wrapping_mul(0x9E37_79B9);
        let segment = first_segment((from, PORTS.0 + place as u16), (self.to.ip(), self.to.port()), sequence);
        let sent = send(way.as_raw_fd(), &segment, MsgFlags::MSG_DONTWAIT);
        self.way = Some((way, from));
        sent?;
        self.number = self.number.wrapping_add(1);
        Ok(())
    }
}

/// A socket by which segments go to an address, and the address that the kernel sends them from.
fn way_to(to: IpAddr) -> nix::Result<(OwnedFd, IpAddr)> {
    let way = socket(family(to), SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Tcp)?;
    take_nothing(&way)?;
    connect(way.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(to, 0)))?;
    let name: SockaddrStorage = getsockname(way.as_raw_fd())?;
    let v4 = name.as_sockaddr_in().map(|name| IpAddr::V4(name.ip()));
    let from = v4.or_else(|| name.as_sockaddr_in6().map(|name| IpAddr::V6(name.ip())));
    Ok((way, from.ok_or(Errno::EADDRNOTAVAIL)?))
}

/// A socket that listens at a port and drops all that comes; `None` if a program has that port.
fn silent_socket(to: IpAddr, port: u16) -> nix::Result<Option<OwnedFd>> {
    let silent = socket(family(to), SockType::Stream, SockFlag::SOCK_CLOEXEC, SockProtocol::Tcp)?;
    take_nothing(&silent)?;
    let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    match bind(silent.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(any, port))) {
        Err(Errno::EADDRINUSE) => Ok(None),
        bound => {
            bound?;
            listen(&silent, Backlog::new(1)?)?;
            Ok(Some(silent))
        }
    }
}

/// Lets a socket drop all that comes to it.
fn take_nothing(socket: &OwnedFd) -> nix::Result<()> {
    // The one instruction: return, 0 bytes of the packet (linux/bpf_common.h).
    attach(socket, &[BpfInstruction((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0)])
}

fn family(to: IpAddr) -> AddressFamily {
    if to.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    }
}

/// The first segment of a connection (RFC 9293, 3.1).
fn first_segment(from: (IpAddr, u16), to: (IpAddr, u16), sequence: u32) -> [u8; HEADER_BYTES] {
    let mut segment = [0; HEADER_BYTES];
    segment[0..2].copy_from_slice(&from.1.to_be_bytes());
    segment[2..4].copy_from_slice(&to.1.to_be_bytes());
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[12] = (HEADER_BYTES as u8 / 4) << 4;
    segment[13] = SYN;
    segment[14..16].copy_from_slice(&WINDOW_BYTES.to_be_bytes());
    segment[20..22].copy_from_slice(&[2, 4]);
    segment[22..24].copy_from_slice(&SEGMENT_BYTES_MAX.to_be_bytes());
    let checksum = checksum(from.0, to.0, &segment);
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    segment
}

/// The checksum of TCP over a segment and the addresses (RFC 9293, 3.1; of IPv6, RFC 8200, 8.1: the same words).
fn checksum(from: IpAddr, to: IpAddr, segment: &[u8]) -> u16 {
    let sum =
        |bytes: &[u8]| -> u32 { bytes.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum() };
    let of_address = |address: IpAddr| match address {
        IpAddr::V4(address) => sum(&address.octets()),
        IpAddr::V6(address) => sum(&address.octets()),
    };
    let mut total = of_address(from) + of_address(to) + libc::IPPROTO_TCP as u32 + segment.len() as u32 + sum(segment);
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    !(total as u16)
}

/// Datagrams.
pub struct Udp {
    socket: UdpSocket,
    to: SocketAddr,
    data: Vec<u8>,
}

impl Udp {
    /// Those of so many bytes to a port.
    ///
    /// # Errors
    /// The kernel gives no socket.
    pub fn new(to: IpAddr, port: u16, bytes: u16) -> Result<Self> {
        let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let doing = || "open a socket for a load".to_owned();
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).doing(doing)?;
        socket.set_nonblocking(true).doing(doing)?;
        Ok(Self { socket, to: SocketAddr::new(to, port), data: vec![0; usize::from(bytes)] })
    }

    /// Sends the next one.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn send(&self) -> nix::Result<()> {
        let sent = self.socket.send_to(&self.data, self.to);
        sent.map(drop).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_segment_has_the_checksum_by_which_all_of_its_words_are_ones() {
        for (from, to) in [("10.0.0.0", "10.0.0.1"), ("fd00::1", "fd00::2")] {
            let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let segment = first_segment((from, 61_000), (to, 80), 0x1234_5678);
            assert_eq!(checksum(from, to, &segment), 0);
            assert_eq!(segment[..8], [0xEE, 0x48, 0, 80, 0x12, 0x34, 0x56, 0x78]);
        }
    }
}
