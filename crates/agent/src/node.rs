//! Making a node, and the agent's hold on it.
//!
//! A node is a process tree whose init is a fork of who makes all nodes (`guest/maker.rs`): same program, no exec, and with its
//! code there from the start (`node/code.rs`), so it costs little more than its stack. The init (`node/init.rs`) is process 1 of
//! a new PID namespace. The other namespaces, and what is in them, are made beforehand by the maker, which the init inherits them
//! from: each page of memory that a new process touches is a fault of its own, and the maker has touched most of them for the
//! node before.

pub mod changes;
pub mod child;
pub mod code;
pub mod connections;
pub mod init;
pub mod inside;
pub mod load;
pub mod memory;
pub mod orders;
pub mod passwd;
pub mod port;
pub mod ready;
pub mod restore;
pub mod spawn;
pub mod tree;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sched::{unshare, CloneFlags};
use nix::sys::signal::Signal;
use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
use nix::unistd::Pid;

use crate::error::{Doing, Error, Result};
use crate::guest::ground::Ground;
use crate::network::Namespace;
use crate::node::orders::{receive, Reply};
use crate::plan::interior::Interior;
use crate::plan::Process;

/// The processes of the plan that run in a node, by their places in the plan.
pub type Processes = HashMap<usize, Process>;

/// The agent's hold on a node.
pub struct Handle {
    /// The init of the node, in the agent's PID namespace.
    pub init: Pid,
    /// The line to it (see `node/orders.rs`).
    pub socket: OwnedFd,
    /// Sysctls that wait for its interfaces.
    pub interface_sysctls: BTreeMap<String, String>,
    /// Whether it is off, and takes no sessions.
    pub is_off: Cell<bool>,
}

/// A node that was just made.
pub struct Made {
    /// Its init, in the PID namespace of the caller.
    pub init: Pid,
    /// The line to that.
    pub socket: OwnedFd,
    /// Its network.
    pub network: Namespace,
}

/// Makes a node, puts the caller into its namespaces but for that of processes, and waits until its init is there.
///
/// # Errors
/// The kernel refuses something: what, and on which node.
pub fn create(processes: &Processes, node: &Interior, ground: &Ground) -> Result<Made> {
    let named = || format!("node {}", node.name);
    let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNET;
    unshare(own).doing(|| format!("{}: make namespaces", named()))?;
    let network = Namespace::of_new(&node.name)?;
    let inside = tree::enter(node, ground).doing(named)?;
    let (socket, inner) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .doing(|| format!("{}: socket pair", named()))?;
    let flags = libc::CLONE_NEWPID | Signal::SIGCHLD as i32;
    // SAFETY: without CLONE_VM and a stack this is a fork; this program has one thread, so the child may do what the
    // parent may.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match Errno::result(pid).doing(|| format!("{}: clone", named()))? {
        0 => init::run(processes, node, ground, inside, &inner),
        pid => {
            drop(inner);
            wait_done(&socket, &node.name)?;
            Ok(Made { init: Pid::from_raw(pid as i32), socket, network })
        }
    }
}

/// Waits until a node's init has done what it was ordered to.
///
/// # Errors
/// It could not, or it died.
pub fn wait_done(socket: &OwnedFd, node: &str) -> Result<()> {
    match receive(socket)? {
        Some((Reply::Done, _)) => Ok(()),
        Some((Reply::Failed { reason }, _)) => Err(Error::new(format!("node {node}: {reason}"))),
        Some((reply, _)) => Err(Error::new(format!("node {node}: unexpected reply {reply:?}"))),
        None => Err(died(node)),
    }
}

/// The error when a node's init is gone.
pub fn died(node: &str) -> Error {
    Error::new(format!("node {node}: its init died"))
}
