//! The inside of TCP connections, by the kernel's socket diagnosis (`linux/inet_diag.h`, `struct tcp_info`).
//!
//! The request is the older of its two forms, since only that one asks for IPv4 and IPv6 sockets at once: a server that
//! listens on `::` has IPv6 sockets for its IPv4 connections, and each request walks the kernel's table of connections.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use nix::sys::socket::SockProtocol;

use super::dump::{attributes, number, small_number, Dumps};
use super::instrument::Instrument;
use crate::error::Result;
use crate::network::netlink::Request;
use crate::network::Namespace;

/// `TCPDIAG_GETSOCK` of `linux/inet_diag.h`.
const GET_SOCKETS: u16 = 18;
/// `INET_DIAG_INFO`: the attribute that holds a `struct tcp_info`.
const INFO: u16 = 2;
/// Where a message's attributes begin: the size of `struct inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;
/// The size of `struct inet_diag_sockid`.
const SOCKET_ID_BYTES: usize = 48;
/// Names of the states 1 to 11 of `net/tcp_states.h`, as ss(8) has them.
const STATES: [&str; 11] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
];
/// The states in which a connection has an inside that is worth a look, as bits by their numbers.
const CONNECTED: u32 = 0b1011_0011_0110;
/// `TCP_INFINITE_SSTHRESH`: slow start has no end yet.
const NO_THRESHOLD: u32 = 0x7FFF_FFFF;

/// The connections of all nodes.
pub struct Tcp {
    /// The names of nodes, in the order of the dumps.
    nodes: Vec<String>,
    dumps: Dumps,
}

impl Tcp {
    /// Opens a socket in the network namespace of each node.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn open(namespaces: &[Namespace]) -> Result<Self> {
        let mut dumps = Dumps::new("TCP connections")?;
        for namespace in namespaces {
            namespace.enter()?;
            dumps.add(SockProtocol::NetlinkSockDiag, request())?;
        }
        Ok(Self { nodes: namespaces.iter().map(|namespace| namespace.node().to_owned()).collect(), dumps })
    }
}

impl Instrument for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn header(&self) -> &'static str {
        "t_ns,node,source,source_port,destination,destination_port,state,cwnd_packets,ssthresh_packets,mss_bytes,\
         rtt_us,rttvar_us,min_rtt_us,bytes_acked,bytes_received,retransmits_total,unacked,lost,delivery_rate_bps,\
         pacing_rate_bps,rcv_space,snd_wnd,notsent_bytes"
    }

    fn sample(&mut self, t_ns: i64, rows: &mut Vec<u8>) -> Result<usize> {
        let Self { nodes, dumps } = self;
        let mut count = 0;
        dumps.make(|place, message| count += usize::from(append(rows, t_ns, &nodes[place], message)))?;
        Ok(count)
    }
}

fn request() -> Request {
    // struct inet_diag_req: family, lengths of addresses, wanted attributes, the socket (any), states, a cursor.
    let mut body = [0; 4 + SOCKET_ID_BYTES + 8];
    body[0] = libc::AF_INET as u8;
    body[3] = 1 << (INFO - 1);
    body[4 + SOCKET_ID_BYTES..][..4].copy_from_slice(&CONNECTED.to_ne_bytes());
    Request::new(GET_SOCKETS, libc::NLM_F_DUMP).structure(&body)
}

/// Appends the row of one `struct inet_diag_msg`; whether it has one.
fn append(rows: &mut Vec<u8>, t_ns: i64, node: &str, message: &[u8]) -> bool {
    let Some((_, info)) =
        message.get(MESSAGE_BYTES..).and_then(|rest| attributes(rest).find(|(kind, _)| *kind == INFO))
    else {
        // A connection whose handshake is not over has no inside yet.
        return false;
    };
    let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let state = STATES.get(usize::from(message[1]).wrapping_sub(1)).copied().unwrap_or("UNKNOWN");
    let _ = write!(rows, "{t_ns},{node},");
    append_address(rows, message[0], &message[8..24]);
    let _ = write!(rows, ",{},", port(4));
    append_address(rows, message[0], &message[24..40]);
    let _ = write!(rows, ",{},{state}", port(6));
    let is_known = |value: u32, unknown: u32| (value != unknown).then_some(u64::from(value));
    let bit_rate =
        |at: usize| Some(number(info, at)).filter(|&rate| rate != u64::MAX).map(|rate| rate.saturating_mul(8));
    let fields = [
        Some(small_number(info, 80).into()),            // snd_cwnd
        is_known(small_number(info, 76), NO_THRESHOLD), // snd_ssthresh
        Some(small_number(info, 16).into()),            // snd_mss
        Some(small_number(info, 68).into()),            // rtt
        Some(small_number(info, 72).into()),            // rttvar
        is_known(small_number(info, 148), u32::MAX),    // min_rtt
        Some(number(info, 120)),                        // bytes_acked
        Some(number(info, 128)),                        // bytes_received
        Some(small_number(info, 100).into()),           // total_retrans
        Some(small_number(info, 24).into()),            // unacked
        Some(small_number(info, 32).into()),            // lost
        bit_rate(160),                                  // delivery_rate
        bit_rate(104),                                  // pacing_rate
        Some(small_number(info, 96).into()),            // rcv_space
        Some(small_number(info, 228).into()),           // snd_wnd
        Some(small_number(info, 144).into()),           // notsent_bytes
    ];
    for field in fields {
        rows.push(b',');
        if let Some(value) = field {
            let _ = write!(rows, "{value}");
        }
    }
    rows.push(b'\n');
    true
}

