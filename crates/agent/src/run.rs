//! A run: carries out what the schedule decides, and tells it what happened and when.

mod computing;
mod effects;
pub mod handover;

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
use crate::channel::protocol::{Event, EventKind, FromAgent, FromHost, Observation, Outcome, Subject};
use crate::channel::Channel;
use crate::clock::{self, date, wait_for_host};
use crate::error::{Doing, Error, Result};
use crate::guest::power_off;
use crate::guest::shortage;
use crate::measure::Sampler;
use crate::node;
use crate::node::orders::{receive, send, Job, Order, Reply};
use crate::node::ready::{self, Probe};
use crate::peers::News;
use crate::plan::{Effect, Plan, Timed};
use crate::priority::{self, Priority};
use crate::schedule::{Action, Input, Place, Schedule};
use crate::streams::Streams;
use handover::{Handover, Updates};

/// What the run waits for. Its place among all that were ever waited for is its token.
#[derive(Debug, Clone)]
enum Source {
    Channel,
    Timer,
    Sampler,
    Streams,
    /// A line to another guest, by number.
    Peer(usize),
    /// The init of a node.
    Node(String),
}

/// A run from `arm` to `finished`.
pub struct Run<'a> {
    guest: &'a Guest,
    sources: Vec<Source>,
    channel: &'a mut Channel,
    streams: &'a mut Streams,
    schedule: Schedule,
    probes: BTreeMap<usize, Probe>,
    probe_at_ns: i64,
    zero_ns: i64,
    timer: TimerFd,
    finish: Option<(Outcome, String)>,
    started: BTreeSet<usize>,
    /// Messages that the host has sent since `arm`.
    heard: u64,
    updates: Updates,
    /// The node boots that has this kernel to itself, and another one goes on.
    hands_over: bool,
    /// What the next kernel is to do first; or, from this instant on, this one.
    pending: Vec<Action>,
    resumes_ns: Option<i64>,
    /// Nothing happens before the host asks for a program, and an idle guest would skip the time until then.
    awaits_program: bool,
}

impl<'a> Run<'a> {
    /// A run whose virtual 0 is `zero_ns` of the guest's clock, from there on, or from where the kernel before this one ended.
    ///
    /// # Errors
    /// The plan is inconsistent, or the kernel gives no timer.
    pub fn new(
        guest: &'a Guest,
        channel: &'a mut Channel,
        streams: &'a mut Streams,
        zero_ns: i64,
        awaits_program: bool,
        before: Option<Handover>,
    ) -> Result<Self> {
        let resumes_ns = before.as_ref().map(|before| before.t_ns);
        let (schedule, pending, finish, started, updates) = if let Some(before) = before {
            (before.schedule, before.pending, before.finish, before.started, before.updates)
        } else {
            let unknown = |name| Error::new(format!("plan.json: something waits for {name}, which does not exist"));
            let schedule = Schedule::new(&guest.plan, &guest.name).map_err(unknown)?;
            (schedule, Vec::new(), None, BTreeSet::new(), Updates::default())
        };
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
            .doing(|| "timerfd".to_owned())?;
        let run = Self {
            guest,
            sources: Vec::new(),
            channel,
            streams,
            schedule,
            probes: BTreeMap::new(),
            probe_at_ns: 0,
            zero_ns,
            timer,
            finish,
            started,
            heard: 0,
            updates,
            hands_over: false,
            pending,
            resumes_ns,
            awaits_program,
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
        handover::break_disks(self.guest, &self.schedule, self.zero_ns)?;
        self.channel.send(&FromAgent::Armed { zero_ns: self.zero_ns })?;
        let epoll = self.watch_sources()?;
        while self.resumes_ns.is_some() || (self.finish.is_none() && !self.hands_over) {
            let mut ready = [EpollEvent::empty(); 16];
            let count = match epoll.wait(&mut ready, EpollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                result => result.doing(|| "wait for events".to_owned())?,
            };
            for event in &ready[..count] {
                match self.sources[event.data() as usize].clone() {
                    Source::Channel => self.on_channel()?,
                    Source::Timer => self.on_timer()?,
                    Source::Sampler => self.on_sampler()?,
                    Source::Streams => self.on_streams()?,
                    Source::Peer(line) => self.on_peer(line)?,
                    Source::Node(name) => self.on_node(&name)?,
                }
            }
            self.set_timer()?;
        }
        if self.hands_over {
            return self.hand_over();
        }
        self.sweep()?;
        let (outcome, reason) = self.finish.take().unwrap_or((Outcome::Done, String::new()));
        let t_ns = self.now_ns().max(0);
        self.stop_measuring(t_ns)?;
        // A kernel whose real-time processes took nearly all of a second has them rest until a timer ends that
        // (sched(7), sched_rt_runtime_us), and no timer does once virtual time stands.
        priority::set(Pid::this(), Priority::Ordinary).doing(|| "set the priority of the agent".to_owned())?;
        wait_for_host(true);
        self.channel.send(&FromAgent::Finished { t_ns, outcome, reason: &reason })
    }

    fn stop_measuring(&mut self, t_ns: i64) -> Result<()> {
        if let Some(sampler) = &self.guest.sampler {
            sampler.stop(t_ns, |t_ns, observation| self.channel.send(&FromAgent::Observed { t_ns, observation }))?;
        }
        self.tell_shortages(t_ns)
    }

    fn watch_sources(&mut self) -> Result<Epoll> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(|| "watch for events".to_owned())?;
        let guest = self.guest;
        let mut watched = vec![
            (self.channel.as_fd(), Source::Channel),
            (self.timer.as_fd(), Source::Timer),
            (self.streams.as_fd(), Source::Streams),
        ];
        watched.extend(guest.sampler.iter().map(|sampler| (sampler.socket.as_fd(), Source::Sampler)));
        watched.extend(guest.peers.lines().enumerate().map(|(number, line)| (line, Source::Peer(number))));
        watched.extend(guest.nodes.iter().map(|(name, handle)| (handle.socket.as_fd(), Source::Node(name.clone()))));
        for (token, (file, _)) in (0..).zip(&watched) {
            epoll.add(file, EpollEvent::new(EpollFlags::EPOLLIN, token)).doing(|| "watch for events".to_owned())?;
        }
        self.sources = watched.into_iter().map(|(_, source)| source).collect();
        Ok(epoll)
    }

