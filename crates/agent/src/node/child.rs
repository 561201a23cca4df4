//! What children of the agent that go on as the same program have in common: the init of a node, and the sampler.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use serde::Serialize;

use crate::error::{Doing, Result};
use crate::node::orders::{send, shortened};

/// Lives the life of a child: does `serve`, and tells the agent why it cannot go on; ends with the agent.
pub fn live<R: Serialize + 'static>(agent: &OwnedFd, failed: fn(String) -> R, serve: impl FnOnce() -> Result<()>) -> ! {
    let result = report_panics(agent, failed).and_then(|()| {
        let served = serve();
        if let Err(error) = &served {
            send(agent, &failed(shortened(&error.to_string())), &[])?;
        }
        served
    });
    // An error was reported where there was still somebody to report to.
    std::process::exit(i32::from(result.is_err()))
}

/// The agent's hook would take this process for process 1 of the guest.
fn report_panics<R: Serialize + 'static>(agent: &OwnedFd, failed: fn(String) -> R) -> Result<()> {
    let agent = agent.try_clone().doing(|| "copy a descriptor".to_owned())?;
    std::panic::set_hook(Box::new(move |panic| {
        // The process is about to abort; the agent notices that too.
        let _ = send(&agent, &failed(shortened(&panic.to_string())), &[]);
    }));
    Ok(())
}

/// Keeps `socket` as the only descriptor beside the standard streams and returns it.
///
/// # Errors
/// The kernel refuses it.
pub fn keep_only(socket: OwnedFd) -> Result<OwnedFd> {
    const KEPT: i32 = 3;
    let doing = || "close what belongs to the agent".to_owned();
    let kept = if socket.as_raw_fd() == KEPT {
        socket
    } else {
        // SAFETY: descriptor 3 is the agent's; this copy of it is replaced, and nothing in this process uses it again.
        let raw = Errno::result(unsafe { libc::dup3(socket.as_raw_fd(), KEPT, libc::O_CLOEXEC) }).doing(doing)?;
        std::mem::forget(socket);
        // SAFETY: it was just made and has no other owner.
        unsafe { OwnedFd::from_raw_fd(raw) }
    };
    // SAFETY: the owners of these descriptors are the agent's variables, which this process never returns to.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, KEPT + 1, u32::MAX, 0) }).doing(doing)?;
    Ok(kept)
}