/// Appends an address; one of IPv4 in the guise of IPv6 is one of IPv4.
fn append_address(rows: &mut Vec<u8>, family: u8, bytes: &[u8]) {
    let ipv4 = |bytes: &[u8]| Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..4]).expect("four bytes"));
    let ipv6 = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).expect("sixteen bytes"));
    // Writing into memory cannot fail.
    let _ = match (i32::from(family) == libc::AF_INET, ipv6.to_ipv4_mapped()) {
        (true, _) => write!(rows, "{}", ipv4(bytes)),
        (false, Some(mapped)) => write!(rows, "{mapped}"),
        (false, None) => write!(rows, "{ipv6}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a kernel 6.1 says of a connection from 10.0.0.0:40000 to 10.0.0.1:5201, with numbers easily told apart.
    fn message(family: i32, state: u8) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE_BYTES];
        (bytes[0], bytes[1]) = (family as u8, state);
        bytes[4..6].copy_from_slice(&40000_u16.to_be_bytes());
        bytes[6..8].copy_from_slice(&5201_u16.to_be_bytes());
        let at = if family == libc::AF_INET { 0 } else { 12 };
        for (start, last) in [(8, 0), (24, 1)] {
            if at > 0 {
                bytes[start + 10..start + 12].fill(0xFF);
            }
            bytes[start + at..start + at + 4].copy_from_slice(&[10, 0, 0, last]);
        }
        let mut info = vec![0; 232];
        for (at, value) in
            [(80, 10), (76, NO_THRESHOLD), (16, 1448), (68, 40_000), (72, 5_000), (148, 39_000), (100, 3)]
        {
            info[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        for (at, value) in [(24, 7), (32, 1), (96, 14_480), (228, 65_536), (144, 99)] {
            info[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        for (at, value) in [(120, 1_000_000), (128, 2_000), (160, 125_000), (104, u64::MAX)] {
            info[at..at + 8].copy_from_slice(&u64::to_ne_bytes(value));
        }
        bytes.extend_from_slice(&((4 + info.len()) as u16).to_ne_bytes());
        bytes.extend_from_slice(&INFO.to_ne_bytes());
        bytes.extend(info);
        bytes
    }

    const ROW: &str = "5,a,10.0.0.0,40000,10.0.0.1,5201,ESTAB,10,,1448,40000,5000,39000,1000000,2000,3,7,1,1000000,,\
                       14480,65536,99\n";

    #[test]
    fn a_connection_becomes_a_row_with_nothing_where_the_kernel_has_no_value_yet() {
        let mut rows = Vec::new();
        assert!(append(&mut rows, 5, "a", &message(libc::AF_INET, 1)));
        assert_eq!(String::from_utf8(rows).unwrap(), ROW);
    }

    #[test]
    fn an_ipv4_connection_of_an_ipv6_socket_looks_the_same() {
        let mut rows = Vec::new();
        assert!(append(&mut rows, 5, "a", &message(libc::AF_INET6, 1)));
        assert_eq!(String::from_utf8(rows).unwrap(), ROW);
    }

    #[test]
    fn a_connection_without_an_inside_has_no_row() {
        let mut rows = Vec::new();
        assert!(!append(&mut rows, 5, "a", &message(libc::AF_INET, 3)[..MESSAGE_BYTES]));
        assert!(rows.is_empty());
    }

    #[test]
    fn the_request_asks_for_all_that_can_carry_data() {
        let states: Vec<usize> = (1..=STATES.len()).filter(|state| CONNECTED & (1 << state) != 0).collect();
        let names: Vec<&str> = states.iter().map(|state| STATES[state - 1]).collect();
        assert_eq!(names, ["ESTAB", "SYN-SENT", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK", "CLOSING"]);
        assert_eq!(request().finish().len(), 16 + 60);
    }
}
