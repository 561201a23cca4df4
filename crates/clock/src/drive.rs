//! What drives virtual time: the host's monotonic clock, the work that the guest does, or the steps that it makes.
//!
//! *Work* is CPU time: that of the kernel's process and of its stubs, the processes in which user code runs, one at a
//! time. It does not advance while the guest waits for a core of the host, so other load does not disturb the guest.
//!
//! **Cost.** The kernel reads its clock a dozen times a packet, and reading a CPU clock takes a system call. So between
//! such readings ("resyncs") the time-stamp counter is read instead, which is right as long as the process stays on its
//! core. Whether it has is told by a *restartable sequence* (rseq(2)): the host kernel clears the sequence's pointer
//! whenever it takes the process off the CPU, or interrupts it with a signal. The sequence itself is never entered; its
//! pointer is all that is needed. So a reading is one counter, one load, and a multiplication.
//!
//! **Error.** The counter goes on in interrupts of the host and while a hypervisor has taken the core away, and the CPU
//! clock may not count these. Nor does every host tell of a core that was given away in a system call: Linux 6.19 clears the
//! pointer only where user code was interrupted. So a reading is a resync too when more than [`GAP_NS`] have passed since
//! the one before, and at the latest every [`TRUST_TICKS`]. A resync never takes time back: what was read too much is made
//! up for while nothing reads the clock, as while user code runs. Where the host has no rseq every reading is a resync, and
//! so is each of the first 20 ms, over which the counter is measured.
//!
//! **Stubs.** Exactly one process of a guest runs at a time. A stub's CPU clock is read when it has stopped, and in a
//! handler that interrupts its run.
//!
//! *Steps* are clock readings of the kernel, and entries of user code into it: a nanosecond for the one, which
//! shifts no packet; a hundred for the other, what a system call takes on real hardware, and a microsecond when the guest
//! has long been busy. They make loops end that wait for time to pass, and depend on nothing but what the guest does.
//!
//! Handlers interrupt everything here. All state is single words; a reader that was interrupted finds `RESYNCS` moved and
//! starts again, and an interrupted resync finds the same and lets the next reader resync once more.

use core::arch::x86_64::_rdtsc;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ptr::addr_of_mut;
use core::sync::atomic::{compiler_fence, AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use virtual_time::{Drive, DriveInstant, HostInstant, Now};

use crate::page::count;
use crate::{page, sys};

/// What a clock reading of the kernel costs on the event drive.
const READING_NS: u64 = 1;

/// What an entry of user code into the kernel costs on the event drive.
const ENTRY_NS: u64 = 100;

/// The same for a guest that has been busy for [`BUSY_ENTRIES`].
const BUSY_ENTRY_NS: u64 = 1_000;

/// So many entries since it idled last, a millisecond: more than programs take to start. What goes on after that mostly
/// asks again and again whether something has happened, and does so until virtual time gets there.
const BUSY_ENTRIES: u64 = 10_000;

/// Host time over which the counter is measured: the doubt of 100 ns in two readings of both clocks is then 5 ppm.
const MEASURED_NS: u64 = 20_000_000;

/// How many pairs of readings are made for one.
const PAIRS: usize = 4;

/// Counter ticks after which a resync is due: about 1 ms of any processor.
const TRUST_TICKS: u64 = 3_000_000;

/// Between two readings, more than the kernel mostly works and less than it takes to come back to a core.
const GAP_NS: u64 = 5_000;

/// Stubs whose CPU time is remembered while they do not run; others are read once more.
const STUB_SLOTS: usize = 64;

/// Work at counter zero: work is this plus the counter in nanoseconds, wrapping.
static OFFSET_NS: AtomicU64 = AtomicU64::new(0);
/// The same for the host's clock, so that one reading of the counter tells both.
static HOST_OFFSET_NS: AtomicU64 = AtomicU64::new(0);
static RESYNC_TICKS: AtomicU64 = AtomicU64::new(0);
static RESYNCS: AtomicU64 = AtomicU64::new(0);
/// The latest reading, which no later one falls below.
static LATEST_NS: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds per counter tick, in units of 2^-32.
static NS_PER_TICK: AtomicU64 = AtomicU64::new(0);
/// Whether work is metered: it costs two system calls for every entry into the kernel.
static METERED: AtomicBool = AtomicBool::new(false);
static BEGIN_TICKS: AtomicU64 = AtomicU64::new(0);
static BEGIN_HOST_NS: AtomicU64 = AtomicU64::new(0);

/// The steps made so far, nanoseconds.
static STEPS_NS: AtomicU64 = AtomicU64::new(0);
/// Entries since the kernel idled last.
static ENTRIES: AtomicU64 = AtomicU64::new(0);

/// CPU time that is not the guest's work.
static LEFT_OUT_NS: AtomicU64 = AtomicU64::new(0);
/// CPU time of all stubs up to where it was read last.
static STUBS_NS: AtomicU64 = AtomicU64::new(0);
/// The stub that runs, or 0, and its CPU time as read last.
static RUNNING: AtomicI32 = AtomicI32::new(0);
static RUNNING_NS: AtomicU64 = AtomicU64::new(0);
static STOPPED: [StoppedStub; STUB_SLOTS] =
    [const { StoppedStub { pid: AtomicI32::new(0), cpu_ns: AtomicU64::new(0) } }; STUB_SLOTS];

struct StoppedStub {
    pid: AtomicI32,
    cpu_ns: AtomicU64,
}

/// struct rseq of the host kernel (include/uapi/linux/rseq.h), in its first size.
#[repr(C, align(32))]
struct Rseq {
    cpu_id_start: u32,
    cpu_id: u32,
    sequence: u64,
    rest: [u32; 4],
}

/// struct rseq_cs: a sequence of no instructions that we run, with the signature that the host checks before its end.
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: u64,
    length: u64,
    abort: u64,
}

