//! The network of a node: its namespace, links, queue disciplines, addresses, neighbours and routes.
//!
//! A link is a veth pair made by one request, with both ends at their place and under their final name, since renaming
//! or moving an interface later costs the kernel far more than making it. Interface numbers are chosen here (`lo` is 1,
//! the interfaces follow in the plan's order), so that nothing has to be asked back.

pub mod addresses;
pub mod bpf;
pub mod converged;
pub mod drops;
pub mod egress;
pub mod filter;
pub mod netlink;
pub mod partition;
pub mod programs;
pub mod tc;
pub mod trace;

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sched::{setns, unshare, CloneFlags};
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};

use crate::error::{Doing, Error, Result};
use crate::network::addresses::{
    address_request, neighbour_request, parse_address, parse_mac, parse_prefix, route_request, Gateway,
};
use crate::network::netlink::{Request, Socket};
use crate::plan::{Bridge, Interface, Node, Route};

const LOOPBACK_INDEX: u32 = 1;
/// `IFLA_BR_STP_STATE` of `linux/if_link.h`.
const IFLA_BR_STP_STATE: u16 = 5;
/// `IFLA_NEW_IFINDEX` of `linux/if_link.h`.
const IFLA_NEW_IFINDEX: u16 = 49;
/// `ETHTOOL_SGRO` of `linux/ethtool.h`.
const ETHTOOL_SGRO: u32 = 0x2C;
/// What a receiving vector device has room for is 64 KiB with all headers (arch/um/drivers/vector_kern.c); TCP by itself
/// makes segments of as much without them.
const SEGMENT_BYTES_MAX: u32 = 65_024;
/// `VETH_INFO_PEER` of `linux/veth.h`.
const VETH_INFO_PEER: u16 = 1;

/// A network namespace and a socket in it.
pub struct Namespace {
    node: String,
    file: File,
    socket: Socket,
}

