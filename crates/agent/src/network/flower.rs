//! Filters that tell packets by their headers, and what they have done to a packet (tc-flower(8)).

use std::net::IpAddr;

use crate::network::addresses::octets;
use crate::network::netlink::Request;
use crate::network::programs::{self, Gate};

/// Of `linux/pkt_cls.h`.
const INTERFACE: u16 = 2;
const ACTIONS: u16 = 3;
const ETHERNET_TYPE: u16 = 8;
const IPV4_SOURCE: u16 = 10;
const IPV6_SOURCE: u16 = 14;
const FLAGS: u16 = 47;
/// Big-endian, as its mask.
const IS_FRAGMENT: u32 = 1;
const ACTION_KIND: u16 = 1;
/// With `NLA_F_NESTED`, which the kernel asks of newer attributes.
const ACTION_OPTIONS: u16 = 2 | 1 << 15;

/// What comes after an action, of `linux/pkt_cls.h`: `TC_ACT_UNSPEC`, the next filter looks at the packet.
pub const NEXT_FILTER: i32 = -1;
/// `TC_ACT_PIPE`: the next action has it.
pub const NEXT_ACTION: i32 = 3;
/// `TC_ACT_SHOT`: it is lost.
const LOST: i32 = 2;
/// `TC_ACT_STOLEN`: it is somewhere else.
const GONE: i32 = 4;

/// Of `linux/tc_act/tc_mirred.h` and `linux/tc_act/tc_gact.h`.
const MIRRED_PARAMETERS: u16 = 2;
const MIRRED_LEAVES: u32 = 1;
const GACT_PARAMETERS: u16 = 2;

/// The protocol of Ethernet that carries addresses of this version, in network byte order.
pub fn protocol(address: IpAddr) -> u16 {
    let protocol = if address.is_ipv4() { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
    (protocol as u16).to_be()
}

/// A filter for packets of the version of `address`, of all or those that `matching` narrows it to, with the actions that
/// `act` writes; without one they pass, and no later filter sees them.
pub fn filter(
    index: u32,
    gate: Gate,
    place: u16,
    address: IpAddr,
    matching: impl FnOnce(Request) -> Request,
    act: impl FnOnce(Request) -> Request,
) -> Request {
    let protocol = protocol(address);
    let mut header = programs::header(index, gate, place, protocol);
    // The kernel numbers them: a place may have several.
    header[8..12].fill(0);
    Request::new(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .structure(&header)
        .text(libc::TCA_KIND, "flower")
        .nested(libc::TCA_OPTIONS, |request| {
            matching(request.attribute(ETHERNET_TYPE, &protocol.to_ne_bytes())).nested(ACTIONS, act)
        })
}

/// Those with this source.
pub fn from(source: IpAddr) -> impl FnOnce(Request) -> Request {
    let kind = if source.is_ipv4() { IPV4_SOURCE } else { IPV6_SOURCE };
    let octets = octets(source);
    move |request| request.attribute(kind, &octets).attribute(kind + 1, &vec![0xFF; octets.len()])
}

/// Those that came in by this interface.
pub fn by(interface: &str) -> impl FnOnce(Request) -> Request + '_ {
    move |request| request.text(INTERFACE, interface)
}

/// Those that are a fragment, or are whole.
pub fn fragments(are: bool) -> impl FnOnce(Request) -> Request {
    let flags = if are { IS_FRAGMENT } else { 0 };
    move |request| request.attribute(FLAGS, &flags.to_be_bytes()).attribute(FLAGS + 1, &IS_FRAGMENT.to_be_bytes())
}

/// An action of that kind, the one with this number of a filter's.
pub fn action(request: Request, number: u16, kind: &str, fill: impl FnOnce(Request) -> Request) -> Request {
    request.nested(number, |request| request.text(ACTION_KIND, kind).nested(ACTION_OPTIONS, fill))
}

/// What the parameters of all actions begin with (`tc_gen`): what comes after it is the third number.
pub fn generic(then: i32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[8..12].copy_from_slice(&then.to_ne_bytes());
    bytes
}

/// The action that has a packet leave by another interface. One that was put together on its way comes in fragments again there, as
/// large as they were.
pub fn leave_by(request: Request, number: u16, index: u32) -> Request {
    let parameters = [generic(GONE).as_slice(), &MIRRED_LEAVES.to_ne_bytes(), &index.to_ne_bytes()].concat();
    action(request, number, "mirred", |request| request.attribute(MIRRED_PARAMETERS, &parameters))
}

/// The action that loses a packet.
pub fn lose(request: Request, number: u16) -> Request {
    action(request, number, "gact", |request| request.attribute(GACT_PARAMETERS, &generic(LOST)))
}