struct Shared<T>(UnsafeCell<T>);
// SAFETY: written at start by the only thread, and then by the host kernel on its behalf.
unsafe impl<T> Sync for Shared<T> {}

const SIGNATURE: u32 = 0x5305_3053;
static SIGNED: [u32; 2] = [SIGNATURE, 0];
static RSEQ: Shared<Rseq> = Shared(UnsafeCell::new(Rseq { cpu_id_start: 0, cpu_id: 0, sequence: 0, rest: [0; 4] }));
static SEQUENCE: Shared<Sequence> =
    Shared(UnsafeCell::new(Sequence { version: 0, flags: 0, start: 0, length: 1, abort: 0 }));

/// Prepares both drives; the counter is measured against the host's clock from here on.
pub fn start() {
    let (begin_ticks, begin_host_ns) = counter_and_host();
    BEGIN_TICKS.store(begin_ticks, Relaxed);
    BEGIN_HOST_NS.store(begin_host_ns, Relaxed);
    // SAFETY: the structures are static; nothing else uses them yet.
    unsafe {
        let sequence = SEQUENCE.0.get();
        (*sequence).start = sequence as u64;
        (*sequence).abort = (&raw const SIGNED[1]) as u64;
        sys::rseq(RSEQ.0.get().cast(), false, SIGNATURE);
    }
}

/// In a new child of the kernel: its memory will not have the structure that the host kernel writes to.
pub fn detach() {
    // SAFETY: what was registered, if it was.
    unsafe { sys::rseq(RSEQ.0.get().cast(), true, SIGNATURE) };
}

/// Begins to meter work, if that is not being done yet.
pub fn meter_work() {
    if !METERED.load(Relaxed) {
        METERED.store(true, Relaxed);
        // Readings so far were of a counter that may not have been measured.
        watch(false);
    }
}

/// Whether work is metered.
pub fn is_metered() -> bool {
    METERED.load(Relaxed)
}

/// Measures the counter against the host's clock, once, when there is enough to measure; whether it has been measured.
fn measure_counter() -> bool {
    if NS_PER_TICK.load(Relaxed) == 0 {
        if sys::host_now().as_ns() - BEGIN_HOST_NS.load(Relaxed) < MEASURED_NS {
            return false;
        }
        let (end_ticks, end_host_ns) = counter_and_host();
        let elapsed_ns = end_host_ns - BEGIN_HOST_NS.load(Relaxed);
        let elapsed_ticks = end_ticks - BEGIN_TICKS.load(Relaxed);
        NS_PER_TICK.store(((u128::from(elapsed_ns) << 32) / u128::from(elapsed_ticks.max(1))) as u64, Relaxed);
    }
    true
}

