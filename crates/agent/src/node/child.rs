//! What children of the agent that go on as the same program have in common: the init of a node, and the sampler.

use std::os::fd::{OwnedFd, RawFd};

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

/// Closes all descriptors but the standard streams and these.
///
/// # Errors
/// The kernel refuses it.
pub fn keep_only(mut kept: Vec<RawFd>) -> Result<()> {
    kept.sort_unstable();
    let mut first = libc::STDERR_FILENO as u32 + 1;
    for end in kept.into_iter().map(|kept| kept as u32).chain([u32::MAX]) {
        if first < end {
            // SAFETY: the owners of these descriptors are the agent's variables, which this process never returns to.
            Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, end - 1, 0) })
                .doing(|| "close what belongs to the agent".to_owned())?;
        }
        first = end.saturating_add(1);
    }
    Ok(())
}
