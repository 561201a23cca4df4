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
pub mod flower;
pub mod masquerade;
pub mod netlink;
pub mod partition;
pub mod programs;
pub mod tc;
pub mod trace;
pub mod tunnel;

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sched::{setns, CloneFlags};
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};

use crate::error::{Doing, Error, Result};
use crate::network::addresses::{
    address_request, neighbour_request, parse_address, parse_mac, parse_prefix, route_request, Gateway,
};
use crate::network::netlink::{Request, Requests, Socket};
use crate::plan::{Bridge, Interface, Neighbour, Node, Route};

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
    /// The network namespace that the calling process is in, which is new.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn of_new(node: &str) -> Result<Self> {
        let file = File::open("/proc/self/ns/net").doing(|| "open /proc/self/ns/net".to_owned())?;
        Ok(Self { node: node.to_owned(), file, socket: Socket::open()? })
    }

    /// That of the node, by what its maker has opened in it.
    pub fn of_opened(node: &str, file: OwnedFd, socket: OwnedFd) -> Self {
        Self { node: node.to_owned(), file: file.into(), socket: Socket::of_opened(socket) }
    }

    /// What [`Self::of_opened`] takes.
    pub fn descriptors(&self) -> [RawFd; 2] {
        [self.file.as_raw_fd(), self.socket.as_raw_fd()]
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
    pub fn batch(&self, interface: &str, requests: Requests) -> Result<()> {
        let named = |what| format!("{what} on {}:{interface}", self.node);
        self.carry_out(requests.into_iter().map(|(request, what)| (request, named(what))).collect())
    }

    /// Carries out requests about the node, nothing else in between.
    ///
    /// # Errors
    /// The kernel refuses one of them.
    pub fn carry_out(&self, requests: Requests) -> Result<()> {
        self.socket.batch(requests)
    }

    /// What gives the node's interfaces their addresses and sets them up, the bridge of all of them first if there is one.
    ///
    /// # Errors
    /// An address is malformed.
    pub fn configuration(&self, node: &Node) -> Result<Requests> {
        let mut requests = vec![self.running(LOOPBACK_INDEX, "lo", true)];
        requests.extend(self.addresses(LOOPBACK_INDEX, "lo", &node.loopback)?);
        requests.extend(node.bridge.iter().flat_map(|bridge| self.bridging(bridge, &node.interfaces)));
        for port in Port::all(&node.interfaces) {
            requests.extend(self.configuration_of(&port)?);
        }
        Ok(requests)
    }

    /// What makes the node's neighbours and routes known to it, whose interfaces are up.
    ///
    /// # Errors
    /// An address is malformed, or there is no such interface.
    pub fn routing(&self, node: &Node) -> Result<Requests> {
        let mut requests = Requests::new();
        for port in Port::all(&node.interfaces) {
            requests.extend(self.neighbours(&port)?);
        }
        for route in &node.routes {
            requests.push(self.route(route, &node.interfaces)?);
        }
        Ok(requests)
    }

    fn configuration_of(&self, port: &Port<'_>) -> Result<Requests> {
        let mut requests = self.addresses(port.index, &port.interface.name, &port.interface.addresses)?;
        requests.push(self.running(port.index, &port.interface.name, true));
        Ok(requests)
    }

    fn addresses(&self, index: u32, interface: &str, addresses: &[String]) -> Result<Requests> {
        let request = |address: &String| {
            let (ip, prefix) = parse_prefix(address)?;
            let what = format!("address {address} on {}:{interface}", self.node);
            Ok((address_request(index, ip, prefix), what))
        };
        addresses.iter().map(request).collect()
    }

    fn neighbours(&self, port: &Port<'_>) -> Result<Requests> {
        let request = |neighbour: &Neighbour| {
            let Neighbour { address, mac } = neighbour;
            let request = neighbour_request(port.index, parse_address(address)?, parse_mac(mac)?);
            Ok((request, format!("neighbour {address} on {}:{}", self.node, port.interface.name)))
        };
        port.interface.neighbours.iter().map(request).collect()
    }

    fn bridging(&self, bridge: &Bridge, interfaces: &[Interface]) -> Requests {
        let index = LOOPBACK_INDEX + 1 + interfaces.len() as u32;
        let request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .structure(&interface_header(index, 0, 0))
            .text(libc::IFLA_IFNAME, &bridge.name)
            .nested(libc::IFLA_LINKINFO, |request| {
                request.text(libc::IFLA_INFO_KIND, "bridge").nested(libc::IFLA_INFO_DATA, |request| {
                    request.attribute(IFLA_BR_STP_STATE, &u32::from(bridge.stp).to_ne_bytes())
                })
            });
        let mut requests = vec![(request, format!("bridge {} on {}", bridge.name, self.node))];
        requests.extend(Port::all(interfaces).map(|port| {
            let request = Request::new(libc::RTM_NEWLINK, 0)
                .structure(&interface_header(port.index, 0, 0))
                .attribute(libc::IFLA_MASTER, &index.to_ne_bytes());
            (request, format!("put {}:{} into {}", self.node, port.interface.name, bridge.name))
        }));
        requests.push(self.running(index, &bridge.name, true));
        requests
    }

    fn route(&self, route: &Route, interfaces: &[Interface]) -> Result<(Request, String)> {
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
        Ok((request, what()))
    }

    /// Gives an interface that was down, and is up again, what it lost by that.
    ///
    /// # Errors
    /// The kernel refuses a setting, as it may when the node is made.
    pub fn restore(&self, node: &Node, interface: &str) -> Result<()> {
        let mut requests = Requests::new();
        for port in Port::all(&node.interfaces).filter(|port| port.interface.name == interface) {
            requests.extend(self.configuration_of(&port)?);
            requests.extend(self.neighbours(&port)?);
        }
        for route in node.routes.iter().filter(|route| route.hops.iter().any(|hop| hop.interface == interface)) {
            requests.push(self.route(route, &node.interfaces)?);
        }
        self.carry_out(requests)
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_running(&self, index: u32, interface: &str, up: bool) -> Result<()> {
        self.carry_out(vec![self.running(index, interface, up)])
    }

    fn running(&self, index: u32, interface: &str, up: bool) -> (Request, String) {
        let flag = libc::IFF_UP as u32;
        let header = interface_header(index, if up { flag } else { 0 }, flag);
        let request = Request::new(libc::RTM_NEWLINK, 0).structure(&header);
        (request, format!("set {} {}:{interface}", if up { "up" } else { "down" }, self.node))
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