impl Namespace {
    /// Moves the calling process into a new network namespace, whose loopback is up.
    ///
    /// # Errors
    /// The kernel refuses a namespace.
    pub fn enter_new(node: &str) -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET).doing(|| format!("network namespace of {node}"))?;
        let file = present_namespace()?;
        let namespace = Self { node: node.to_owned(), file, socket: Socket::open()? };
        namespace.set_up(LOOPBACK_INDEX, "lo")?;
        Ok(namespace)
    }

    /// The node that it belongs to.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Moves the calling process into this namespace.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn enter(&self) -> Result<()> {
        setns(&self.file, CloneFlags::CLONE_NEWNET).doing(|| format!("enter the network of {}", self.node))
    }

    /// Makes the link between `here`, an interface of this node, and `there`, one of `other`.
    ///
    /// # Errors
    /// The kernel refuses it, or a MAC address is malformed.
    pub fn create_link(&self, here: &Port<'_>, other: &Namespace, there: &Port<'_>) -> Result<()> {
        let mine = here.attributes(Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL))?;
        let theirs = there.attributes(Request::empty())?;
        let request = mine.nested(libc::IFLA_LINKINFO, |request| {
            request.text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, |request| {
                request.nested(VETH_INFO_PEER, |request| {
                    let namespace = other.file.as_raw_fd() as u32;
                    request.append(&theirs).attribute(libc::IFLA_NET_NS_FD, &namespace.to_ne_bytes())
                })
            })
        });
        let name = format!("link {}:{} -- {}:{}", self.node, here.interface.name, other.node, there.interface.name);
        self.socket.request(request, || name.clone())
    }

    /// Takes the network device `device` of the caller's namespace over as the interface `port` of this node.
    ///
    /// # Errors
    /// There is no such device, or the kernel refuses it.
    pub fn adopt(&self, device: &str, port: &Port<'_>) -> Result<()> {
        let name = || format!("{device} as {}:{}", self.node, port.interface.name);
        let index = if_nametoindex(device).doing(name)?;
        // Packets stay as they are, as those of a link within a guest do.
        ethtool_set(device, ETHTOOL_SGRO, false).doing(name)?;
        if port.interface.offload {
            // Only when it is switched on the driver makes room for whole segments.
            ethtool_set(device, ETHTOOL_SGRO, true).doing(name)?;
        }
        let request = Port { interface: port.interface, index }
            .attributes(Request::new(libc::RTM_NEWLINK, 0))?
            .attribute(libc::IFLA_GSO_MAX_SIZE, &SEGMENT_BYTES_MAX.to_ne_bytes())
            .attribute(libc::IFLA_NET_NS_FD, &(self.file.as_raw_fd() as u32).to_ne_bytes())
            .attribute(IFLA_NEW_IFINDEX, &port.index.to_ne_bytes());
        Socket::open()?.request(request, name)
    }

    /// Carries out requests about the interface named `interface`, nothing else in between.
    ///
    /// # Errors
    /// The kernel refuses one of them.
    pub fn batch(&self, interface: &str, requests: Vec<(Request, String)>) -> Result<()> {
        let named = |what| format!("{what} on {}:{interface}", self.node);
        self.socket.batch(requests.into_iter().map(|(request, what)| (request, named(what))).collect())
    }

    /// Gives the interface its addresses and sets it up.
    ///
    /// # Errors
    /// The kernel refuses one of them, or an address is malformed.
    pub fn configure(&self, port: &Port<'_>) -> Result<()> {
        let name = format!("{}:{}", self.node, port.interface.name);
        for address in &port.interface.addresses {
            let (ip, prefix) = parse_prefix(address)?;
            self.socket.request(address_request(port.index, ip, prefix), || format!("address {address} on {name}"))?;
        }
        self.set_up(port.index, &port.interface.name)
    }

    /// Adds the permanent neighbours of the interface, which is up.
    ///
    /// # Errors
    /// The kernel refuses one, or an address is malformed.
    pub fn add_neighbours(&self, port: &Port<'_>) -> Result<()> {
        for neighbour in &port.interface.neighbours {
            let ip = parse_address(&neighbour.address)?;
            let request = neighbour_request(port.index, ip, parse_mac(&neighbour.mac)?);
            self.socket.request(request, || {
                format!("neighbour {} on {}:{}", neighbour.address, self.node, port.interface.name)
            })?;
        }
        Ok(())
    }

    /// Gives the loopback addresses of its own.
    ///
    /// # Errors
    /// The kernel refuses one of them, or it is malformed.
    pub fn add_loopback_addresses(&self, addresses: &[String]) -> Result<()> {
        addresses.iter().try_for_each(|address| {
            let (ip, prefix) = parse_prefix(address)?;
            let request = address_request(LOOPBACK_INDEX, ip, prefix);
            self.socket.request(request, || format!("address {address} on {}:lo", self.node))
        })
    }

    /// Makes a bridge of all these interfaces of the node, which are there already, and sets it up.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn create_bridge(&self, bridge: &Bridge, interfaces: &[Interface]) -> Result<()> {
        let index = LOOPBACK_INDEX + 1 + interfaces.len() as u32;
        let request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .structure(&interface_header(index, 0, 0))
            .text(libc::IFLA_IFNAME, &bridge.name)
            .nested(libc::IFLA_LINKINFO, |request| {
                request.text(libc::IFLA_INFO_KIND, "bridge").nested(libc::IFLA_INFO_DATA, |request| {
                    request.attribute(IFLA_BR_STP_STATE, &u32::from(bridge.stp).to_ne_bytes())
                })
            });
        self.socket.request(request, || format!("bridge {} on {}", bridge.name, self.node))?;
        for port in Port::all(interfaces) {
            let request = Request::new(libc::RTM_NEWLINK, 0)
                .structure(&interface_header(port.index, 0, 0))
                .attribute(libc::IFLA_MASTER, &index.to_ne_bytes());
            let name = &port.interface.name;
            self.socket.request(request, || format!("put {}:{name} into {}", self.node, bridge.name))?;
        }
        self.set_up(index, &bridge.name)
    }

    /// Adds a route of the node, whose interfaces these are.
    ///
    /// # Errors
    /// The kernel refuses it, or it is malformed.
    pub fn add_route(&self, route: &Route, interfaces: &[Interface]) -> Result<()> {
        let what = || format!("route to {} on {}", route.to, self.node);
        let hops = route.hops.iter().map(|hop| {
            let port = Port::all(interfaces).find(|port| port.interface.name == hop.interface);
            let index = port.ok_or_else(|| Error::new(format!("{}: no interface {}", what(), hop.interface)))?.index;
            Ok(Gateway { index, via: parse_address(&hop.via)? })
        });
        let hops = hops.collect::<Result<Vec<_>>>()?;
        let destination = match route.to.as_str() {
            "default" => None,
            to => Some(parse_prefix(to)?),
        };
        let shares = route.shares.iter().map(|&share| hops.get(share).copied()).collect::<Option<Vec<_>>>();
        let shares = shares.ok_or_else(|| Error::new(format!("{}: a share of no hop", what())))?;
        let hops = if shares.is_empty() { hops } else { shares };
        let request = route_request(&hops, destination).ok_or_else(|| Error::new(format!("{}: no hop", what())))?;
        self.socket.request(request, what)
    }

    /// Gives an interface that was down, and is up again, what it lost by that.
    ///
    /// # Errors
    /// The kernel refuses a setting, as it may when the node is made.
    pub fn restore(&self, node: &Node, interface: &str) -> Result<()> {
        for port in Port::all(&node.interfaces).filter(|port| port.interface.name == interface) {
            self.configure(&port)?;
            self.add_neighbours(&port)?;
        }
        let through = |route: &&Route| route.hops.iter().any(|hop| hop.interface == interface);
        node.routes.iter().filter(through).try_for_each(|route| self.add_route(route, &node.interfaces))
    }

    fn set_up(&self, index: u32, interface: &str) -> Result<()> {
        self.set_running(index, interface, true)
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_running(&self, index: u32, interface: &str, up: bool) -> Result<()> {
        let flag = libc::IFF_UP as u32;
        let header = interface_header(index, if up { flag } else { 0 }, flag);
        let request = Request::new(libc::RTM_NEWLINK, 0).structure(&header);
        self.socket.request(request, || format!("set {} {}:{interface}", if up { "up" } else { "down" }, self.node))
    }
}

