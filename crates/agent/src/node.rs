//! Making a node, and the agent's hold on it.
//!
//! A node is a process tree whose init is a fork of the agent: same program, no exec, so it costs little more than its
//! stack. The init (`node/init.rs`) is process 1 of a new PID namespace and lives in new mount, UTS and IPC namespaces; the
//! network namespace is made beforehand (see `network.rs`), and the init inherits it.

pub mod changes;
pub mod child;
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
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
use nix::unistd::Pid;

use crate::error::{Doing, Error, Result};
use crate::node::orders::{receive, Reply};
use crate::plan::interior::Interior;
use crate::plan::Process;

/// The agent's hold on a node.
pub struct Handle {
    /// The init of the node, in the agent's PID namespace.
    pub init: Pid,
    /// The line to it (see `node/orders.rs`).
    pub socket: OwnedFd,
    /// Whether it has sysctls that wait for its interfaces.
    pub has_interface_sysctls: bool,
    /// Whether it is off, and takes no sessions.
    pub is_off: Cell<bool>,
}

/// Makes a node in the network namespace that the caller is in, and waits until it is there.
///
/// # Errors
/// The kernel refuses something: what, and on which node.
pub fn create(processes: &[Process], node: &Interior, run_dir: &str) -> Result<Handle> {
    let (socket, inner) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .doing(|| format!("node {}: socket pair", node.name))?;
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    // SAFETY: without CLONE_VM and a stack this is a fork; this program has one thread, so the child may do what the
    // parent may.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags | Signal::SIGCHLD as i32, 0, 0, 0, 0) };
    match Errno::result(pid).doing(|| format!("node {}: clone", node.name))? {
        0 => init::run(processes, node, run_dir, inner),
        pid => {
            drop(inner);
            let has_interface_sysctls = node.sysctls.keys().any(|key| node.is_of_interface(key));
            let init = Pid::from_raw(pid as i32);
            let handle = Handle { init, socket, has_interface_sysctls, is_off: Cell::new(false) };
            wait_done(&handle.socket, &node.name)?;
            Ok(handle)
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
