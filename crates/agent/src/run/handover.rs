//! A node that has its kernel to itself boots: another kernel goes on with the run, from this very instant.
//!
//! Such a node goes off as others do. Nobody can tell what its kernel does meanwhile, and this agent goes on with the
//! schedule: by hand or by what happens elsewhere, it may be told at any instant that the node boots. When it does, a machine
//! would begin with nothing but its disk, so the kernel ends here. What is not of the machine but of the run, the schedule
//! above all, goes to the agent of the next kernel, in a file ([`Handover`]).
//!
//! The order makes it exact. First the node's init is waited for, so that what the node has left on its disk is there. Then
//! the clock is asked to stand still for good, and the others to wait for who comes ([`clock::hand_over`]). From there on
//! nothing comes any more; what other agents said before is heard, what was measured is written, and what the schedule has
//! said since the node boots is put down instead of done. The next kernel boots in no virtual time, makes the node as the
//! plan has it and lets what lasts have its effect again ([`take_up`]). Its schedule goes on at the instant at which this
//! one stood.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;

use nix::unistd::{sync, Pid};
use serde::{Deserialize, Serialize};

use super::{effects, Run};
use crate::build::Guest;
use crate::channel::protocol::{FromAgent, FromHost, Outcome};
use crate::clock;
use crate::error::{Doing, Result};
use crate::guest::power_off;
use crate::node;
use crate::node::load::tally::{Counts, Tally};
use crate::node::orders::{receive, send, Order, Reply};
use crate::plan::Effect;
use crate::priority::{self, Priority};
use crate::schedule::{Action, Input, Schedule};

/// What goes from the agent of one kernel to that of the next.
#[derive(Debug, Serialize, Deserialize)]
pub struct Handover {
    /// The instant at which the one ends and the next goes on.
    pub t_ns: i64,
    /// All that is to come, and all that lasts.
    pub schedule: Schedule,
    /// What the schedule has said at that instant and is yet to be done.
    pub pending: Vec<Action>,
    /// How the run is over, if it is by then.
    pub finish: Option<(Outcome, String)>,
    /// Processes that were started.
    pub started: BTreeSet<usize>,
    /// What loads that last have come to.
    pub loads: BTreeMap<String, Counts>,
    /// The documents by which links were changed, and faults begun and undone, while the run went on.
    pub updates: Updates,
}

/// Documents of the host that were taken over, in their order.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Updates {
    /// Of links.
    pub links: Vec<String>,
    /// Of faults.
    pub faults: Vec<String>,
}

/// Where it is in the run directory.
fn file_of(guest: &str) -> String {
    format!("guest/{guest}.handover.json")
}

/// Reads what the kernel before has left to the guest, which is built, and lets what lasts have its effect, as far as that needs
/// no instant.
///
/// # Errors
/// There is nothing, or the kernel refuses what the one before did not.
pub fn take_up(guest: &Guest) -> Result<Handover> {
    let file = file_of(&guest.name);
    let handover: Handover = guest.run_dir.parse(&file)?;
    guest.run_dir.remove(&file)?;
    handover.updates.links.iter().try_for_each(|file| guest.prepare_update(file).map(drop))?;
    handover.updates.faults.iter().try_for_each(|file| guest.prepare_faults(file).map(drop))?;
    handover.schedule.course().for_each(|entry| guest.interfaces.borrow_mut().expect(entry));
    for (entry, _) in handover.schedule.lasting() {
        match &entry.effect {
            Effect::ChangeLink { .. }
            | Effect::ImpairLink { .. }
            | Effect::Partition { .. }
            | Effect::SlowCpu { .. }
            | Effect::TakeMemory { .. }
            | Effect::Pause { process: None, .. } => effects::begin(guest, entry, 0)?,
            // Of a kernel whose date is what the one before left; of programs, which are gone; or of instants.
            Effect::SendLoad { .. }
            | Effect::SetClock { .. }
            | Effect::Pause { .. }
            | Effect::Kill { .. }
            | Effect::BreakDisk { .. }
            | Effect::PowerOff { .. }
            | Effect::PowerOn { .. } => {}
        }
    }
    for (fault, counts) in &handover.loads {
        guest.loads.borrow_mut().insert(fault.clone(), Tally::from(*counts)?);
    }
    Ok(handover)
}

