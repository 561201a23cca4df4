//! Who gets the guest's only CPU first.
//!
//! A due action must not wait until a busy program has used up its share, so the agent and the inits of the nodes
//! run under the real-time policy. A program being executed keeps a real-time priority below theirs until its first
//! instruction; the init then wakes up, before that instruction, and puts it among the ordinary processes.
//!
//! **The kernel's own network thread** (ksoftirqd) is no ordinary process either. The kernel hands it what is left of an
//! interrupt when that has woken somebody, and then serves no packet before it has run. A device on a wire has always
//! something left, to look for another frame; so where the frame had woken the sampler, no packet moved in the guest until
//! the sampler was done with a block of its captures, or else until a program that computes had used up its slice. It is below
//! the agent, for a network that is more than the CPU can do must not keep a run from ending.

use std::fs::{read_dir, read_to_string};

use nix::errno::Errno;
use nix::unistd::Pid;

use crate::error::{Doing, Result};

/// How the kernel calls the thread that does for its one CPU what interrupts leave.
const NETWORK_THREAD: &str = "ksoftirqd/0";

/// A place in the kernel's order.
#[derive(Debug, Clone, Copy)]
pub enum Priority {
    /// The agent and the inits of nodes.
    Agent,
    /// The kernel's thread that goes on with packets.
    Network,
    /// The sampler, which looks at programs and is not held up by them.
    Sampler,
    /// A program between fork and exec.
    Starting,
    /// A program that runs.
    Ordinary,
}

/// Gives process `pid` (0: the caller) this priority.
///
/// # Errors
/// There is no such process.
pub fn set(pid: Pid, priority: Priority) -> nix::Result<()> {
    let (policy, level) = match priority {
        Priority::Agent => (libc::SCHED_FIFO, 4),
        Priority::Network => (libc::SCHED_FIFO, 3),
        Priority::Sampler => (libc::SCHED_FIFO, 2),
        Priority::Starting => (libc::SCHED_FIFO, 1),
        Priority::Ordinary => (libc::SCHED_OTHER, 0),
    };
    let parameter = libc::sched_param { sched_priority: level };
    // SAFETY: the parameter is readable for the time of the call.
    Errno::result(unsafe { libc::sched_setscheduler(pid.as_raw(), policy, &parameter) }).map(drop)
}

/// Gives the kernel's network thread its priority.
///
/// # Errors
/// /proc cannot be read, or the kernel refuses it.
pub fn set_network_thread() -> Result<()> {
    let doing = || format!("set the priority of {NETWORK_THREAD}");
    for entry in read_dir("/proc").doing(doing)? {
        let path = entry.doing(doing)?.path();
        // Whoever has no name has ended meanwhile, or is no process.
        let name = read_to_string(path.join("comm")).unwrap_or_default();
        if name.trim_end() == NETWORK_THREAD {
            let number = path.file_name().and_then(|number| number.to_str()?.parse().ok());
            return number.map_or(Ok(()), |number| set(Pid::from_raw(number), Priority::Network).doing(doing));
        }
    }
    // A kernel without such a thread has nothing that waits for it.
    Ok(())
}
