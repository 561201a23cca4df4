//! What the agent asks of its guest's clock: one definition for both sides.
//!
//! The agent is a program of the guest, and the clock is a library in the process of the guest's kernel. Between them is no
//! call, no file and no memory that both know, and a system call would cost virtual time. So the agent executes HLT, which
//! no program may: it faults, the clock looks at the registers of the process before its kernel does, and if they hold a
//! request, it is carried out, the instruction is taken for done and the kernel never hears of it. In no virtual time,
//! therefore, and with no answer: what the agent asks for cannot be refused.
//!
//! A request is five registers, of which the first is [`MAGIC`]. What does not fit into them is in the memory of who asks,
//! and a register says where.

#![no_std]
#![forbid(unsafe_code)]

/// What the first register holds if HLT is a request, and not the mistake of a program.
pub const MAGIC: u64 = u64::from_le_bytes(*b"DILATON\0");

/// The type of the Ethernet frames in which agents tell each other what became of programs: the first of the two for local
/// experiments (IEEE 802, section 9.2.3). They are no traffic of the lab, and nobody judges a run by how late they come.
pub const NEWS_ETHERTYPE: u16 = 0x88B5;

/// Something that the clock is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The agent waits for the host from now on, or no longer does. Virtual time stands still meanwhile.
    WaitForHost(bool),
    /// The kernel ends here, in the middle of the run, and another one goes on from this very instant. Virtual time stands
    /// still, and for the other guests too once they have come as far as this one lets them.
    HandOver,
    /// The guest is about to power off: its disks take no time any more.
    HurryDisks,
    /// The program that the asking process is about to execute is of a node with a CPU of its own.
    JoinNode {
        /// The node's number in its guest.
        node: u64,
        /// The speed of its CPU is `host` / `guest` cores of the host.
        host: u64,
        /// See `host`.
        guest: u64,
    },
    /// The CPU of a node has another speed from now on, also for programs that are yet to join it.
    SetSpeed {
        /// The node's number in its guest.
        node: u64,
        /// The speed is `host` / `guest` cores of the host.
        host: u64,
        /// See `host`.
        guest: u64,
    },
    /// The program that was executed last, and has done nothing yet, is to be watched: when does it begin to talk?
    WatchBegin {
        /// Which process of the plan it is, by its place there.
        process: u64,
    },
    /// The power of a disk is switched.
    PowerDisk {
        /// The disk's number in its guest.
        disk: u64,
        /// What becomes of its power.
        power: Power,
    },
    /// From now on something else is wrong with a disk than was, or nothing.
    BreakDisk {
        /// The disk's number in its guest.
        disk: u64,
        /// Where the words of a fault of disks (`crates/disk`) are, in the memory of who asks.
        fault: u64,
    },
}

/// What becomes of the power of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// It goes all at once, and with it what a volatile cache held.
    Lost,
    /// It is there.
    On,
    /// It is switched off by a machine that has shut down, which lets the disk keep what it has.
    Off,
}

impl Request {
    /// The registers RDI, RSI, RDX and R10; RAX holds [`MAGIC`].
    #[must_use]
    pub const fn registers(self) -> [u64; 4] {
        match self {
            Self::WaitForHost(false) => [0, 0, 0, 0],
            Self::WaitForHost(true) => [1, 0, 0, 0],
            Self::HurryDisks => [2, 0, 0, 0],
            Self::JoinNode { node, host, guest } => [3, node, host, guest],
            Self::PowerDisk { disk, power } => [4, disk, power as u64, 0],
            Self::BreakDisk { disk, fault } => [5, disk, fault, 0],
            Self::SetSpeed { node, host, guest } => [6, node, host, guest],
            Self::HandOver => [7, 0, 0, 0],
            Self::WatchBegin { process } => [8, process, 0, 0],
        }
    }

    /// The request in these registers; none if no agent has put it there.
    #[must_use]
    pub const fn of(registers: [u64; 4]) -> Option<Self> {
        Some(match registers {
            [0, ..] => Self::WaitForHost(false),
            [1, ..] => Self::WaitForHost(true),
            [2, ..] => Self::HurryDisks,
            [3, node, host, guest] => Self::JoinNode { node, host, guest },
            [4, disk, power, _] => {
                let power = match power {
                    0 => Power::Lost,
                    1 => Power::On,
                    2 => Power::Off,
                    _ => return None,
                };
                Self::PowerDisk { disk, power }
            }
            [5, disk, fault, _] => Self::BreakDisk { disk, fault },
            [6, node, host, guest] => Self::SetSpeed { node, host, guest },
            [7, ..] => Self::HandOver,
            [8, process, ..] => Self::WatchBegin { process },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::{Power, Request};

    fn any_request() -> impl Strategy<Value = Request> {
        let power = prop_oneof![Just(Power::Lost), Just(Power::On), Just(Power::Off)];
        prop_oneof![
            any::<bool>().prop_map(Request::WaitForHost),
            Just(Request::HandOver),
            any::<u64>().prop_map(|process| Request::WatchBegin { process }),
            Just(Request::HurryDisks),
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(node, host, guest)| Request::JoinNode {
                node,
                host,
                guest
            }),
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(node, host, guest)| Request::SetSpeed {
                node,
                host,
                guest
            }),
            (any::<u64>(), power).prop_map(|(disk, power)| Request::PowerDisk { disk, power }),
            (any::<u64>(), any::<u64>()).prop_map(|(disk, fault)| Request::BreakDisk { disk, fault }),
        ]
    }

    proptest! {
        #[test]
        fn what_one_side_asks_the_other_reads(request in any_request()) {
            prop_assert_eq!(Request::of(request.registers()), Some(request));
        }

        #[test]
        fn what_is_read_as_a_request_would_be_asked_like_this(registers in any::<[u64; 4]>(), what in 0u64..9) {
            let registers = [what, registers[1], registers[2], registers[3]];
            if let Some(request) = Request::of(registers) {
                prop_assert_eq!(Request::of(request.registers()), Some(request));
            }
        }
    }

    #[test]
    fn what_no_agent_asks_is_no_request() {
        assert_eq!(Request::of([9, 0, 0, 0]), None);
        assert_eq!(Request::of([4, 0, 3, 0]), None, "a disk's power is lost, on or off");
    }
}
