//! A run: carries out what the schedule decides, and tells it what happened and when.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::Signal;
use nix::sys::stat::futimens;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::Pid;

use crate::build::Guest;
use crate::channel::Channel;
use crate::clock::{self, date, wait_for_host};
use crate::computing;
use crate::error::{Doing, Error, Result};
use crate::guest::power_off;
use crate::measure::Sampler;
use crate::node::{self, Handle};
use crate::orders::{receive, send, Job, Order, Reply};
use crate::peers::News;
use crate::plan::{EndChange, LinkChange};
use crate::priority::{self, Priority};
use crate::protocol::{Event, EventKind, FromAgent, FromHost, Observation, Outcome, Subject};
use crate::ready::{self, Probe};
use crate::schedule::{Action, Input, Schedule};
use crate::shortage;
use crate::streams::Streams;

const CHANNEL_TOKEN: u64 = u64::MAX;
const TIMER_TOKEN: u64 = u64::MAX - 1;
const SAMPLER_TOKEN: u64 = u64::MAX - 2;
const STREAMS_TOKEN: u64 = u64::MAX - 3;
/// Of the first line to another guest; those of the others follow. Those of nodes begin at 0.
const PEER_TOKENS: u64 = 1 << 32;

/// A run from `arm` to `finished`.
pub struct Run<'a> {
    guest: &'a Guest,
    /// The nodes in the order of their epoll tokens.
    nodes: Vec<(&'a str, &'a Handle)>,
    channel: &'a mut Channel,
    streams: &'a mut Streams,
    schedule: Schedule,
    probes: BTreeMap<usize, Probe>,
    probe_at_ns: i64,
    /// What links are still to become, in the order of time.
    changes: Vec<LinkChange>,
    zero_ns: i64,
    timer: TimerFd,
    finish: Option<(Outcome, String)>,
}

impl<'a> Run<'a> {
    /// A run whose virtual 0 is `zero_ns` of the guest's clock.
    ///
    /// # Errors
    /// The plan is inconsistent, or the kernel gives no timer.
    pub fn new(guest: &'a Guest, channel: &'a mut Channel, streams: &'a mut Streams, zero_ns: i64) -> Result<Self> {
        let schedule = Schedule::new(&guest.plan, &guest.name)
            .map_err(|name| Error::new(format!("plan.json: a process waits for {name}, which does not exist")))?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
            .doing(|| "timerfd".to_owned())?;
        let run = Self {
            guest,
            nodes: guest.nodes.iter().map(|(name, handle)| (name.as_str(), handle)).collect(),
            channel,
            streams,
            schedule,
            probes: BTreeMap::new(),
            probe_at_ns: 0,
            changes: guest.plan.changes.clone(),
            zero_ns,
            timer,
            finish: None,
        };
        run.set_timer()?;
        Ok(run)
    }

    /// Runs the schedule to its end and tells the host.
    ///
    /// # Errors
    /// The kernel refuses something, or a node's init died.
    pub fn execute(mut self) -> Result<()> {
        self.guest.interfaces.borrow().start(clock::reading_ns(self.zero_ns))?;
        self.channel.send(&FromAgent::Armed { zero_ns: self.zero_ns })?;
        let epoll = self.watch_sources()?;
        while self.finish.is_none() {
            let mut ready = [EpollEvent::empty(); 16];
            let count = match epoll.wait(&mut ready, EpollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                result => result.doing(|| "wait for events".to_owned())?,
            };
            for event in &ready[..count] {
                match event.data() {
                    CHANNEL_TOKEN => self.on_channel()?,
                    TIMER_TOKEN => self.on_timer()?,
                    SAMPLER_TOKEN => self.on_sampler()?,
                    STREAMS_TOKEN => self.streams.serve(&self.guest.nodes)?,
                    peer @ PEER_TOKENS.. => self.on_peer((peer - PEER_TOKENS) as usize)?,
                    node => self.on_node(node as usize)?,
                }
            }
            self.set_timer()?;
        }
        self.sweep()?;
        let (outcome, reason) = self.finish.take().unwrap_or((Outcome::Done, String::new()));
        let t_ns = self.now_ns().max(0);
        if let Some(sampler) = &self.guest.sampler {
            sampler.stop(t_ns, |t_ns, observation| self.channel.send(&FromAgent::Observed { t_ns, observation }))?;
        }
        self.tell_shortages(t_ns)?;
        // A kernel whose real-time processes took nearly all of a second has them rest until a timer ends that
        // (sched(7), sched_rt_runtime_us), and no timer does once virtual time stands.
        priority::set(Pid::this(), Priority::Ordinary).doing(|| "set the priority of the agent".to_owned())?;
        wait_for_host(true);
        self.channel.send(&FromAgent::Finished { t_ns, outcome, reason: &reason })
    }

