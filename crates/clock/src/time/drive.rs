//! What drives virtual time: the host's monotonic clock, the work that the guest does, or the steps that it makes.
//!
//! *Work* is CPU time: that of the kernel's process and of its stubs, the processes in which user code runs, one at a
//! time. It does not advance while the guest waits for a core of the host, so other load does not disturb the guest.
//!
//! **Cost.** The kernel reads its clock a dozen times a packet, and reading a CPU clock takes a system call. So between
//! such readings ("resyncs") the time-stamp counter is read instead, which is right as long as the process stays on its
//! core. Whether it has is told by the host's kernel (`time/undisturbed.rs`). So a reading is one counter, one load, and a
//! multiplication. While the kernel has given its time-stamp counter up (`host/own_counter.rs`), the host's clock takes
//! its place: a system call, half as long as that for a CPU clock. The two have each their own zero, so from one to the other
//! is a resync.
//!
//! **Error.** The counter goes on in interrupts of the host and while a hypervisor has taken the core away, and the CPU
//! clock may not count these. Nor does every host tell of a core that was given away in a system call: Linux 6.19 clears the
//! pointer only where user code was interrupted. So a reading is a resync too when more than [`GAP_NS`] have passed since
//! the one before, and at the latest every [`TRUST_NS`]. A resync never takes time back: what was read too much is made
//! up for while nothing reads the clock, as while user code runs. Where the host has no rseq every reading is a resync, and
//! so is each of the first 20 ms, over which the counter is measured.
//!
//! **Stubs.** Exactly one process of a guest runs at a time. A stub's CPU clock is read when it has stopped, and in a
//! handler that interrupts its run. Where it has only mapped a page for its kernel, which takes a microsecond or two, that is
//! left for when it stops the next time, or another one runs, or the kernel idles, or ends it: by the counter no more than
//! [`UNREAD_NS_MAX`] are ever left so, which is how much too little work may be read until then.
//!
//! *Steps* are clock readings of the kernel, and entries of user code into it: a nanosecond for the one, which
//! shifts no packet; a hundred for the other, what a system call takes on real hardware, and a microsecond when the guest
//! has long been busy. They make loops end that wait for time to pass, and depend on nothing but what the guest does.
//!
//! Handlers interrupt everything here. All state is single words; a reader that was interrupted finds the count of
//! resyncs moved and starts again, and an interrupted resync finds the same and lets the next reader resync once more.

use core::ffi::c_int;
use core::sync::atomic::{compiler_fence, Ordering::SeqCst};

use interrupts::{Flag, Id, Word};
use virtual_time::{Drive, DriveInstant, HostInstant, Now};

use crate::host::own_counter::{self, host_now, ticks};
use crate::host::page::count;
use crate::host::{page, sys};
use crate::time::undisturbed;

/// What a clock reading of the kernel costs on the event drive.
pub const READING_NS: u64 = 1;

/// What an entry of user code into the kernel costs on the event drive.
const ENTRY_NS: u64 = 100;

/// What it costs in a guest that has been busy for [`BUSY_ENTRIES`].
pub const BUSY_ENTRY_NS: u64 = 1_000;

/// After this many entries without idling a guest is busy: a millisecond, more than programs take to start. A program that
/// goes on after that mostly asks again and again whether something has happened, until virtual time gets there.
const BUSY_ENTRIES: u64 = 10_000;

/// Host time over which the counter is measured. Two readings of both clocks are in doubt by 100 ns, which is 5 ppm of it.
const MEASURED_NS: u64 = 20_000_000;

/// How many pairs of readings are made for one.
const PAIRS: usize = 4;

/// A resync is due when the last one is this long ago.
const TRUST_NS: u64 = 1_000_000;

/// A resync is due when the last reading is this long ago: longer than the kernel mostly works between two readings, and
/// shorter than it takes to come back to a core.
const GAP_NS: u64 = 5_000;

/// How much host time a stub may run for its kernel before its CPU time is read, in one run or some.
const UNREAD_NS_MAX: u64 = 10_000;

/// How many stubs have their CPU time remembered while they do not run. That of others is read once more.
const STUB_SLOTS: usize = 64;

