//! The init of a node: process 1 of its PID namespace. Takes orders, executes programs, reaps everything.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sched::{setns, unshare, CloneFlags};
use nix::sys::signal::{kill, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{fork, ForkResult, Pid};

use crate::channel::protocol::End;
use crate::clock::{self, Power};
use crate::error::{Doing, Error, Result};
use crate::guest;
use crate::guest::ground::Ground;
use crate::node::changes;
use crate::node::child;
use crate::node::connections;
use crate::node::load::{self, Load};
use crate::node::memory::Memory;
use crate::node::orders::{receive, send, shortened, Job, Order, Reply};
use crate::node::spawn::{spawn, Program, StartFailure, Stdin};
use crate::node::tree::{self, Inside};
use crate::node::Processes;
use crate::plan::interior::Interior;
use crate::priority::{self, Priority};

/// Lives the life of a node's init; ends with the agent.
pub fn run(processes: &Processes, node: &Interior, ground: &Ground, inside: Inside, socket: &OwnedFd) -> ! {
    // Without the line to the agent there is nobody to tell why, and the agent sees that it is gone.
    let Ok(inside) = keep(inside, socket) else { std::process::exit(1) };
    child::live(
        socket,
        |reason| Reply::Failed { reason },
        || Init::new(processes, node, ground, inside, socket)?.serve(),
    )
}

/// What of a node's inside its init has: the members of its control group, their memory, and what the node changes.
type Kept = (File, Memory, [OwnedFd; 3]);

/// Closes all but what the init needs.
fn keep(Inside { members, memory, changes }: Inside, socket: &OwnedFd) -> Result<Kept> {
    let kept = changes::keep(&changes)?;
    // With all else that belongs to the maker.
    std::mem::forget(changes);
    let numbers = [members.as_raw_fd(), socket.as_raw_fd()].into_iter().chain(memory.descriptors());
    child::keep_only(numbers.chain(kept.iter().map(AsRawFd::as_raw_fd)).collect())?;
    Ok((members, memory, kept))
}

struct Init<'a> {
    processes: &'a Processes,
    node: &'a Interior,
    ground: &'a Ground<'a>,
    /// The file that takes the members of the node's control group.
    members: File,
    /// How much memory these may have.
    memory: Memory,
    /// What the node has changed of its tree; none while it is off, since who has it open keeps the file systems.
    changes: Option<[OwnedFd; 3]>,
    agent: &'a OwnedFd,
    children: SignalFd,
    /// Running jobs by the number of their process.
    running: HashMap<i32, Job>,
    /// Who sends loads, by the names of their faults.
    loads: HashMap<String, Pid>,
    /// The node is paused: what starts waits for its end.
    paused: bool,
}

