//! Who gets the guest's only CPU first.
//!
//! A due action must not wait until a busy program has used up its share, so the agent and the inits of the nodes
//! run under the real-time policy. A program being executed keeps a real-time priority below theirs until its first
//! instruction; the init then wakes up, before that instruction, and puts it among the ordinary processes.

use nix::errno::Errno;
use nix::unistd::Pid;

/// A place in the kernel's order.
#[derive(Debug, Clone, Copy)]
pub enum Priority {
    /// The agent and the inits of nodes.
    Agent,
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
        Priority::Agent => (libc::SCHED_FIFO, 3),
        Priority::Sampler => (libc::SCHED_FIFO, 2),
        Priority::Starting => (libc::SCHED_FIFO, 1),
        Priority::Ordinary => (libc::SCHED_OTHER, 0),
    };
    let parameter = libc::sched_param { sched_priority: level };
    // SAFETY: the parameter is readable for the time of the call.
    Errno::result(unsafe { libc::sched_setscheduler(pid.as_raw(), policy, &parameter) }).map(drop)
}