/// What the work drive and the event drive are computed from.
struct Meter {
    /// Work at counter zero: work is this plus the counter in nanoseconds, wrapping.
    offset_ns: Word,
    /// The host's clock at counter zero, so that one reading of the counter tells both.
    host_offset_ns: Word,
    /// The counter at the latest resync, nanoseconds, and whether that was the time-stamp counter.
    resync_ns: Word,
    resync_by_ticks: Flag,
    resyncs: Word,
    /// The latest reading, which no later one falls below.
    latest_ns: Word,
    /// Nanoseconds per counter tick, in units of 2^-32.
    ns_per_tick: Word,
    /// Whether work is metered: it costs two system calls for every entry into the kernel.
    metered: Flag,
    begin_ticks: Word,
    begin_host_ns: Word,
    /// The steps made so far, nanoseconds.
    steps_ns: Word,
    /// Entries since the kernel idled last.
    entries: Word,
    /// CPU time that is not the guest's work.
    left_out_ns: Word,
    /// CPU time of all stubs up to where it was read last.
    stubs_ns: Word,
    /// The stub that runs, or 0, and its CPU time as read last.
    running: Id,
    running_ns: Word,
    /// The stub that has run for the kernel since its CPU time was read, or 0; how long by the counter, nanoseconds; and the counter
    /// when the present such run began.
    unread: Id,
    unread_ns: Word,
    unread_begin_ticks: Word,
    /// Stubs that have stopped, each in the slot of its number.
    stopped: [StoppedStub; STUB_SLOTS],
}

static METER: Meter = Meter {
    offset_ns: Word::new(0),
    host_offset_ns: Word::new(0),
    resync_ns: Word::new(0),
    resync_by_ticks: Flag::new(false),
    resyncs: Word::new(0),
    latest_ns: Word::new(0),
    ns_per_tick: Word::new(0),
    metered: Flag::new(false),
    begin_ticks: Word::new(0),
    begin_host_ns: Word::new(0),
    steps_ns: Word::new(0),
    entries: Word::new(0),
    left_out_ns: Word::new(0),
    stubs_ns: Word::new(0),
    running: Id::new(0),
    running_ns: Word::new(0),
    unread: Id::new(0),
    unread_ns: Word::new(0),
    unread_begin_ticks: Word::new(0),
    stopped: [const { StoppedStub { pid: Id::new(0), cpu_ns: Word::new(0) } }; STUB_SLOTS],
};

struct StoppedStub {
    pid: Id,
    cpu_ns: Word,
}

/// Prepares both drives; the counter is measured against the host's clock from here on.
pub fn start() {
    let (begin_ticks, begin_host_ns) = counter_and_host();
    METER.begin_ticks.set(begin_ticks);
    METER.begin_host_ns.set(begin_host_ns);
    undisturbed::start();
}

/// Begins to meter work, if that is not being done yet.
pub fn meter_work() {
    if !METER.metered.get() {
        METER.metered.set(true);
        // Readings so far were of a counter that may not have been measured.
        undisturbed::watch(false);
    }
}

/// Whether work is metered.
pub fn is_metered() -> bool {
    METER.metered.get()
}

/// Measures the counter against the host's clock, once, when there is enough to measure. Returns whether it has been
/// measured.
fn measure_counter() -> bool {
    if METER.ns_per_tick.get() == 0 {
        if host_now().as_ns() - METER.begin_host_ns.get() < MEASURED_NS {
            return false;
        }
        let (end_ticks, end_host_ns) = counter_and_host();
        let elapsed_ns = end_host_ns - METER.begin_host_ns.get();
        let elapsed_ticks = end_ticks - METER.begin_ticks.get();
        METER.ns_per_tick.set(((u128::from(elapsed_ns) << 32) / u128::from(elapsed_ticks.max(1))) as u64);
    }
    true
}

/// The counter and the host's clock, nanoseconds, at one moment. The host may take the core away between two readings, for
/// milliseconds. So several pairs are read, and the one that took the least time is taken.
fn counter_and_host() -> (u64, u64) {
    let pairs = (0..PAIRS).map(|_| {
        let begin = ticks();
        let host_ns = host_now().as_ns();
        (ticks() - begin, begin, host_ns)
    });
    let (_, begin, host_ns) = pairs.min().unwrap_or_default();
    (begin, host_ns)
}

/// A reading of the guest's clock as ticks of a counter that runs with it, at the frequency of this host's.
pub fn ticks_of(reading_ns: u64) -> u64 {
    while !measure_counter() {
        core::hint::spin_loop(); // not for long, and in no program's time: a kernel takes longer to start one
    }
    ((u128::from(reading_ns) << 32) / u128::from(METER.ns_per_tick.get())) as u64
}

/// The present instant of a drive.
pub fn now(drive: Drive) -> DriveInstant {
    DriveInstant::from_ns(match drive {
        Drive::Wall => host_now().as_ns(),
        Drive::Work => work().ns,
        Drive::Event => METER.steps_ns.get(),
    })
}

/// The present moment by the host's clock and by a drive.
pub fn both(drive: Drive) -> Now {
    match drive {
        Drive::Wall => {
            let host = host_now();
            Now { host, drive: DriveInstant::from_ns(host.as_ns()) }
        }
        Drive::Work => {
            let work = work();
            Now { host: HostInstant::from_ns(work.host_ns), drive: DriveInstant::from_ns(work.ns) }
        }
        Drive::Event => Now { host: host_now(), drive: now(drive) },
    }
}