/// The counter and the host's clock, nanoseconds, at one moment. The host may take the core away between two readings, for
/// milliseconds: of some pairs that which took least did not wait.
fn counter_and_host() -> (u64, u64) {
    let pairs = (0..PAIRS).map(|_| {
        let begin = ticks();
        let host_ns = sys::host_now().as_ns();
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
    ((u128::from(reading_ns) << 32) / u128::from(NS_PER_TICK.load(Relaxed))) as u64
}

/// The present instant of a drive.
pub fn now(drive: Drive) -> DriveInstant {
    DriveInstant::from_ns(match drive {
        Drive::Wall => sys::host_now().as_ns(),
        Drive::Work => work().ns,
        Drive::Event => STEPS_NS.load(Relaxed),
    })
}

/// The present moment by the host's clock and by a drive.
pub fn both(drive: Drive) -> Now {
    match drive {
        Drive::Wall => {
            let host = sys::host_now();
            Now { host, drive: DriveInstant::from_ns(host.as_ns()) }
        }
        Drive::Work => {
            let work = work();
            let host_ns = HOST_OFFSET_NS.load(Relaxed).wrapping_add(work.counter_ns);
            Now { host: HostInstant::from_ns(host_ns), drive: DriveInstant::from_ns(work.ns) }
        }
        Drive::Event => Now { host: sys::host_now(), drive: now(drive) },
    }
}

/// The kernel reads its clock.
pub fn step_reading() {
    STEPS_NS.store(STEPS_NS.load(Relaxed) + READING_NS, Relaxed);
}

/// The steps made so far, nanoseconds.
pub fn steps_ns() -> u64 {
    STEPS_NS.load(Relaxed)
}

/// User code has entered the kernel.
pub fn step_entry() {
    let entries = ENTRIES.load(Relaxed);
    let step_ns = if entries < BUSY_ENTRIES { ENTRY_NS } else { BUSY_ENTRY_NS };
    ENTRIES.store(entries + 1, Relaxed);
    STEPS_NS.store(STEPS_NS.load(Relaxed) + step_ns, Relaxed);
}

/// The kernel idles.
pub fn idles() {
    ENTRIES.store(0, Relaxed);
}

/// CPU time that the guest has used, and where the counter was then.
struct Work {
    ns: u64,
    counter_ns: u64,
}

/// How much the guest has worked by now.
#[inline]
fn work() -> Work {
    loop {
        let resyncs = RESYNCS.load(Relaxed);
        let offset_ns = OFFSET_NS.load(Relaxed);
        let now = ticks();
        let counter_ns = in_ns(now);
        let ns = offset_ns.wrapping_add(counter_ns);
        compiler_fence(SeqCst);
        let is_stale = now.wrapping_sub(RESYNC_TICKS.load(Relaxed)) > TRUST_TICKS;
        if !undisturbed() || is_stale || ns.wrapping_sub(LATEST_NS.load(Relaxed)) > GAP_NS {
            let work = resync();
            if RESYNCS.load(Relaxed) == resyncs + 1 {
                return work;
            }
            continue;
        }
        if RESYNCS.load(Relaxed) == resyncs {
            LATEST_NS.store(ns, Relaxed);
            return Work { ns, counter_ns };
        }
    }
}

/// Reads the CPU clocks and the host's, and goes on from them.
#[cold]
fn resync() -> Work {
    let resyncs = RESYNCS.load(Relaxed);
    let is_measured = measure_counter();
    watch(is_measured);
    compiler_fence(SeqCst);
    let running = RUNNING.load(Relaxed);
    if running != 0 {
        charge(running);
    }
    let cpu_ns = sys::cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0);
    let host_ns = sys::host_now().as_ns();
    let now = ticks();
    let counter_ns = in_ns(now);
    let worked_ns = (cpu_ns + STUBS_NS.load(Relaxed)).saturating_sub(LEFT_OUT_NS.load(Relaxed));
    let ns = worked_ns.max(LATEST_NS.load(Relaxed));
    OFFSET_NS.store(ns.wrapping_sub(counter_ns), Relaxed);
    HOST_OFFSET_NS.store(host_ns.wrapping_sub(counter_ns), Relaxed);
    RESYNC_TICKS.store(now, Relaxed);
    LATEST_NS.store(ns, Relaxed);
    compiler_fence(SeqCst);
    if RESYNCS.load(Relaxed) == resyncs {
        RESYNCS.store(resyncs + 1, Relaxed);
    } else {
        // A handler resynced in the middle of this, and what was stored since is older than that.
        watch(false);
    }
    if let Some(page) = page::page() {
        count(&page.work_resyncs);
    }
    Work { ns, counter_ns }
}

/// The work of the kernel's own process. What a stub has done is not in it, which may run when this one is taken off their
/// core in the middle of a handler.
pub fn own_ns() -> u64 {
    let ns = work().ns;
    ns.saturating_sub(STUBS_NS.load(Relaxed))
}

/// The last `ns` of work were none: it goes on from before them.
pub fn take_back(ns: u64) {
    LEFT_OUT_NS.store(LEFT_OUT_NS.load(Relaxed) + ns, Relaxed);
    OFFSET_NS.store(OFFSET_NS.load(Relaxed).wrapping_sub(ns), Relaxed);
    LATEST_NS.store(LATEST_NS.load(Relaxed).saturating_sub(ns), Relaxed);
    // Whoever was interrupted by this in the middle of a reading reads again.
    RESYNCS.store(RESYNCS.load(Relaxed) + 1, Relaxed);
}

/// Of the CPU time until now `ns` more are not work. What was read of it is made up for as in a resync.
pub fn leave_out(ns: u64) {
    LEFT_OUT_NS.store(LEFT_OUT_NS.load(Relaxed) + ns, Relaxed);
    watch(false);
}

/// The kernel lets stub `pid` run.
pub fn stub_runs(pid: c_int) {
    if !METERED.load(Relaxed) {
        return;
    }
    let slot = &STOPPED[pid as usize % STUB_SLOTS];
    let cpu_ns = if slot.pid.load(Relaxed) == pid { slot.cpu_ns.load(Relaxed) } else { stub_cpu_ns(pid).unwrap_or(0) };
    RUNNING_NS.store(cpu_ns, Relaxed);
    RUNNING.store(pid, Relaxed);
}

/// The stub that ran has stopped.
pub fn stub_stopped() {
    let pid = RUNNING.swap(0, Relaxed);
    if pid != 0 {
        charge(pid);
        let slot = &STOPPED[pid as usize % STUB_SLOTS];
        slot.pid.store(pid, Relaxed);
        slot.cpu_ns.store(RUNNING_NS.load(Relaxed), Relaxed);
        watch(false);
    }
}

/// CPU time of all stubs up to where one stopped last, nanoseconds.
pub fn stubs_ns() -> u64 {
    STUBS_NS.load(Relaxed)
}

/// Adds what the stub `pid` has used since it was read last.
fn charge(pid: c_int) {
    // A stub that has ended has no clock any more.
    if let Some(cpu_ns) = stub_cpu_ns(pid) {
        let before_ns = RUNNING_NS.load(Relaxed);
        // Less than before: another process of the same number.
        let used_ns = cpu_ns.checked_sub(before_ns).unwrap_or(cpu_ns);
        RUNNING_NS.store(cpu_ns, Relaxed);
        STUBS_NS.store(STUBS_NS.load(Relaxed) + used_ns, Relaxed);
    }
}

/// The CPU time of a stub; `None` when there is no such process.
pub fn stub_cpu_ns(pid: c_int) -> Option<u64> {
    sys::cpu_ns(process_clock(pid))
}

/// The clock id of a process's CPU time (clock_getcpuclockid(3)).
fn process_clock(pid: c_int) -> libc::clockid_t {
    const CPUCLOCK_SCHED: libc::clockid_t = 2;
    (!pid << 3) | CPUCLOCK_SCHED
}

/// Whether the process has been on its core, without a signal, since [`watch`].
fn undisturbed() -> bool {
    // SAFETY: the structure is static; the host kernel writes it while we do not run.
    unsafe { addr_of_mut!((*RSEQ.0.get()).sequence).read_volatile() != 0 }
}

/// Begins to watch for disturbances, or forces a resync.
fn watch(begin: bool) {
    let sequence = if begin { SEQUENCE.0.get() as u64 } else { 0 };
    // SAFETY: as in `undisturbed`.
    unsafe { addr_of_mut!((*RSEQ.0.get()).sequence).write_volatile(sequence) };
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { _rdtsc() }
}

fn in_ns(ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(NS_PER_TICK.load(Relaxed))) >> 32) as u64
}
