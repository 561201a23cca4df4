//! What a run measures: samples at exact virtual instants, outputs as they grow, and captures.
//!
//! A process of its own does it, the **sampler**: a fork of the agent that is made at the end of building. It keeps open
//! whatever it reads, a few sockets in each node's network namespace and the files of each node's control group, so that
//! a sample is a handful of system calls and no process is started for it. As a process of its own it can be preempted:
//! the agent, whose actions must come at their instants, goes first; the sampler goes before the programs of the nodes,
//! whose state it looks at.
//!
//! Sampling costs virtual time, since the guest's CPU does it. What it costs is measured with every sample and written
//! next to the samples (`sampler.csv`), as is how late the sample was, and how many could not be taken at all because the
//! one before was not done yet. A sample that was missed is counted, never made up.
//!
//! ```text
//! agent ── begin, stop ──►  sampler ──► measure/<guest>/*.csv
//!       ◄── done, ended ──          ──► captures/<node>.<interface>.pcapng
//! ```

mod cadence;
mod capture;
mod dump;
pub mod following;
mod instrument;
mod interfaces;
mod nodes;
mod outputs;
mod pcapng;
mod process;
mod ring;
mod table;
mod tcp;

use std::os::fd::OwnedFd;

use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
use nix::unistd::{fork, ForkResult};
use serde::{Deserialize, Serialize};

use crate::channel::protocol::Observation;
use crate::error::{Doing, Error, Result};
use crate::guest::run_dir::RunDir;
use crate::network::Namespace;
use crate::node::orders::{receive, send};
use crate::plan::Plan;

/// What the agent wants of the sampler.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Virtual 0 of the run is `zero_ns` of CLOCK_MONOTONIC and `date_ns` of CLOCK_REALTIME. What another kernel has measured
    /// until `from_ns`, if one has, goes on from there.
    Begin { zero_ns: i64, date_ns: i64, from_ns: Option<i64> },
    /// The run ended `t_ns` after its virtual 0: take what is due until then, and write everything out.
    Stop { t_ns: i64 },
}

/// What the sampler has to say.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// What was wanted is done.
    Done,
    /// It cannot go on.
    Failed {
        /// What was tried and why it failed.
        reason: String,
    },
    /// Something is not measured any more, `t_ns` after virtual 0.
    Ended {
        /// When.
        t_ns: i64,
        /// What, and why.
        observation: Observation,
    },
}

/// The agent's hold on the sampler.
pub struct Sampler {
    /// The line to it.
    pub socket: OwnedFd,
}

impl Sampler {
    /// Starts the sampler of a guest that is built; `None` when the plan measures nothing in it.
    ///
    /// # Errors
    /// Something that it needs cannot be opened.
    pub fn start(plan: &Plan, guest: &str, namespaces: &[Namespace], run_dir: &RunDir) -> Result<Option<Self>> {
        if plan.measure.is_empty() {
            return Ok(None);
        }
        let (socket, inner) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .doing(|| "sampler: socket pair".to_owned())?;
        // SAFETY: this program has one thread, so the child may do whatever the parent may.
        match unsafe { fork() }.doing(|| "sampler: fork".to_owned())? {
            ForkResult::Child => {
                drop(socket);
                process::run(plan, guest, namespaces, run_dir, &inner)
            }
            ForkResult::Parent { .. } => {
                drop(inner);
                let sampler = Self { socket };
                sampler.wait_done(|_, _| Ok(()))?;
                Ok(Some(sampler))
            }
        }
    }

    /// Lets it begin; it then waits for virtual 0, or for the first instant after `from_ns`.
    ///
    /// # Errors
    /// A file cannot be made, or a capture not begun.
    pub fn begin(&self, zero_ns: i64, date_ns: i64, from_ns: Option<i64>) -> Result<()> {
        send(&self.socket, &Order::Begin { zero_ns, date_ns, from_ns }, &[])?;
        self.wait_done(|_, _| Ok(()))
    }

    /// Takes one word of it during the run: `None` when it has nothing that the host should know.
    ///
    /// # Errors
    /// It could not go on, or it died.
    pub fn hear(&self) -> Result<Option<(i64, Observation)>> {
        match receive(&self.socket)? {
            Some((Reply::Ended { t_ns, observation }, _)) => Ok(Some((t_ns, observation))),
            Some((Reply::Done, _)) => Ok(None),
            Some((Reply::Failed { reason }, _)) => Err(Error::new(format!("sampler: {reason}"))),
            None => Err(Error::new("the sampler died")),
        }
    }

    /// Lets it write everything out; what it still has to say goes to `tell`.
    ///
    /// # Errors
    /// It could not go on, or it died.
    pub fn stop(&self, t_ns: i64, tell: impl FnMut(i64, &Observation) -> Result<()>) -> Result<()> {
        send(&self.socket, &Order::Stop { t_ns }, &[])?;
        self.wait_done(tell)
    }

    fn wait_done(&self, mut tell: impl FnMut(i64, &Observation) -> Result<()>) -> Result<()> {
        while let Some((t_ns, observation)) = self.hear()? {
            tell(t_ns, &observation)?;
        }
        Ok(())
    }
}