    fn now_ns(&self) -> i64 {
        clock::now_ns() - self.zero_ns
    }

    /// Arms the timer for the next instant at which something is due, or disarms it.
    fn set_timer(&self) -> Result<()> {
        let probe = (!self.probes.is_empty()).then_some(self.probe_at_ns);
        let next = self.resumes_ns.or_else(|| self.schedule.next_deadline_ns().into_iter().chain(probe).min());
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
        if let Some(t_ns) = self.resumes_ns.filter(|&t_ns| t_ns <= now_ns) {
            self.resumes_ns = None;
            std::mem::take(&mut self.pending).into_iter().try_for_each(|action| self.perform(t_ns, action))?;
        }
        self.feed(now_ns, Input::Tick)?;
        if self.awaits_program && now_ns >= 0 {
            wait_for_host(true);
        }
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

    fn on_streams(&mut self) -> Result<()> {
        std::mem::take(&mut self.awaits_program).then(|| wait_for_host(false));
        self.streams.serve(&self.guest.nodes)
    }

    fn on_channel(&mut self) -> Result<()> {
        self.channel.fill()?;
        while let Some(message) = self.channel.next_message()? {
            self.heard += 1;
            match message {
                FromHost::Stop { reason } => {
                    let now_ns = self.now_ns();
                    self.feed(now_ns, Input::Stop { reason })?;
                }
                FromHost::WhoComputes {} => self.tell_who_computes()?,
                FromHost::UpdateLink { file } => self.update_link(&file)?,
                FromHost::UpdateFaults { file } => self.update_faults(&file)?,
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
        let mut found = shortage::find(here, &self.guest.wanted_shortages.borrow())?.into_iter();
        found.try_for_each(|observation| self.channel.send(&FromAgent::Observed { t_ns, observation: &observation }))
    }

    fn on_peer(&mut self, line: usize) -> Result<()> {
        for News { entry, moments } in self.guest.peers.hear(line)? {
            let now_ns = self.now_ns();
            self.feed(now_ns, Input::Told { entry, moments })?;
        }
        Ok(())
    }

    /// Takes over what a link becomes from now on; what cannot be is refused before anything is changed.
    fn update_link(&mut self, file: &str) -> Result<()> {
        let update = match self.guest.prepare_update(file) {
            Ok(update) => update,
            Err(error) => {
                return self.channel.send(&FromAgent::Refused { file, reason: &error.to_string() });
            }
        };
        self.schedule.replan_link(&update.link, update.course);
        self.updates.links.push(file.to_owned());
        let t_ns = self.now_ns();
        self.feed(t_ns, Input::Tick)?;
        self.channel.send(&FromAgent::Updated { file, t_ns: t_ns.max(0) })
    }

    /// Begins and undoes faults that somebody asks for by hand; what cannot be is refused before anything is changed.
    fn update_faults(&mut self, file: &str) -> Result<()> {
        let t_ns = self.now_ns();
        let update = match self.guest.prepare_faults(file) {
            Ok(update) => update,
            Err(error) => return self.channel.send(&FromAgent::Refused { file, reason: &error.to_string() }),
        };
        // What is over by now stands in nobody's way, and what is due has begun.
        self.feed(t_ns, Input::Tick)?;
        if let Some(reason) = self.schedule.why_not_by_hand(&update) {
            return self.channel.send(&FromAgent::Refused { file, reason: &reason });
        }
        if update.is_question {
            return self.channel.send(&FromAgent::Updated { file, t_ns: t_ns.max(0) });
        }
        let faults = update.again.iter().chain(&update.begin);
        faults.for_each(|fault| self.guest.interfaces.borrow_mut().expect(fault));
        self.schedule.take_over(t_ns, update);
        self.updates.faults.push(file.to_owned());
        self.feed(t_ns, Input::Tick)?;
        self.channel.send(&FromAgent::Updated { file, t_ns: t_ns.max(0) })
    }

    fn on_node(&mut self, name: &str) -> Result<()> {
        let Some((reply, _)) = receive(&self.guest.nodes[name].socket)? else { return Err(node::died(name)) };
        self.take_reply(name, reply)
    }

    fn take_reply(&mut self, name: &str, reply: Reply) -> Result<()> {
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
            self.hands_over |= self.ends_kernel(&action);
            match action {
                action @ (Action::Report { .. } | Action::Finish { .. }) => self.perform(at_ns, action)?,
                action if self.hands_over => self.leave(at_ns, action)?,
                action => self.perform(at_ns, action)?,
            }
        }
        self.update_probes()
    }

    /// Does what the schedule has said at `at_ns`.
    fn perform(&mut self, at_ns: i64, action: Action) -> Result<()> {
        match action {
            Action::Start { process } => self.start(process)?,
            Action::Terminate { process } => self.signal(process, Signal::SIGTERM)?,
            Action::Kill { process } => self.signal(process, Signal::SIGKILL)?,
            Action::Begin { entry } => {
                let begin_ns = self.zero_ns.saturating_add(self.schedule.began_ns(entry));
                effects::begin(self.guest, self.schedule.timed(entry), begin_ns)?;
            }
            Action::Undo { entry } => {
                effects::undo(self.guest, self.schedule.timed(entry), self.schedule.times(entry))?;
            }
            Action::Tell { entry, moments } => self.guest.peers.tell(News { entry, moments })?,
            Action::Report { entry, mut kind } => {
                self.count_load(entry, &mut kind);
                let event = Event {
                    t_ns: at_ns.max(0),
                    kind: &kind,
                    subject: subject(&self.guest.plan, &self.schedule, entry),
                };
                self.channel.send(&FromAgent::Event(event))?;
            }
            Action::Finish { outcome, reason } => self.finish = Some((outcome, reason)),
        }
        Ok(())
    }

    /// Puts into the end of a load what has come of it.
    fn count_load(&self, entry: Place, kind: &mut EventKind) {
        if let (Place::Timed(number), EventKind::Undone { load, .. }) = (entry, kind) {
            let tally = self.guest.loads.borrow_mut().remove(&self.schedule.timed(number).name);
            *load = tally.map(|tally| tally.counts());
        }
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
        // One that is started again goes on where it ended.
        let is_first = self.started.insert(process);
        let open = |path| if is_first { self.guest.run_dir.create(path) } else { self.guest.run_dir.append(path) };
        let (stdout, stderr) = (open(&entry.stdout)?, open(&entry.stderr)?);
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
        for (name, handle) in &self.guest.nodes {
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

/// What an event about an entry of the course is about.
fn subject<'a>(plan: &'a Plan, schedule: &'a Schedule, entry: Place) -> Subject<'a> {
    match entry {
        Place::Process(process) => {
            let process = &plan.processes[process];
            Subject::Process { process: &process.name, node: &process.node }
        }
        Place::Timed(number) => match schedule.timed(number) {
            Timed { effect: Effect::ChangeLink { link, .. }, .. } => Subject::Link { link },
            Timed { name, .. } => Subject::Fault { fault: name },
        },
    }
}
