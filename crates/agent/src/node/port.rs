//! A connection from outside to a port of a node: this program, executed in the node, joins its standard streams to a TCP
//! connection that it makes there.
//!
//! Whoever forwards a port of another machine wants what listens in the node, whichever of the node's addresses that is on.
//! So the loopback addresses are tried first, on which most servers listen, then those of its interfaces. It ends when the
//! node's side has sent all that it will; the end of the input is passed on, and the rest of the answer still comes.

use std::fs::File;
use std::io::{copy, stdin, stdout, Result as IoResult};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::thread;

use nix::ifaddrs::getifaddrs;

use crate::error::{Doing, Error, Result};

/// The first argument of this program when it does that.
pub const WORD: &str = "port";

/// Joins the standard streams to a port of this node.
///
/// # Errors
/// Nothing listens there, or the connection was broken off.
pub fn join(port: &str) -> Result<()> {
    let number = port.parse().map_err(|_| Error::new(format!("port {port}: not from 1 to 65535")))?;
    let there = connect(number).doing(|| format!("connect to port {number} of the node"))?;
    let sending = there.try_clone().doing(|| format!("port {number}"))?;
    thread::spawn(move || {
        // What cannot be sent any more the other direction learns of, too.
        let _ = input().and_then(|mut input| copy(&mut input, &mut &sending));
        let _ = sending.shutdown(Shutdown::Write);
    });
    output().and_then(|mut output| copy(&mut &there, &mut output)).doing(|| format!("port {number}"))?;
    Ok(())
}

/// A connection to the first address that takes one; else the error of the first, since that is the likeliest.
fn connect(port: u16) -> IoResult<TcpStream> {
    let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    addresses.extend(getifaddrs()?.filter_map(|interface| address(interface.address?)));
    let mut refused = None;
    for address in addresses {
        match TcpStream::connect((address, port)) {
            Ok(connection) => return Ok(connection),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.expect("an address was tried"))
}

/// An address to which one can connect without naming an interface.
fn address(found: nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    if let Some(address) = found.as_sockaddr_in() {
        return Some(address.ip().into());
    }
    let address = found.as_sockaddr_in6()?.ip();
    let is_of_a_link = address.segments()[0] & 0xffc0 == 0xfe80;
    (!is_of_a_link).then_some(address.into())
}

/// Standard input without a buffer, so that what comes is passed on at once.
fn input() -> IoResult<File> {
    Ok(stdin().as_fd().try_clone_to_owned()?.into())
}

/// Standard output, likewise.
fn output() -> IoResult<File> {
    Ok(stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_listens_on_any_address_of_the_node_is_found() {
        let listening = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let port = listening.local_addr().unwrap().port();
        assert_eq!(connect(port).unwrap().peer_addr().unwrap().ip(), Ipv6Addr::LOCALHOST);
    }

    #[test]
    fn a_port_without_a_listener_is_refused() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        assert!(join(&port.to_string()).unwrap_err().to_string().contains(&format!("connect to port {port}")));
        assert!(join("0x").unwrap_err().to_string().contains("not from 1 to 65535"));
    }
}