impl<'a> Init<'a> {
    fn new(
        processes: &'a Processes,
        node: &'a Interior,
        ground: &'a Ground<'a>,
        (members, memory, changes): Kept,
        agent: &'a OwnedFd,
    ) -> Result<Self> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGCHLD);
        signals.thread_block().doing(|| "block SIGCHLD".to_owned())?;
        let children = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .doing(|| "signalfd".to_owned())?;
        let (changes, running, loads) = (Some(changes), HashMap::new(), HashMap::new());
        Ok(Self { processes, node, ground, members, memory, changes, agent, children, running, loads, paused: false })
    }

    fn serve(&mut self) -> Result<()> {
        tree::settle(self.node)?;
        guest::set_sysctls(self.node.sysctls.iter().filter(|(key, _)| !self.node.is_of_interface(key)))?;
        self.tell(&Reply::Done)?;
        loop {
            let sources = [self.agent.as_fd(), self.children.as_fd()].into_iter().chain(self.memory.awaited());
            let mut sources: Vec<PollFd> = sources.map(|source| PollFd::new(source, PollFlags::POLLIN)).collect();
            match poll(&mut sources, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                result => result.doing(|| "poll".to_owned())?,
            };
            let has_order = sources[0].any().unwrap_or(true);
            let has_dead = sources[1].any().unwrap_or(true);
            if sources.get(2).is_some_and(|ended| ended.any().unwrap_or(true)) {
                self.memory.go_on()?;
            }
            if has_dead {
                while self.children.read_signal().doing(|| "read signalfd".to_owned())?.is_some() {}
                self.reap()?;
            }
            if has_order {
                match receive(self.agent)? {
                    Some((order, descriptors)) => self.obey(&order, &descriptors)?,
                    None => return Ok(()),
                }
            }
        }
    }

    fn obey(&mut self, order: &Order, descriptors: &[OwnedFd]) -> Result<()> {
        match order {
            Order::Start { process } => {
                let [stdout, stderr] = descriptors else {
                    return Err(Error::new(format!(
                        "start of process {process} came with {} files",
                        descriptors.len()
                    )));
                };
                let unknown = || Error::new(format!("no process {process} in node {}", self.node.name));
                let process_plan = self.processes.get(process).ok_or_else(unknown)?;
                let stdin = Stdin::Path(&process_plan.stdin);
                self.start(Job::Process(*process), Program::of(process_plan), &stdin, stdout, stderr)
            }
            Order::Open { session, terminal } => {
                let [request, stdin, stdout, stderr] = descriptors else {
                    return Err(Error::new(format!("session {session} came with {} files", descriptors.len())));
                };
                let stdin = if *terminal { Stdin::Terminal(stdin) } else { Stdin::Open(stdin) };
                self.start(Job::Session(*session), read_program(request), &stdin, stdout, stderr)
            }
            Order::Signal { job, signal } => {
                // It may have ended a moment ago; the agent hears of that by itself.
                if let Some((pid, _)) = self.running.iter().find(|(_, running)| *running == job) {
                    let signal = Signal::try_from(*signal).doing(|| format!("signal {signal}"))?;
                    let _ = kill(Pid::from_raw(-pid), signal);
                }
                Ok(())
            }
            Order::Pause { paused } => {
                self.paused = *paused;
                // Process 1 of its namespace is not meant by -1. No process at all is fine.
                let _ = kill(Pid::from_raw(-1), if *paused { Signal::SIGSTOP } else { Signal::SIGCONT });
                Ok(())
            }
            Order::LimitMemory { leave_bytes: Some(bytes) } => self.memory.take(*bytes),
            Order::LimitMemory { leave_bytes: None } => self.memory.give_back(),
            Order::SendLoad { fault, load, begin_ns, end_ns } => {
                let [tally] = descriptors else {
                    return Err(Error::new(format!("load {fault} came with {} files", descriptors.len())));
                };
                self.send_load(fault, load, (*begin_ns, *end_ns), tally)
            }
            Order::EndLoad { fault } => {
                // It may have ended with the node.
                let sender = self.loads.remove(fault);
                sender.map_or(Ok(()), |pid| kill(pid, Signal::SIGKILL).doing(|| format!("end load {fault}")))
            }
            Order::PowerOff { orderly } => {
                let [outside] = descriptors else {
                    return Err(Error::new("power off came without a namespace"));
                };
                self.power_off(outside, *orderly)
            }
            Order::PowerOn => self.power_on(),
            Order::Sweep => {
                self.kill_all()?;
                self.tell(&Reply::Done)
            }
        }
    }

    /// Makes who sends a load, from one instant to another one (`node/load.rs`).
    fn send_load(&mut self, fault: &str, load: &Load, (begin_ns, end_ns): (i64, i64), tally: &OwnedFd) -> Result<()> {
        let doing = || format!("send load {fault}");
        // SAFETY: this program has one thread, so the child may do whatever the parent may.
        match unsafe { fork() }.doing(doing)? {
            ForkResult::Child => {
                let sent = std::fs::write("/proc/self/oom_score_adj", "0")
                    .and_then(|()| tally.try_clone())
                    .doing(doing)
                    .and_then(|tally| load::send(load, begin_ns, end_ns, tally));
                let Err(error) = sent;
                // Without the line to the agent there is nobody to tell why.
                let _ = self.tell(&Reply::Failed { reason: shortened(&format!("load {fault}: {error}")) });
                // SAFETY: ends the process at once, which is always allowed.
                unsafe { libc::_exit(1) }
            }
            ForkResult::Parent { child } => {
                if self.paused {
                    // It cannot have ended yet: this process is before it on the CPU.
                    kill(child, Signal::SIGSTOP).doing(doing)?;
                }
                self.admit(child)?;
                self.loads.insert(fault.to_owned(), child);
                Ok(())
            }
        }
    }

    /// Leaves nothing of what the node was, but for its disk, its network and this process.
    fn power_off(&mut self, outside: &OwnedFd, orderly: bool) -> Result<()> {
        if !orderly {
            self.power_disk(Power::Lost);
            connections::forget()?;
        }
        self.kill_all()?;
        // With nobody left it is done.
        self.memory.go_on()?;
        self.paused = false;
        self.changes = None;
        // Nobody else has the node's files, so its file systems go with this: what is in memory is lost, what is on a disk
        // is written to it, as long as that has power.
        setns(outside, CloneFlags::CLONE_NEWNS).doing(|| "leave the node's files".to_owned())?;
        self.power_disk(Power::Off);
        Ok(())
    }

    fn power_on(&mut self) -> Result<()> {
        self.kill_all()?;
        self.power_disk(Power::On);
        let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC;
        unshare(own).doing(|| "make namespaces".to_owned())?;
        // A control group takes no process of real-time priority, and this is in the node's for a moment.
        let doing = || "set the priority of a node's init".to_owned();
        priority::set(Pid::this(), Priority::Ordinary).doing(doing)?;
        let Inside { members, memory, changes } = tree::enter(self.node, self.ground)?;
        (self.members, self.memory, self.changes) = (members, memory, Some(changes::keep(&changes)?));
        tree::settle(self.node)?;
        priority::set(Pid::this(), Priority::Agent).doing(doing)?;
        guest::set_sysctls(&self.node.sysctls)
    }

    fn power_disk(&self, power: Power) {
        if let Some(disk) = &self.node.disk {
            clock::power_disk(disk.number, power);
        }
    }

    fn start(
        &mut self,
        job: Job,
        program: Result<Program>,
        stdin: &Stdin<'_>,
        stdout: &OwnedFd,
        stderr: &OwnedFd,
    ) -> Result<()> {
        let started = program
            .map_err(StartFailure::from)
            .and_then(|program| spawn(&program, self.node.cpu, stdin, stdout, stderr));
        let reply = match started {
            Ok(pid) => {
                if let Job::Process(process) = job {
                    clock::watch_begin(process);
                }
                if self.paused && matches!(job, Job::Process(_)) {
                    // Before it runs its first instruction. It may have been killed already.
                    let _ = kill(pid, Signal::SIGSTOP);
                }
                self.admit(pid)?;
                self.running.insert(pid.as_raw(), job);
                Reply::Started { job, pid: pid.as_raw(), at_ns: clock::now_ns() }
            }
            Err(StartFailure { reason, status }) => {
                Reply::StartFailed { job, status, reason: shortened(&reason), at_ns: clock::now_ns() }
            }
        };
        self.tell(&reply)
    }

    /// Makes a program, which did not run its first instruction yet, an ordinary member of the node.
    fn admit(&mut self, pid: Pid) -> Result<()> {
        let doing = || format!("put process {pid} into the node's control group");
        // The order matters: a control group takes no process of real-time priority.
        priority::set(pid, Priority::Ordinary).doing(doing)?;
        match self.members.write_all(pid.to_string().as_bytes()) {
            // It was killed before it could begin.
            Err(cause) if cause.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result.doing(doing),
        }
    }

    /// Reaps all that ended. Orphans, which belong to nobody in the plan, are not reported.
    fn reap(&mut self) -> Result<()> {
        loop {
            let (pid, end) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) => (pid, End::Status(status)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, End::Signal(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(_) => continue,
                Err(cause) => return Err(cause).doing(|| "wait for children".to_owned()),
            };
            self.loads.retain(|_, &mut sender| sender != pid);
            if let Some(job) = self.running.remove(&pid.as_raw()) {
                self.tell(&Reply::Ended { job, end, at_ns: clock::now_ns() })?;
            }
        }
    }

    /// Kills and reaps whatever runs.
    fn kill_all(&mut self) -> Result<()> {
        // As process 1 of its namespace this one is not meant by -1. No process at all is fine.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        let mut ends = HashMap::new();
        loop {
            match waitpid(None, None) {
                Ok(WaitStatus::Exited(pid, status)) => ends.insert(pid.as_raw(), End::Status(status)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => ends.insert(pid.as_raw(), End::Signal(signal as i32)),
                Err(Errno::ECHILD) => break,
                _ => None,
            };
        }
        self.loads.clear();
        let mut jobs: Vec<(i32, Job)> = std::mem::take(&mut self.running).into_iter().collect();
        jobs.sort_by_key(|&(pid, _)| pid);
        for (pid, job) in jobs {
            let end = ends.remove(&pid).unwrap_or(End::Signal(Signal::SIGKILL as i32));
            self.tell(&Reply::Ended { job, end, at_ns: clock::now_ns() })?;
        }
        Ok(())
    }

    fn tell(&self, reply: &Reply) -> Result<()> {
        send(self.agent, reply, &[])
    }
}

/// Reads what a session executes from the file that came with the order.
fn read_program(request: &OwnedFd) -> Result<Program> {
    let doing = || "read a session's request".to_owned();
    let mut file = File::from(request.try_clone().doing(doing)?);
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).doing(doing)?;
    Program::parse(&text)
}
