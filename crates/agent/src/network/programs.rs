//! Programs that look at every packet of an interface: where it leaves, before its queue, and where it arrives.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::network::netlink::Request;
use crate::network::tc;

/// `TC_H_CLSACT`, and its places for packets that arrive and that leave.
const CLSACT: u32 = 0xFFFF_FFF1;
const CLSACT_HANDLE: u32 = 0xFFFF_0000;
const CLSACT_INGRESS: u32 = 0xFFFF_FFF2;
const CLSACT_EGRESS: u32 = 0xFFFF_FFF3;
/// `ETH_P_ALL` in network byte order.
const ALL_PROTOCOLS: u16 = 0x0300;
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_FLAG_ACT_DIRECT: u32 = 1;

/// Where programs look at packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// Where they arrive.
    In,
    /// Where they leave.
    Out,
}

/// What a program does; those of one gate run in this order, until one of them drops the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Purpose {
    /// A partition lets nothing onto the link at all.
    Partition = 0x2000,
    /// Losses come before the queue.
    Drops,
    /// The departures of a delivery trace.
    Delivery,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Drops => "drops",
            Self::Delivery => "delivery",
        }
    }
}

/// The programs of one interface.
///
/// The place for them is a qdisc. To make it has the kernel empty all queues of the interface (`qdisc_graft` deactivates
/// the device), so it is made before the run where programs come later, and stays.
#[derive(Default)]
pub struct Programs {
    has_place: bool,
    present: BTreeSet<(Gate, Purpose)>,
}

impl Programs {
    /// The request that makes a place for programs, if there is none.
    pub fn make_place(&mut self, index: u32) -> Vec<(Request, String)> {
        if std::mem::replace(&mut self.has_place, true) {
            return Vec::new();
        }
        vec![(place(index), "clsact".to_owned())]
    }

    /// The requests that put `program` in place of the one with this purpose, or none there.
    pub fn replace(
        &mut self,
        index: u32,
        gate: Gate,
        purpose: Purpose,
        program: Option<&OwnedFd>,
    ) -> Vec<(Request, String)> {
        let Some(program) = program else {
            let delete =
                || Request::new(libc::RTM_DELTFILTER, 0).structure(&header(index, gate, purpose as u16, ALL_PROTOCOLS));
            let was_there = self.present.remove(&(gate, purpose)).then(delete);
            let named =
                |request: Request| (request.text(libc::TCA_KIND, "bpf"), format!("no program {}", purpose.name()));
            return was_there.into_iter().map(named).collect();
        };
        let mut requests = self.make_place(index);
        self.present.insert((gate, purpose));
        let request = Request::new(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE)
            .structure(&header(index, gate, purpose as u16, ALL_PROTOCOLS))
            .text(libc::TCA_KIND, "bpf")
            .nested(libc::TCA_OPTIONS, |request| {
                request
                    .attribute(BPF_FD, &program.as_raw_fd().to_ne_bytes())
                    .text(BPF_NAME, purpose.name())
                    .attribute(BPF_FLAGS, &BPF_FLAG_ACT_DIRECT.to_ne_bytes())
            });
        requests.push((request, format!("program {}", purpose.name())));
        requests
    }
}

/// The request for a place for programs and filters. Where there is one already, it stays.
pub fn place(index: u32) -> Request {
    Request::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE)
        .structure(&tc::header(index, CLSACT_HANDLE, CLSACT))
        .text(libc::TCA_KIND, "clsact")
}

/// The header of a request about what looks at packets of a protocol (in network byte order); of several at one gate the one with
/// the least `priority` comes first.
pub fn header(index: u32, gate: Gate, priority: u16, protocol: u16) -> [u8; 20] {
    let parent = if gate == Gate::In { CLSACT_INGRESS } else { CLSACT_EGRESS };
    let mut header = tc::header(index, 1, parent);
    header[16..20].copy_from_slice(&(u32::from(priority) << 16 | u32::from(protocol)).to_ne_bytes());
    header
}
