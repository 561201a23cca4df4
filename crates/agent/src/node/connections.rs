//! The TCP connections of a node that loses its power.
//!
//! A kernel goes on with the connections of programs that were killed: it sends what they had written, and then says that
//! they are closed. A machine without power does neither, and knows nothing of them when it is back. So each connection is
//! made one that its kernel drops when its last program closes it (tcp(7) and socket(7), `SO_LINGER` of 0 s); the reset
//! that goes with that does not leave a node whose interfaces are down. Connections that programs have closed before are
//! the kernel's alone, and stay with it for as long as it keeps them.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;

use crate::error::{Doing, Result};

/// Stops all programs of the node of the calling init for good, and has their connections dropped with them.
///
/// # Errors
/// The node's /proc cannot be read.
pub fn forget() -> Result<()> {
    // Process 1 of its namespace is not meant by -1. No process at all is fine.
    let _ = kill(Pid::from_raw(-1), Signal::SIGSTOP);
    for entry in fs::read_dir("/proc").doing(|| "read /proc".to_owned())?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Some(process) = (pid != 1).then(|| open(pid)).flatten() else { continue };
        // One that ends meanwhile has none any more.
        for file in fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten() {
            let is_socket = fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
            let number = file.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            let Some(socket) = number.filter(|_| is_socket).and_then(|number| take(&process, number)) else { continue };
            // Sockets of other kinds have nothing that lingers.
            let _ = setsockopt(&socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        }
    }
    Ok(())
}

fn open(pid: i32) -> Option<OwnedFd> {
    // SAFETY: without pointers.
    let descriptor = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).ok()?;
    // SAFETY: it was just opened and has no other owner.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// A descriptor of another process as one of this.
fn take(process: &OwnedFd, number: i32) -> Option<OwnedFd> {
    // SAFETY: without pointers.
    let taken = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    let descriptor = Errno::result(taken).ok()?;
    // SAFETY: it was just made and has no other owner.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
