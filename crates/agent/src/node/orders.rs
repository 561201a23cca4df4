//! What the agent and the init of a node say to each other: one JSON object a packet, over a socket pair.
//!
//! Both are the same program and the init was forked with its processes in memory, so a process is named by its place in
//! the plan. A session is not in the plan: what it executes comes in a file. Instants are the guest's CLOCK_MONOTONIC.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::channel::protocol::End;
use crate::error::{Doing, Error, Result};
use crate::node::load::Load;

/// The longest packet in bytes.
const PACKET_BYTES_MAX: usize = 4096;

/// Characters of a reason, which may name what a user has written, however long: a packet has room for so many of any kind.
const REASON_LENGTH_MAX: usize = 600;

/// The most descriptors in one packet.
const DESCRIPTORS_MAX: usize = 4;

/// Something that a node's init executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// A process, by its place in the plan.
    Process(usize),
    /// A session, by its number (see `streams.rs`).
    Session(u32),
}

/// What the agent wants of a node's init.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Execute a process; its standard output and error come with the packet.
    Start {
        /// Its place in the plan.
        process: usize,
    },
    /// Execute a session's program; with the packet come the file that says which, and its standard streams.
    Open {
        /// The number of the session.
        session: u32,
        /// Whether the streams are a terminal, to be the one that controls the session.
        terminal: bool,
    },
    /// Send a signal to a job and its group.
    Signal {
        /// The job.
        job: Job,
        /// The signal's number.
        signal: i32,
    },
    /// Stop all programs (SIGSTOP), and those of the plan that start meanwhile, or let them go on (SIGCONT).
    Pause {
        /// Whether to stop them.
        paused: bool,
    },
    /// Leave the node's programs so much memory.
    LimitMemory {
        /// Bytes; `None`: what the plan gives it.
        leave_bytes: Option<u64>,
    },
    /// Send a load; with the packet comes what it is counted in (`node/load/tally.rs`).
    SendLoad {
        /// The name of its fault.
        fault: String,
        /// What is sent.
        load: Load,
        /// From when.
        begin_ns: i64,
        /// And until when.
        end_ns: i64,
    },
    /// Send no more of it.
    EndLoad {
        /// The name of its fault.
        fault: String,
    },
    /// Go off: kill and reap whatever still runs, and let go of all that was in memory; with the packet comes the mount
    /// namespace of the agent.
    PowerOff {
        /// What was written goes to the disk first.
        orderly: bool,
    },
    /// Boot, in new namespaces but for those of the network and of processes.
    PowerOn,
    /// Kill and reap whatever still runs.
    Sweep,
}

/// What a node's init has to say.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// What was wanted is done: the node is made, the sysctls are set, everything is swept.
    Done,
    /// The node cannot go on.
    Failed {
        /// What was tried and why it failed.
        reason: String,
    },
    /// A job was executed.
    Started {
        /// Which.
        job: Job,
        /// Its number in the node.
        pid: i32,
        /// When.
        at_ns: i64,
    },
    /// A job could not be executed.
    StartFailed {
        /// Which.
        job: Job,
        /// The exit status by which shells tell why: 127, there is no such program; 126, it cannot be executed.
        status: i32,
        /// What was tried and why it failed.
        reason: String,
        /// When.
        at_ns: i64,
    },
    /// A job ended.
    Ended {
        /// Which.
        job: Job,
        /// How.
        end: End,
        /// When.
        at_ns: i64,
    },
}

/// A reason that fits into a packet: the middle is left out of one that is too long, as what failed comes first and why last.
pub fn shortened(reason: &str) -> String {
    let length = reason.chars().count();
    if length <= REASON_LENGTH_MAX {
        return reason.to_owned();
    }
    let kept = REASON_LENGTH_MAX / 2;
    let begin = reason.chars().take(kept);
    begin.chain(std::iter::once('…')).chain(reason.chars().skip(length - kept)).collect()
}

/// Sends one packet with descriptors.
///
/// # Errors
/// The other side is gone.
pub fn send<T: Serialize>(socket: &OwnedFd, message: &T, descriptors: &[RawFd]) -> Result<()> {
    let bytes = serde_json::to_vec(message).doing(|| "write a packet".to_owned())?;
    let rights = [ControlMessage::ScmRights(descriptors)];
    let control = if descriptors.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], control, MsgFlags::MSG_NOSIGNAL, None)
        .doing(|| "send a packet".to_owned())?;
    Ok(())
}

/// Waits for one packet and the descriptors with it; `None` when the other side is gone.
///
/// # Errors
/// What came is no packet of this kind.
pub fn receive<T: DeserializeOwned>(socket: &OwnedFd) -> Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = [0; PACKET_BYTES_MAX];
    let mut control = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC)
        .doing(|| "receive a packet".to_owned())?;
    let mut descriptors = Vec::new();
    for message in received.cmsgs().doing(|| "receive descriptors".to_owned())? {
        if let ControlMessageOwned::ScmRights(raw) = message {
            // SAFETY: the kernel has just given us these descriptors, and nobody else knows of them.
            descriptors.extend(raw.into_iter().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }));
        }
    }
    let length = received.bytes;
    if length == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(&bytes[..length])
        .map_err(|cause| Error::new(format!("packet {}: {cause}", String::from_utf8_lossy(&bytes[..length]))))?;
    Ok(Some((message, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_any_length_and_kind_fits_into_a_packet_and_keeps_its_begin_and_end() {
        let name = "\u{1}".repeat(PACKET_BYTES_MAX);
        let reason = shortened(&format!("exec {name}: File name too long"));
        assert!(reason.starts_with("exec ") && reason.ends_with(": File name too long"));
        let job = Job::Session(u32::MAX);
        let reply = Reply::StartFailed { job, status: i32::MIN, reason, at_ns: i64::MIN };
        assert!(serde_json::to_vec(&reply).unwrap().len() <= PACKET_BYTES_MAX);
    }

    #[test]
    fn a_short_reason_stays_as_it_is() {
        assert_eq!(shortened("exec x: No such file or directory"), "exec x: No such file or directory");
    }
}
