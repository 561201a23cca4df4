//! Carries out the effects of the course (`plan/course.rs`), and undoes them. What is due, and when, the schedule decides.

use std::fs::File;
use std::os::fd::AsRawFd;

use disk::Fault;
use nix::sys::signal::Signal;

use crate::build::Guest;
use crate::clock;
use crate::error::{Doing, Error, Result};
use crate::guest::shortage;
use crate::node::load::tally::Tally;
use crate::node::orders::{send, Job, Order};
use crate::plan::{Effect, Off, Timed};

/// Lets an effect begin, as far as it is in this guest; `begin_ns` is that instant on the guest's clock.
///
/// # Errors
/// The kernel refuses it, or a node's init is gone.
pub fn begin(guest: &Guest, entry: &Timed, begin_ns: i64) -> Result<()> {
    let mut interfaces = guest.interfaces.borrow_mut();
    match &entry.effect {
        Effect::BreakDisk { number, wrong, .. } => {
            let end_ns = entry.for_ns.map_or(i64::MAX, |for_ns| begin_ns.saturating_add(for_ns));
            clock::break_disk(*number, &wrong.between(begin_ns, end_ns));
            Ok(())
        }
        Effect::ChangeLink { ends, under, .. } => interfaces.change(&guest.plan.nodes, ends, under),
        Effect::ImpairLink { ends, .. } => interfaces.impair(&guest.plan.nodes, &entry.name, ends, true),
        Effect::Kill { node, process } => signal(guest, node, process, Signal::SIGKILL),
        Effect::Partition { cuts } => interfaces.cut(&guest.plan.nodes, &entry.name, cuts, true),
        Effect::Pause { node, process } => pause(guest, node, process.as_deref(), true),
        Effect::SetClock { by_ns, .. } => clock::move_date(*by_ns),
        Effect::SendLoad { node, load } => {
            let end_ns = entry.for_ns.map_or(i64::MAX, |for_ns| begin_ns.saturating_add(for_ns));
            let tally = Tally::new()?;
            let order = Order::SendLoad { fault: entry.name.clone(), load: load.clone(), begin_ns, end_ns };
            send(&guest.nodes[node].socket, &order, &[tally.file.as_raw_fd()])?;
            guest.loads.borrow_mut().insert(entry.name.clone(), tally);
            Ok(())
        }
        Effect::SlowCpu { to, .. } => {
            clock::set_speed(to.number, to.numerator, to.denominator);
            Ok(())
        }
        Effect::TakeMemory { node, leave_bytes } => limit_memory(guest, node, Some(*leave_bytes)),
        Effect::PowerOff { node, how } => {
            let handle = &guest.nodes[node];
            // Nothing that its programs do as they end reaches another node.
            interfaces.power(&guest.plan.nodes, node, false)?;
            handle.is_off.set(true);
            let outside = File::open("/proc/self/ns/mnt").doing(|| "open /proc/self/ns/mnt".to_owned())?;
            send(&handle.socket, &Order::PowerOff { orderly: *how != Off::Crash }, &[outside.as_raw_fd()])
        }
        // The schedule undoes what it ends.
        Effect::PowerOn { .. } => Ok(()),
    }
}

/// Undoes an effect that was done so often, if it is one that is done again and again.
///
/// # Errors
/// As of [`begin`].
pub fn undo(guest: &Guest, entry: &Timed, times: i64) -> Result<()> {
    let mut interfaces = guest.interfaces.borrow_mut();
    match &entry.effect {
        Effect::BreakDisk { number, .. } => {
            clock::break_disk(*number, &Fault::NONE);
            Ok(())
        }
        Effect::ImpairLink { ends, .. } => interfaces.impair(&guest.plan.nodes, &entry.name, ends, false),
        // The schedule starts it again; a node that boots stays on.
        Effect::Kill { .. } | Effect::PowerOn { .. } => Ok(()),
        Effect::Partition { cuts } => interfaces.cut(&guest.plan.nodes, &entry.name, cuts, false),
        Effect::ChangeLink { link, .. } => Err(Error::new(format!("plan.json: a change of {link} has an end"))),
        Effect::Pause { node, process } => pause(guest, node, process.as_deref(), false),
        Effect::SetClock { by_ns, every_ns, .. } => {
            clock::move_date(-by_ns * if every_ns.is_some() { times } else { 1 })
        }
        Effect::SendLoad { node, .. } => {
            send(&guest.nodes[node].socket, &Order::EndLoad { fault: entry.name.clone() }, &[])
        }
        Effect::SlowCpu { usual, .. } => {
            clock::set_speed(usual.number, usual.numerator, usual.denominator);
            Ok(())
        }
        Effect::TakeMemory { node, .. } => limit_memory(guest, node, None),
        Effect::PowerOff { node, .. } => {
            let handle = &guest.nodes[node];
            send(&handle.socket, &Order::PowerOn, &[])?;
            handle.is_off.set(false);
            interfaces.power(&guest.plan.nodes, node, true)
        }
    }
}

/// Leaves a node so much memory; `None`: what the plan gives it.
fn limit_memory(guest: &Guest, node: &str, leave_bytes: Option<u64>) -> Result<()> {
    let ended = shortage::ended(node)? as i64;
    let mut wanted = guest.wanted_shortages.borrow_mut();
    *wanted.entry(node.to_owned()).or_default() += if leave_bytes.is_some() { -ended } else { ended };
    send(&guest.nodes[node].socket, &Order::LimitMemory { leave_bytes }, &[])
}

/// Stops programs, or lets them go on.
fn pause(guest: &Guest, node: &str, process: Option<&str>, paused: bool) -> Result<()> {
    match process {
        None => send(&guest.nodes[node].socket, &Order::Pause { paused }, &[]),
        Some(name) => signal(guest, node, name, if paused { Signal::SIGSTOP } else { Signal::SIGCONT }),
    }
}

/// Sends a signal to a process and its group. It may have ended meanwhile, which its node's init knows.
fn signal(guest: &Guest, node: &str, name: &str, signal: Signal) -> Result<()> {
    let place = guest.plan.processes.iter().position(|process| process.name == name);
    let place = place.ok_or_else(|| Error::new(format!("plan.json: no process {name}")))?;
    let order = Order::Signal { job: Job::Process(place), signal: signal as i32 };
    send(&guest.nodes[node].socket, &order, &[])
}