/// Sets up an interface of the network namespace that the calling process is in.
///
/// # Errors
/// The kernel refuses it.
pub fn set_up_here(index: u32, interface: &str) -> Result<()> {
    let up = libc::IFF_UP as u32;
    let request = Request::new(libc::RTM_NEWLINK, 0).structure(&interface_header(index, up, up));
    Socket::open()?.request(request, || format!("set up {interface}"))
}

/// Lets a packet socket take what comes in by an interface, and send by it.
///
/// # Errors
/// There is no such interface.
pub fn bind_packets(socket: &OwnedFd, protocol: u16, interface: u32) -> nix::Result<()> {
    // SAFETY: zeros are a valid value of this structure of numbers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as i32;
    let length = std::mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is readable for its length.
    let result = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
    Errno::result(result).map(drop)
}

/// Switches a feature of a network device on or off, by the request of `linux/ethtool.h` that sets it.
fn ethtool_set(device: &str, request: u32, on: bool) -> nix::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut value = [request, u32::from(on)];
    // SAFETY: zeros are a valid value of this structure of numbers.
    let mut argument: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, &byte) in argument.ifr_name.iter_mut().zip(device.as_bytes()) {
        *place = byte as libc::c_char;
    }
    argument.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: the argument is a request of this kind, and what it points to outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, std::ptr::from_mut(&mut argument)) };
    Errno::result(result).map(drop)
}

/// The network namespace that the calling process is in.
///
/// # Errors
/// /proc is not mounted.
pub fn present_namespace() -> Result<File> {
    File::open("/proc/self/ns/net").doing(|| "open /proc/self/ns/net".to_owned())
}

/// An interface of a node and its number there.
#[derive(Clone, Copy)]
pub struct Port<'a> {
    /// The interface in the plan.
    pub interface: &'a Interface,
    /// Its number in the node.
    pub index: u32,
}

impl<'a> Port<'a> {
    /// The interfaces of a node with their numbers.
    pub fn all(interfaces: &'a [Interface]) -> impl Iterator<Item = Self> {
        (LOOPBACK_INDEX + 1..).zip(interfaces).map(|(index, interface)| Self { interface, index })
    }

    fn attributes(&self, request: Request) -> Result<Request> {
        let mut request = request
            .structure(&interface_header(self.index, 0, 0))
            .text(libc::IFLA_IFNAME, &self.interface.name)
            .attribute(libc::IFLA_ADDRESS, &parse_mac(&self.interface.mac)?)
            .attribute(libc::IFLA_MTU, &self.interface.mtu.to_ne_bytes());
        if !self.interface.offload {
            // TCP then makes packets of one segment, so that a queue holds, delays and drops what a real one would.
            request = request.attribute(libc::IFLA_GSO_MAX_SEGS, &1_u32.to_ne_bytes());
        }
        Ok(request)
    }
}

/// `struct ifinfomsg`, with the flags in `changed` set to those in `flags`.
fn interface_header(index: u32, flags: u32, changed: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&changed.to_ne_bytes());
    header
}