/// The kernel reads its clock.
pub fn step_reading() {
    METER.steps_ns.add(READING_NS);
}

/// The steps made so far, nanoseconds.
pub fn steps_ns() -> u64 {
    METER.steps_ns.get()
}

/// User code has entered the kernel.
pub fn step_entry() {
    let entries = METER.entries.get();
    let step_ns = if entries < BUSY_ENTRIES { ENTRY_NS } else { BUSY_ENTRY_NS };
    METER.entries.set(entries + 1);
    METER.steps_ns.add(step_ns);
}

/// Whether the guest is busy: programs have entered the kernel often since it idled last.
pub fn is_busy() -> bool {
    METER.entries.get() >= BUSY_ENTRIES
}

/// The guest is no longer busy: its kernel idles.
pub fn forget_entries() {
    METER.entries.set(0);
}

/// CPU time that the guest has used, and the host's clock then.
struct Work {
    ns: u64,
    host_ns: u64,
}

/// A reading between resyncs: of the time-stamp counter or, where that is given up, of the host's clock.
struct Counter {
    ns: u64,
    by_ticks: bool,
}

impl Counter {
    fn now() -> Self {
        if own_counter::is_enabled() {
            Self { ns: in_ns(ticks()), by_ticks: true }
        } else {
            Self { ns: host_now().as_ns(), by_ticks: false }
        }
    }

    /// Whether a resync is due at this reading.
    fn is_stale(&self) -> bool {
        self.by_ticks != METER.resync_by_ticks.get() || self.ns.wrapping_sub(METER.resync_ns.get()) > TRUST_NS
    }
}

/// How much the guest has worked by now.
#[inline]
fn work() -> Work {
    loop {
        let resyncs = METER.resyncs.get();
        if let Some(work) = work_by_counter() {
            if METER.resyncs.get() == resyncs {
                METER.latest_ns.set(work.ns);
                return work;
            }
            continue;
        }
        let work = resync();
        if METER.resyncs.get() == resyncs + 1 {
            return work;
        }
    }
}

/// How much the guest has worked by now, by the counter; `None` where a resync is due.
#[inline]
fn work_by_counter() -> Option<Work> {
    if !undisturbed::is() {
        return None;
    }
    let offset_ns = METER.offset_ns.get();
    let counter = Counter::now();
    let ns = offset_ns.wrapping_add(counter.ns);
    let host_ns = METER.host_offset_ns.get().wrapping_add(counter.ns);
    compiler_fence(SeqCst);
    let trusted = undisturbed::is() && !counter.is_stale() && ns.wrapping_sub(METER.latest_ns.get()) <= GAP_NS;
    trusted.then_some(Work { ns, host_ns })
}

/// Reads the CPU clocks and the host's, and goes on from them.
#[cold]
fn resync() -> Work {
    let resyncs = METER.resyncs.get();
    let is_measured = measure_counter();
    undisturbed::watch(is_measured);
    compiler_fence(SeqCst);
    let running = METER.running.get();
    if running != 0 {
        charge(running);
    }
    let cpu_ns = kernel_cpu_ns();
    let counter = Counter::now();
    let host_ns = if counter.by_ticks { host_now().as_ns() } else { counter.ns };
    let worked_ns = (cpu_ns + METER.stubs_ns.get()).saturating_sub(METER.left_out_ns.get());
    let ns = worked_ns.max(METER.latest_ns.get());
    METER.offset_ns.set(ns.wrapping_sub(counter.ns));
    METER.host_offset_ns.set(host_ns.wrapping_sub(counter.ns));
    METER.resync_ns.set(counter.ns);
    METER.resync_by_ticks.set(counter.by_ticks);
    METER.latest_ns.set(ns);
    compiler_fence(SeqCst);
    if METER.resyncs.get() == resyncs {
        METER.resyncs.set(resyncs + 1);
    } else {
        // A handler resynced in the middle of this, and what was stored since is older than that.
        undisturbed::watch(false);
    }
    if let Some(page) = page::page() {
        count(&page.work_resyncs);
    }
    Work { ns, host_ns }
}

/// The work of the kernel's own process, without that of stubs: one may run when the kernel's process is taken off their core
/// in the middle of a handler.
pub fn own_ns() -> u64 {
    let ns = work().ns;
    ns.saturating_sub(METER.stubs_ns.get())
}