/// Does the same for what needs instants, which are known now.
///
/// # Errors
/// As of [`take_up`].
pub fn break_disks(guest: &Guest, schedule: &Schedule, zero_ns: i64) -> Result<()> {
    let mut lasting =
        schedule.lasting().into_iter().filter(|(entry, _)| matches!(entry.effect, Effect::BreakDisk { .. }));
    lasting.try_for_each(|(entry, began_ns)| effects::begin(guest, entry, zero_ns.saturating_add(began_ns)))
}

impl Run<'_> {
    /// Whether the schedule undoes with this what ends the kernel: the node boots that has it to itself.
    pub(super) fn ends_kernel(&self, action: &Action) -> bool {
        let Action::Undo { entry } = action else { return false };
        let owner = self.guest.plan.owner_of_kernel(&self.guest.name);
        matches!(&self.schedule.timed(*entry).effect, Effect::PowerOff { node, .. } if owner == Some(node))
    }

    /// Puts down what the next kernel is to do. What has an effect that lasts is in the schedule, and the date goes over as it is.
    pub(super) fn leave(&mut self, at_ns: i64, action: Action) -> Result<()> {
        let effect = match action {
            Action::Begin { entry } | Action::Undo { entry } => Some(&self.schedule.timed(entry).effect),
            _ => None,
        };
        match (&action, effect) {
            (_, Some(Effect::SetClock { .. })) => return self.perform(at_ns, action),
            (_, None) | (Action::Begin { .. }, Some(Effect::PowerOff { .. })) => self.pending.push(action),
            _ => {}
        }
        Ok(())
    }

    /// Leaves all to the next kernel, and waits for the end of this one.
    pub(super) fn hand_over(mut self) -> Result<()> {
        self.settle()?;
        let now_ns = self.now_ns();
        self.feed(now_ns, Input::Tick)?;
        // See `execute`: virtual time stands from here on.
        priority::set(Pid::this(), Priority::Ordinary).doing(|| "set the priority of the agent".to_owned())?;
        clock::hand_over();
        let t_ns = self.now_ns();
        for line in 0..self.guest.peers.lines().count() {
            self.on_peer(line)?;
        }
        self.stop_measuring(t_ns)?;
        let date = clock::date();
        let date_ns = date.tv_sec() * clock::SECOND_NS + date.tv_nsec() - t_ns;
        let heard = self.heard;
        let loads = self.guest.loads.borrow();
        let loads = loads.iter().map(|(fault, tally)| (fault.clone(), tally.counts())).collect();
        let file = File::from(self.guest.run_dir.create(&file_of(&self.guest.name))?);
        let handover = Handover {
            t_ns,
            schedule: self.schedule,
            pending: self.pending,
            finish: self.finish,
            started: self.started,
            loads,
            updates: self.updates,
        };
        serde_json::to_writer(BufWriter::new(file), &handover)
            .doing(|| "write what the next kernel has to know".to_owned())?;
        sync();
        self.channel.send(&FromAgent::HandsOver { t_ns, date_ns, heard })?;
        loop {
            // The host says all else again to the next.
            if matches!(self.channel.receive()?, FromHost::Halt {}) {
                power_off();
            }
        }
    }

    /// Waits until the node is off, with what it has on its disk.
    fn settle(&mut self) -> Result<()> {
        let guest = self.guest;
        for (name, handle) in &guest.nodes {
            send(&handle.socket, &Order::Sweep, &[])?;
            loop {
                match receive(&handle.socket)? {
                    Some((Reply::Done, _)) => break,
                    Some((reply, _)) => self.take_reply(name, reply)?,
                    None => return Err(node::died(name)),
                }
            }
        }
        Ok(())
    }
}
