//! The sampler's own process: waits for instants, packets and orders, whichever comes first.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::Pid;

use super::cadence::{looks_again_ns, Cadence, Tick};
use super::capture::Capture;
use super::instrument::Instrument;
use super::interfaces::Interfaces;
use super::nodes::Nodes;
use super::outputs::{self, Outputs};
use super::table::Table;
use super::tcp::Tcp;
use super::{Order, Reply};
use crate::channel::protocol::Observation;
use crate::clock::{self, SECOND_NS};
use crate::error::{Doing, Result};
use crate::guest::run_dir::RunDir;
use crate::network::Namespace;
use crate::node::child;
use crate::node::orders::{receive, send};
use crate::plan::Plan;
use crate::priority::{self, Priority};

const AGENT_TOKEN: u64 = u64::MAX;
const TIMER_TOKEN: u64 = u64::MAX - 1;
const OUTPUTS_TOKEN: u64 = u64::MAX - 2;
/// What was measured is on the disk after so long at the latest, if anything is measured later.
const WRITE_INTERVAL_NS: i64 = SECOND_NS;
const COSTS_HEADER: &str = "t_ns,kind,cpu_ns,count,late_ns,missed";

/// An instrument, when it is looked at, and where to what it shows is written.
struct Sampling {
    instrument: Box<dyn Instrument>,
    cadence: Cadence,
    /// None before the run, and after the disk has refused it.
    table: Option<Table>,
}

/// The outputs that are watched.
struct Watching {
    outputs: Outputs,
    table: Table,
    cost: Cost,
}

/// What has been done as things came, since it was last written down.
#[derive(Default)]
struct Cost {
    cpu_ns: i64,
    count: u64,
}

struct Process<'a> {
    guest: &'a str,
    run_dir: &'a RunDir,
    agent: &'a OwnedFd,
    samplings: Vec<Sampling>,
    /// None in the place of one that has ended.
    captures: Vec<Option<Capture>>,
    capture_cost: Cost,
    /// None where outputs are not watched, and after the disk has refused their table.
    watching: Option<Watching>,
    costs: Option<Table>,
    timer: TimerFd,
    zero_ns: i64,
    write_at_ns: i64,
}

/// Lives the life of the sampler; ends with the agent.
pub fn run(plan: &Plan, guest: &str, namespaces: &[Namespace], run_dir: &RunDir, agent: &OwnedFd) -> ! {
    child::live(
        agent,
        |reason| Reply::Failed { reason },
        || Process::open(plan, guest, namespaces, run_dir, agent).and_then(Process::serve),
    )
}