/// The last `ns` did not count as work: work goes on from where it was before them.
pub fn take_back(ns: u64) {
    METER.left_out_ns.add(ns);
    METER.offset_ns.set(METER.offset_ns.get().wrapping_sub(ns));
    METER.latest_ns.set(METER.latest_ns.get().saturating_sub(ns));
    // Whoever was interrupted by this in the middle of a reading reads again.
    METER.resyncs.add(1);
}

/// Another `ns` of the CPU time until now do not count as work. If they have been read as work already, that is made up for
/// as in a resync.
pub fn leave_out(ns: u64) {
    METER.left_out_ns.add(ns);
    undisturbed::watch(false);
}

/// The kernel lets stub `pid` run.
pub fn stub_runs(pid: c_int) {
    if measure_counter() {
        own_counter::give_up();
    }
    if !METER.metered.get() {
        return;
    }
    if METER.unread.get() == pid {
        // It goes on from where it was read.
        METER.unread.set(0);
    } else {
        read_unread();
    }
    let slot = &METER.stopped[pid as usize % STUB_SLOTS];
    let cpu_ns = if slot.pid.get() == pid { slot.cpu_ns.get() } else { stub_cpu_ns(pid).unwrap_or(0) };
    METER.running_ns.set(cpu_ns);
    METER.running.set(pid);
}

/// Whether what a stub does for its kernel may be read later: work is metered, by the time-stamp counter.
pub fn may_read_later() -> bool {
    METER.metered.get() && METER.ns_per_tick.get() != 0 && own_counter::is_enabled()
}

/// The kernel lets stub `pid` run for itself, where that may be read later.
pub fn stub_runs_for_kernel(pid: c_int) {
    METER.unread_begin_ticks.set(ticks());
    stub_runs(pid);
}

/// The stub that ran for the kernel has stopped: reads its CPU time, unless it is little.
pub fn stub_stopped_for_kernel() {
    if !own_counter::is_enabled() {
        return stub_stopped(); // it was given up as the stub was let run
    }
    let ran_ns = in_ns(ticks().saturating_sub(METER.unread_begin_ticks.get())) + METER.unread_ns.get();
    if ran_ns > UNREAD_NS_MAX {
        return stub_stopped();
    }
    let pid = METER.running.swap(0);
    if pid != 0 {
        let slot = &METER.stopped[pid as usize % STUB_SLOTS];
        slot.pid.set(pid);
        slot.cpu_ns.set(METER.running_ns.get());
        METER.unread.set(pid);
        METER.unread_ns.set(ran_ns);
        undisturbed::watch(false);
    }
}

/// Reads the CPU time that was left unread; none is while a stub runs.
pub fn read_unread() {
    let pid = METER.unread.swap(0);
    if pid != 0 {
        let slot = &METER.stopped[pid as usize % STUB_SLOTS];
        METER.running_ns.set(slot.cpu_ns.get());
        METER.running.set(pid);
        stub_stopped();
    }
}

/// The stub that ran has stopped.
pub fn stub_stopped() {
    let pid = METER.running.swap(0);
    METER.unread_ns.set(0);
    if pid != 0 {
        charge(pid);
        let slot = &METER.stopped[pid as usize % STUB_SLOTS];
        slot.pid.set(pid);
        slot.cpu_ns.set(METER.running_ns.get());
        undisturbed::watch(false);
    }
}

/// CPU time of all stubs up to where one stopped last, nanoseconds.
pub fn stubs_ns() -> u64 {
    METER.stubs_ns.get()
}

/// Adds what the stub `pid` has used since it was read last.
fn charge(pid: c_int) {
    // A stub that has ended has no clock any more.
    if let Some(cpu_ns) = stub_cpu_ns(pid) {
        let before_ns = METER.running_ns.get();
        // Less than before: another process of the same number.
        let used_ns = cpu_ns.checked_sub(before_ns).unwrap_or(cpu_ns);
        METER.running_ns.set(cpu_ns);
        METER.stubs_ns.add(used_ns);
    }
}

/// The CPU time of a stub; `None` when there is no such process.
pub fn stub_cpu_ns(pid: c_int) -> Option<u64> {
    cpu_clock_ns(process_clock(pid))
}

/// The CPU time of the kernel's own process.
pub fn kernel_cpu_ns() -> u64 {
    cpu_clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

fn cpu_clock_ns(clock: libc::clockid_t) -> Option<u64> {
    if let Some(page) = page::page() {
        count(&page.cpu_clock_calls);
    }
    sys::clock_ns(clock)
}

/// The clock id of a process's CPU time (clock_getcpuclockid(3)).
fn process_clock(pid: c_int) -> libc::clockid_t {
    const CPUCLOCK_SCHED: libc::clockid_t = 2;
    (!pid << 3) | CPUCLOCK_SCHED
}

fn in_ns(ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(METER.ns_per_tick.get())) >> 32) as u64
}