    fn watch_sources(&self) -> Result<Epoll> {
        let doing = || "watch for events".to_owned();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(doing)?;
        let readable = |token| EpollEvent::new(EpollFlags::EPOLLIN, token);
        epoll.add(self.channel.as_fd(), readable(CHANNEL_TOKEN)).doing(doing)?;
        epoll.add(self.timer.as_fd(), readable(TIMER_TOKEN)).doing(doing)?;
        if let Some(sampler) = &self.guest.sampler {
            epoll.add(sampler.socket.as_fd(), readable(SAMPLER_TOKEN)).doing(doing)?;
        }
        epoll.add(self.streams.as_fd(), readable(STREAMS_TOKEN)).doing(doing)?;
        for (token, line) in (PEER_TOKENS..).zip(self.guest.peers.lines()) {
            epoll.add(line, readable(token)).doing(doing)?;
        }
        for (token, (_, handle)) in (0..).zip(&self.nodes) {
            epoll.add(handle.socket.as_fd(), readable(token)).doing(doing)?;
        }
        Ok(epoll)
    }

    fn now_ns(&self) -> i64 {
        clock::now_ns() - self.zero_ns
    }

    /// Arms the timer for the next instant at which something is due, or disarms it.
    fn set_timer(&self) -> Result<()> {
        let probe = (!self.probes.is_empty()).then_some(self.probe_at_ns);
        let change = self.changes.first().map(|change| change.at_ns);
        let next = self.schedule.next_deadline_ns().into_iter().chain(probe).chain(change).min();
        let doing = || "set the timer".to_owned();
        match next {
            Some(instant) => {
                let at = self.zero_ns.saturating_add(instant);
                self.timer
                    .set(Expiration::OneShot(clock::reading(at)), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
                    .doing(doing)
            }
            None => self.timer.unset().doing(doing),
        }
    }

    fn on_timer(&mut self) -> Result<()> {
        // Reading only says that it expired, which is known, or that it was set anew meanwhile.
        let _ = self.timer.wait();
        let now_ns = self.now_ns();
        // Links first: a process that starts at the same instant finds them changed.
        self.change_links(now_ns)?;
        self.feed(now_ns, Input::Tick)?;
        if !self.probes.is_empty() && self.probe_at_ns <= now_ns {
            self.look_at_all()?;
        }
        Ok(())
    }

    /// Looks once at all whose readiness is awaited.
    fn look_at_all(&mut self) -> Result<()> {
        let began_ns = self.now_ns();
        let mut found = Vec::new();
        for (&process, probe) in &mut self.probes {
            if probe.look()? {
                found.push(process);
            }
        }
        self.probe_at_ns = ready::next_look_ns(began_ns, self.now_ns());
        for process in found {
            // What one starts may end the wait for another.
            if self.probes.contains_key(&process) {
                let now_ns = self.now_ns();
                self.feed(now_ns, Input::Ready { process })?;
            }
        }
        Ok(())
    }

    /// Looks once whether `process` is ready.
    fn look(&mut self, process: usize) -> Result<()> {
        let Some(probe) = self.probes.get_mut(&process) else { return Ok(()) };
        if probe.look()? {
            let now_ns = self.now_ns();
            self.feed(now_ns, Input::Ready { process })?;
        }
        Ok(())
    }

    fn on_channel(&mut self) -> Result<()> {
        self.channel.fill()?;
        while let Some(message) = self.channel.next_message()? {
            match message {
                FromHost::Stop { reason } => {
                    let now_ns = self.now_ns();
                    self.feed(now_ns, Input::Stop { reason })?;
                }
                FromHost::WhoComputes {} => self.tell_who_computes()?,
                FromHost::UpdateLink { file } => self.update_link(&file)?,
                FromHost::Halt {} => power_off(),
                FromHost::Build { .. } | FromHost::Arm { .. } => {
                    return Err(Error::new("the host sent build or arm during a run"));
                }
            }
        }
        Ok(())
    }

    fn on_sampler(&mut self) -> Result<()> {
        let heard = self.guest.sampler.as_ref().map_or(Ok(None), Sampler::hear)?;
        heard.map_or(Ok(()), |(t_ns, observation)| {
            self.channel.send(&FromAgent::Observed { t_ns, observation: &observation })
        })
    }

    fn tell_who_computes(&mut self) -> Result<()> {
        let Some(program) = computing::find() else { return Ok(()) };
        let observation = Observation::Spinning { node: program.node, program: program.command };
        self.channel.send(&FromAgent::Observed { t_ns: self.now_ns().max(0), observation: &observation })
    }

    fn tell_shortages(&mut self, t_ns: i64) -> Result<()> {
        let in_order = self.guest.plan.nodes.iter().map(|node| node.name.as_str());
        let here = in_order.filter_map(|name| Some((name, self.guest.nodes.get(name)?.init)));
        let mut found = shortage::find(here)?.into_iter();
        found.try_for_each(|observation| self.channel.send(&FromAgent::Observed { t_ns, observation: &observation }))
    }

    fn on_peer(&mut self, line: usize) -> Result<()> {
        for News { process, standing } in self.guest.peers.hear(line)? {
            let now_ns = self.now_ns();
            self.feed(now_ns, Input::Told { process, standing })?;
        }
        Ok(())
    }

    /// Makes links what they are due to become.
    fn change_links(&mut self, now_ns: i64) -> Result<()> {
        let due = self.changes.iter().take_while(|change| change.at_ns <= now_ns).count();
        let due: Vec<LinkChange> = self.changes.drain(..due).collect();
        due.iter().try_for_each(|change| self.change_link(change))
    }

    /// Takes over what a link becomes from now on; what cannot be is refused before anything is changed.
    fn update_link(&mut self, file: &str) -> Result<()> {
        let update = match self.guest.prepare_update(file) {
            Ok(update) => update,
            Err(error) => {
                return self.channel.send(&FromAgent::LinkRefused { file, reason: &error.to_string() });
            }
        };
        self.changes.retain(|change| change.link != update.link);
        self.changes.extend(update.changes);
        self.changes.sort_by_key(|change| change.at_ns);
        let t_ns = self.now_ns();
        self.change_links(t_ns)?;
        self.channel.send(&FromAgent::LinkUpdated { file, t_ns: t_ns.max(0) })
    }

    /// Changes those ends of a link that are in this guest; the guest of the first one tells of it.
    fn change_link(&mut self, change: &LinkChange) -> Result<()> {
        let LinkChange { at_ns, link, ends } = change;
        let is_here = |end: &&EndChange| self.guest.nodes.contains_key(&end.node);
        let here: Vec<&EndChange> = ends.iter().filter(is_here).collect();
        self.guest.interfaces.borrow_mut().change(&self.guest.plan.nodes, &here)?;
        if !ends.iter().take(1).any(|end| is_here(&end)) {
            return Ok(());
        }
        let kind = EventKind::LinkChanged { at_ns: *at_ns };
        let event = Event { t_ns: self.now_ns().max(0), kind: &kind, subject: Subject::Link { link } };
        self.channel.send(&FromAgent::Event(event))
    }

    fn on_node(&mut self, index: usize) -> Result<()> {
        let (name, handle) = self.nodes[index];
        let Some((reply, _)) = receive(&handle.socket)? else { return Err(node::died(name)) };
        match reply {
            Reply::Started { job: Job::Process(process), pid, at_ns } => {
                self.feed(at_ns - self.zero_ns, Input::Started { process, pid })
            }
            Reply::StartFailed { job: Job::Process(process), reason, at_ns, .. } => {
                self.feed(at_ns - self.zero_ns, Input::StartFailed { process, reason })
            }
            Reply::Ended { job: Job::Process(process), end, at_ns } => {
                // It may have become ready since the last look.
                self.look(process)?;
                self.feed(at_ns - self.zero_ns, Input::Ended { process, end })
            }
            Reply::Failed { reason } => Err(Error::new(format!("node {name}: {reason}"))),
            Reply::Done => Err(Error::new(format!("node {name}: unexpected reply"))),
            reply => self.on_session(&reply),
        }
    }

    fn on_session(&mut self, reply: &Reply) -> Result<()> {
        match reply {
            Reply::StartFailed { job: Job::Session(session), status, reason, .. } => {
                self.streams.on_failure(*session, *status, reason)
            }
            Reply::Ended { job: Job::Session(session), end, .. } => self.streams.on_end(*session, *end),
            _ => Ok(()),
        }
    }

    /// Tells the schedule what happened and does what it says.
    fn feed(&mut self, at_ns: i64, input: Input) -> Result<()> {
        for action in self.schedule.handle(at_ns, input) {
            match action {
                Action::Start { process } => self.start(process)?,
                Action::Terminate { process } => self.signal(process, Signal::SIGTERM)?,
                Action::Kill { process } => self.signal(process, Signal::SIGKILL)?,
                Action::Tell { process, standing } => self.guest.peers.tell(News { process, standing })?,
                Action::Report { process, kind } => {
                    let entry = &self.guest.plan.processes[process];
                    let subject = Subject::Process { process: &entry.name, node: &entry.node };
                    let event = Event { t_ns: at_ns.max(0), kind: &kind, subject };
                    self.channel.send(&FromAgent::Event(event))?;
                }
                Action::Finish { outcome, reason } => self.finish = Some((outcome, reason)),
            }
        }
        self.update_probes()
    }

    /// Keeps a probe for exactly those processes whose readiness is awaited.
    fn update_probes(&mut self) -> Result<()> {
        let awaited: BTreeSet<usize> = self.schedule.awaited().collect();
        self.probes.retain(|process, _| awaited.contains(process));
        for process in awaited {
            if self.probes.contains_key(&process) {
                continue;
            }
            if self.probes.is_empty() {
                let now_ns = self.now_ns();
                self.probe_at_ns = ready::next_look_ns(now_ns, now_ns);
            }
            let entry = &self.guest.plan.processes[process];
            let open = |path: &str| self.guest.run_dir.open_file(path, OFlag::O_RDONLY).map(File::from);
            if let Some(probe) = Probe::new(entry, self.guest.nodes[&entry.node].init, open)? {
                self.probes.insert(process, probe);
            }
        }
        Ok(())
    }

    fn start(&mut self, process: usize) -> Result<()> {
        let entry = &self.guest.plan.processes[process];
        let stdout = self.guest.run_dir.create(&entry.stdout)?;
        let stderr = self.guest.run_dir.create(&entry.stderr)?;
        // A new file has the host's date, which the process may ask for; "now" would be the host's too.
        let date = date();
        for output in [&stdout, &stderr] {
            futimens(output.as_raw_fd(), &date, &date).doing(|| format!("date the output of {}", entry.name))?;
        }
        let outputs = [stdout.as_raw_fd(), stderr.as_raw_fd()];
        send(&self.guest.nodes[&entry.node].socket, &Order::Start { process }, &outputs)
    }

    fn signal(&self, process: usize, signal: Signal) -> Result<()> {
        let node = &self.guest.plan.processes[process].node;
        send(&self.guest.nodes[node].socket, &Order::Signal { job: Job::Process(process), signal: signal as i32 }, &[])
    }

    /// Ends what processes and sessions left behind in their nodes.
    fn sweep(&mut self) -> Result<()> {
        for (name, handle) in self.nodes.clone() {
            send(&handle.socket, &Order::Sweep, &[])?;
            loop {
                match receive(&handle.socket)? {
                    Some((Reply::Done, _)) => break,
                    Some((Reply::Failed { reason }, _)) => return Err(Error::new(format!("node {name}: {reason}"))),
                    Some((reply, _)) => self.on_session(&reply)?,
                    None => return Err(node::died(name)),
                }
            }
        }
        Ok(())
    }
}