impl<'a> Process<'a> {
    fn open(
        plan: &Plan,
        guest: &'a str,
        namespaces: &[Namespace],
        run_dir: &'a RunDir,
        agent: &'a OwnedFd,
    ) -> Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
            .doing(|| "timerfd".to_owned())?;
        let mut samplings = Vec::new();
        let mut add = |period_ns, instrument| {
            samplings.push(Sampling { instrument, cadence: Cadence::new(period_ns), table: None });
        };
        // What changes fastest comes first.
        if let Some(period_ns) = plan.measure.tcp_period_ns {
            add(period_ns, Box::new(Tcp::open(namespaces)?) as Box<dyn Instrument>);
        }
        if let Some(period_ns) = plan.measure.interfaces_period_ns {
            add(period_ns, Box::new(Interfaces::open(plan, namespaces)?));
        }
        if let Some(period_ns) = plan.measure.nodes_period_ns {
            add(period_ns, Box::new(Nodes::open(namespaces)?));
        }
        let mut captures = Vec::new();
        for capture in &plan.measure.captures {
            if let Some(namespace) = namespaces.iter().find(|namespace| namespace.node() == capture.node) {
                captures.push(Some(Capture::open(capture, namespace)?));
            }
        }
        let mut watching = None;
        if plan.measure.outputs {
            let watched = Outputs::watch(namespaces, run_dir)?;
            let path = format!("measure/{guest}/{}.csv", outputs::NAME);
            let table = Table::create(run_dir, path, outputs::HEADER)?;
            watching = Some(Watching { outputs: watched, table, cost: Cost::default() });
        }
        priority::set(Pid::from_raw(0), Priority::Sampler).doing(|| "set the sampler's priority".to_owned())?;
        Ok(Self {
            guest,
            run_dir,
            agent,
            samplings,
            captures,
            capture_cost: Cost::default(),
            watching,
            costs: None,
            timer,
            zero_ns: 0,
            write_at_ns: 0,
        })
    }

    fn serve(mut self) -> Result<()> {
        send(self.agent, &Reply::Done, &[])?;
        let epoll = self.watch_sources()?;
        loop {
            let mut ready = [EpollEvent::empty(); 16];
            let count = match epoll.wait(&mut ready, EpollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                result => result.doing(|| "wait for events".to_owned())?,
            };
            // An instant is exact only if nothing is done before it.
            let mut tokens: Vec<u64> = ready[..count].iter().map(EpollEvent::data).collect();
            tokens.sort_by_key(|&token| token != TIMER_TOKEN);
            for token in tokens {
                match token {
                    TIMER_TOKEN => self.on_timer()?,
                    OUTPUTS_TOKEN => self.on_outputs()?,
                    AGENT_TOKEN => match receive(self.agent)? {
                        Some((order, _)) => self.obey(&order)?,
                        None => return Ok(()),
                    },
                    capture => self.on_packets(capture as usize)?,
                }
            }
        }
    }

    fn watch_sources(&self) -> Result<Epoll> {
        let doing = || "watch for events".to_owned();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(doing)?;
        let readable = |token| EpollEvent::new(EpollFlags::EPOLLIN, token);
        epoll.add(self.agent.as_fd(), readable(AGENT_TOKEN)).doing(doing)?;
        epoll.add(self.timer.as_fd(), readable(TIMER_TOKEN)).doing(doing)?;
        if let Some(watching) = &self.watching {
            epoll.add(watching.outputs.as_fd(), readable(OUTPUTS_TOKEN)).doing(doing)?;
        }
        for (token, capture) in (0..).zip(&self.captures) {
            let Some(capture) = capture else { continue };
            epoll.add(capture.as_fd(), readable(token)).doing(doing)?;
        }
        Ok(epoll)
    }

    fn obey(&mut self, order: &Order) -> Result<()> {
        match *order {
            Order::Begin { zero_ns, date_ns, from_ns } => self.begin(zero_ns, date_ns, from_ns)?,
            Order::Stop { t_ns } => self.stop(t_ns)?,
        }
        send(self.agent, &Reply::Done, &[])
    }

    fn begin(&mut self, zero_ns: i64, date_ns: i64, from_ns: Option<i64>) -> Result<()> {
        self.zero_ns = zero_ns;
        let (run_dir, guest) = (self.run_dir, self.guest);
        let open = |name: &str, header| {
            let path = format!("measure/{guest}/{name}.csv");
            if from_ns.is_some() {
                Table::append(run_dir, path)
            } else {
                Table::create(run_dir, path, header)
            }
        };
        self.costs = Some(open("sampler", COSTS_HEADER)?);
        for sampling in &mut self.samplings {
            let Sampling { instrument, table, cadence } = sampling;
            *table = Some(open(instrument.name(), instrument.header())?);
            if let Some(from_ns) = from_ns {
                cadence.skip(from_ns);
            }
        }
        self.captures.iter_mut().flatten().try_for_each(|capture| capture.begin(run_dir, date_ns, from_ns))?;
        self.set_timer(i64::MIN, i64::MIN)
    }

    /// The run has ended at `t_ns`: nothing later is sampled.
    fn stop(&mut self, t_ns: i64) -> Result<()> {
        self.sample_all(|now_ns| now_ns.min(t_ns))?;
        self.timer.unset().doing(|| "stop the timer".to_owned())?;
        for place in 0..self.captures.len() {
            let begun_ns = clock::now_ns();
            let result = self.captures[place].as_mut().map_or(Ok(()), |capture| capture.finish(t_ns));
            self.capture_cost.cpu_ns += clock::now_ns() - begun_ns;
            self.settle_capture(place, t_ns, result)?;
        }
        self.note_outputs(t_ns)?;
        self.write(t_ns, true)
    }

    fn now_ns(&self) -> i64 {
        clock::now_ns() - self.zero_ns
    }

    /// After samples that took from `begun_ns` to `done_ns`.
    fn set_timer(&self, begun_ns: i64, done_ns: i64) -> Result<()> {
        let running = self.samplings.iter().filter(|sampling| sampling.table.is_some());
        let Some(next) = running.map(|sampling| sampling.cadence.next_ns()).min() else { return Ok(()) };
        let at = self.zero_ns.saturating_add(looks_again_ns(begun_ns, done_ns, next));
        self.timer
            .set(Expiration::OneShot(clock::reading(at)), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .doing(|| "set the timer".to_owned())
    }

    fn on_timer(&mut self) -> Result<()> {
        // Reading only says that it expired, which is known.
        let _ = self.timer.wait();
        let begun_ns = self.now_ns();
        self.sample_all(|now_ns| now_ns)?;
        self.write(self.now_ns(), false)?;
        self.set_timer(begun_ns, self.now_ns())
    }

    /// Takes the samples that are due; `reckon` says what counts as now.
    fn sample_all(&mut self, reckon: impl Fn(i64) -> i64) -> Result<()> {
        for place in 0..self.samplings.len() {
            let now_ns = reckon(self.now_ns());
            let Sampling { instrument, cadence, table: Some(table) } = &mut self.samplings[place] else { continue };
            let Some(Tick { t_ns, late_ns, missed }) = cadence.take(now_ns) else { continue };
            let begun_ns = clock::now_ns();
            let count = instrument.sample(t_ns, &mut table.rows)?;
            let written = table.write(false);
            let cost_ns = clock::now_ns() - begun_ns;
            let kind = instrument.name();
            if let Some(costs) = &mut self.costs {
                // Writing into memory cannot fail.
                let _ = writeln!(costs.rows, "{t_ns},{kind},{cost_ns},{count},{late_ns},{missed}");
            }
            self.settle_table(place, now_ns, written)?;
        }
        Ok(())
    }

    fn on_packets(&mut self, place: usize) -> Result<()> {
        let begun_ns = clock::now_ns();
        let Some(capture) = &mut self.captures[place] else { return Ok(()) };
        let (packets, error) = capture.drain();
        self.capture_cost.cpu_ns += clock::now_ns() - begun_ns;
        self.capture_cost.count += packets;
        let now_ns = self.now_ns();
        self.settle_capture(place, now_ns, error.map_or(Ok(()), Err))?;
        self.write(now_ns, false)
    }

    fn on_outputs(&mut self) -> Result<()> {
        self.note_outputs(self.now_ns())?;
        self.write(self.now_ns(), false)
    }

    /// Notes which outputs have grown, as of `t_ns`.
    fn note_outputs(&mut self, t_ns: i64) -> Result<()> {
        let Some(Watching { outputs, table, cost }) = &mut self.watching else { return Ok(()) };
        let begun_ns = clock::now_ns();
        cost.count += outputs.read(t_ns, table)?;
        let written = table.write(false);
        cost.cpu_ns += clock::now_ns() - begun_ns;
        self.settle_outputs(t_ns, written)
    }

    /// Writes what was measured, if it is `all` that there will be or the last time is long ago.
    fn write(&mut self, now_ns: i64, all: bool) -> Result<()> {
        if now_ns < self.write_at_ns && !all {
            return Ok(());
        }
        self.write_at_ns = now_ns + WRITE_INTERVAL_NS;
        for place in 0..self.captures.len() {
            let result = self.captures[place].as_mut().map_or(Ok(()), |capture| capture.write(0));
            self.settle_capture(place, now_ns, result)?;
        }
        for place in 0..self.samplings.len() {
            let result = self.samplings[place].table.as_mut().map_or(Ok(()), |table| table.write(true));
            self.settle_table(place, now_ns, result)?;
        }
        let result = self.watching.as_mut().map_or(Ok(()), |watching| watching.table.write(true));
        self.settle_outputs(now_ns, result)?;
        let of_outputs = self.watching.as_mut().map(|watching| std::mem::take(&mut watching.cost)).unwrap_or_default();
        let of_captures = std::mem::take(&mut self.capture_cost);
        let Some(costs) = &mut self.costs else { return Ok(()) };
        for (kind, Cost { cpu_ns, count }) in [("capture", of_captures), (outputs::NAME, of_outputs)] {
            if count > 0 {
                // Writing into memory cannot fail.
                let _ = writeln!(costs.rows, "{now_ns},{kind},{cpu_ns},{count},0,0");
            }
        }
        if let Err(error) = costs.write(true) {
            self.costs = None;
            self.tell(now_ns, Observation::SamplingEnded { table: "sampler".to_owned(), reason: error.to_string() })?;
        }
        Ok(())
    }

    /// Ends a sampling whose table the disk has refused.
    fn settle_table(&mut self, place: usize, t_ns: i64, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        let sampling = &mut self.samplings[place];
        sampling.table = None;
        let table = sampling.instrument.name().to_owned();
        self.tell(t_ns, Observation::SamplingEnded { table, reason: error.to_string() })
    }

    /// Stops noting outputs once the disk has refused their table.
    fn settle_outputs(&mut self, t_ns: i64, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        self.watching = None;
        let table = outputs::NAME.to_owned();
        self.tell(t_ns, Observation::SamplingEnded { table, reason: error.to_string() })
    }

    /// Ends a capture that the disk has refused.
    fn settle_capture(&mut self, place: usize, t_ns: i64, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        match self.captures[place].take() {
            Some(capture) => self.tell(t_ns, capture.abandon(t_ns, &error)),
            None => Ok(()),
        }
    }

    fn tell(&self, t_ns: i64, observation: Observation) -> Result<()> {
        send(self.agent, &Reply::Ended { t_ns: t_ns.max(0), observation }, &[])
    }
}
