//! CPUs of nodes that share the guest: whose work it does, and the sleep of who has worked in advance.
//!
//! `virtual_time::NodeCpu` has the rule. This is what it takes in a stock kernel:
//!
//! **Whose work.** A program joins its node before it is executed (`programs/counter.rs`). From there on its stub is
//! the node's, and so is each stub that the kernel makes when the program calls fork or exec (`nodes/calls.rs`). All
//! work of the guest between two *marks* is that of one owner. A stub that is resumed makes its node the owner, also of
//! the kernel's work at its system call; so what the kernel does on the way from one program to the next is the first
//! one's, and what wakes an idle guest, the next one's. Of user code that is interrupted only its stub's CPU time until
//! then counts: each interruption is work of the kernel's process, and at a low TDF there are many. Interrupts, with
//! all packets that they handle, and sleeps are nobody's: they are counted as *other* work.
//!
//! **The sleep.** It is at the one place where a program can be held up without its or the kernel's noticing: at an entry
//! into the kernel, when all its registers have been read, and nothing was done yet. There the task may sleep as a
//! driver may in a system call; so we call what the kernel exports to modules for that, usleep_range_state. It is of no
//! use after a fault, since the kernel has yet to ask the stub for its address.
//!
//! Not at futex(2): programs of a node that wait for each other, as threads for a lock, are to find who has the CPU at work,
//! not asleep. If the one that lets a lock go slept at each of its calls, they would take turns at each, and all of that
//! is work: 0.34 s became 2.4. Nobody else sees these calls, so that they may be as early as user code, by a slice.
//!
//! **The slice.** User code that makes no system call is interrupted for it by the host timer and its stub stopped, as for a
//! tick of the kernel.

use core::ffi::{c_int, c_uint, c_ulong};
use core::mem::transmute;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Flag, Id, Small, Word};
use virtual_time::{Drive, NodeCpu, Tdf, VirtualInstant};

use crate::host::page::{add, ClockPage};
use crate::kernel::masks::{exclusively, Exclusive};
use crate::nodes::calls;
use crate::time::{drive, present};

/// A node that has worked for so long, of host time, and has more to do is asked to sleep. That is long beside what a sleep
/// costs the guest, ten microseconds, and short beside what other nodes notice.
const SLICE_NS: u64 = 100_000;

/// A system call may come too early by this much virtual time. It is not worth a sleep, and stays owed.
const EARLY_NS_MAX: u64 = 10_000;

/// Who lets others go first sleeps for so much work of the guest, which is more than it takes to turn to another program and to resume
/// it. If its timer came before, that one would be stopped before it runs, and the kernel would turn back: at a small TDF so for ten
/// milliseconds.
const AWAY_NS: u64 = 50_000;

/// Nodes with a CPU of their own; numbers begin at 1, as 0 is no node.
const NODES_MAX: usize = 8192;

/// Marks a stub whose program has joined a node and is yet to be executed. Nothing is charged for that.
const JOINING: u16 = 1 << 15;

/// Linux's PID_MAX_LIMIT. Of these bytes only pages with a stub in them are ever touched.
const PIDS_MAX: usize = 1 << 22;

/// TASK_UNINTERRUPTIBLE of the kernel (include/linux/sched.h).
const UNINTERRUPTIBLE: c_uint = 2;

type Sleep = unsafe extern "C" fn(c_ulong, c_ulong, c_uint);

static CPUS: Exclusive<[NodeCpu; NODES_MAX]> = Exclusive::new([const { NodeCpu::new(Tdf::ONE) }; NODES_MAX]);
/// Whether a node's CPU has its speed: by the first program that joins, or by who sets it.
static HAS_SPEED: [Flag; NODES_MAX] = [const { Flag::new(false) }; NODES_MAX];
static NODE_OF_STUB: [Small; PIDS_MAX] = [const { Small::new(0) }; PIDS_MAX];

/// Whose work the guest does. Numbers of nodes and stubs are 0 where there is none.
struct Shares {
    /// Whether any program has joined.
    active: Flag,
    /// All work up to here is charged.
    mark_ns: Word,
    /// Virtual now at the last mark, nanoseconds.
    mark_virtual_ns: Word,
    /// The CPU time of all stubs when one was resumed last, when an alarm came last, and whether something came in between.
    stubs_ns: Word,
    alarm_stubs_ns: Word,
    disturbed: Flag,
    /// The node that present work is for.
    owner: Small,
    /// Whether the guest has idled since the last program ran, so that the next one's node is charged from the mark on.
    claimed: Flag,
    /// The stub at whose entry its program may sleep once its registers have been read.
    entered: Id,
    /// Whether that stub was interrupted, and makes no system call.
    interrupted: Flag,
    /// Whether it calls futex(2).
    waits_for_own: Flag,
    /// The end of the present slice, in virtual nanoseconds.
    slice_end_ns: Word,
}

static SHARES: Shares = Shares {
    active: Flag::new(false),
    mark_ns: Word::new(0),
    mark_virtual_ns: Word::new(0),
    stubs_ns: Word::new(0),
    alarm_stubs_ns: Word::new(0),
    disturbed: Flag::new(false),
    owner: Small::new(0),
    claimed: Flag::new(false),
    entered: Id::new(0),
    interrupted: Flag::new(false),
    waits_for_own: Flag::new(false),
    slice_end_ns: Word::new(u64::MAX),
};

fn cpu(node: u16) -> &'static mut NodeCpu {
    // SAFETY: callers keep no reference across another call of this.
    unsafe { &mut (*CPUS.get())[usize::from(node)] }
}

fn stub(pid: c_int) -> &'static Small {
    &NODE_OF_STUB[pid as usize % PIDS_MAX]
}

/// Whether any program has joined a node with a CPU of its own.
pub fn is_active() -> bool {
    SHARES.active.get()
}

/// The program that stub `pid` is about to execute is of this node, whose CPU has this speed in cores of the host.
pub fn join(pid: c_int, node: u64, (host, guest): (u64, u64)) {
    let (node, speed) = possible(node, (host, guest));
    if !is_active() {
        drive::meter_work();
        calls::start();
        SHARES.mark_ns.set(work_ns());
        SHARES.active.set(true);
    }
    // Who has set another one meanwhile means the programs that come later, too.
    if !HAS_SPEED[usize::from(node)].get() {
        give_speed(node, speed);
    }
    stub(pid).set(node | JOINING);
}

/// The CPU of this node has another speed from now on. What it has done, and is busy with, stays as it was.
pub fn set_speed(node: u64, speed: (u64, u64)) {
    let (node, speed) = possible(node, speed);
    exclusively(|| give_speed(node, speed));
}

fn give_speed(node: u16, speed: Tdf) {
    HAS_SPEED[usize::from(node)].set(true);
    cpu(node).set_speed(speed);
}

fn possible(node: u64, (host, guest): (u64, u64)) -> (u16, Tdf) {
    let (true, Ok(speed)) = ((1..NODES_MAX as u64).contains(&node), Tdf::new(host, guest)) else {
        crate::die(b"dilaton clock: the agent named an impossible node\n");
    };
    (node as u16, speed)
}

/// The program of stub `pid` has entered the kernel, by that system call if by any.
pub fn entered_by(pid: c_int, system_call: i64) {
    if is_active() {
        calls::entered(pid, system_call);
        SHARES.waits_for_own.set(system_call == libc::SYS_futex);
    }
}

/// The stub `pid` is new.
pub fn born(pid: c_int) {
    if is_active() {
        let node = calls::take_parent().map_or(0, |parent| stub(parent).get() & !JOINING);
        stub(pid).set(node);
    }
}

/// The kernel ends the stub `pid`.
pub fn ended(pid: c_int) {
    if is_active() {
        stub(pid).set(0);
    }
}

fn work_ns() -> u64 {
    drive::now(Drive::Work).as_ns()
}

/// Charges the work since the last mark to its owner. If something came in between, only the CPU time of stubs is charged.
fn mark(page: &ClockPage) {
    let work_ns = work_ns();
    let done_ns = work_ns.saturating_sub(SHARES.mark_ns.swap(work_ns));
    SHARES.mark_virtual_ns.set(present::look(page).as_ns());
    let node = SHARES.owner.get();
    let own_ns = match (node, SHARES.disturbed.take()) {
        (0, _) => 0,
        (_, false) => done_ns,
        (_, true) => done_ns.min(stubs_ns().saturating_sub(SHARES.stubs_ns.get())),
    };
    add(&page.other_work_ns, done_ns - own_ns);
    if node != 0 {
        add(&page.nodes_work_ns, own_ns);
        add(&page.nodes_busy_ns, cpu(node).work(own_ns).as_ns());
    }
}

/// The CPU time of all stubs, without what it took one to stop for an alarm.
fn stubs_ns() -> u64 {
    if SHARES.interrupted.get() {
        SHARES.alarm_stubs_ns.get()
    } else {
        drive::stubs_ns()
    }
}

/// The kernel resumes the user code of stub `pid`.
pub fn resume(page: &ClockPage, pid: c_int) {
    if !is_active() {
        return;
    }
    let node = stub(pid).get();
    let node = if node & JOINING == 0 { node } else { 0 };
    exclusively(|| {
        let claims = SHARES.claimed.take();
        if !claims {
            mark(page);
        }
        SHARES.owner.set(node);
        if node != 0 {
            let lost = cpu(node).go_on(VirtualInstant::from_ns(SHARES.mark_virtual_ns.get()));
            add(&page.nodes_lost_ns, lost.as_ns());
            SHARES.slice_end_ns.set(present::after_work(SLICE_NS).as_ns());
        }
        if claims {
            mark(page);
        }
        SHARES.stubs_ns.set(drive::stubs_ns());
        SHARES.interrupted.set(false);
    });
}

/// The stub `pid` that was to be resumed is not resumed, as the kernel has something else to do before. Its program has more to
/// do; that of another node, whose the work was before, may sleep for as long as it likes, and loses nothing by that.
pub fn turned_back(page: &ClockPage, pid: c_int) {
    let node = SHARES.owner.get();
    if is_active() && node != 0 {
        exclusively(|| {
            mark(page);
            if stub(pid).get() == node {
                cpu(node).interrupt();
            }
        });
        SHARES.owner.set(0);
    }
}

/// The user code of a stub has stopped.
pub fn stopped(page: &ClockPage) {
    if is_active() {
        SHARES.slice_end_ns.set(u64::MAX);
        exclusively(|| mark(page));
    }
}

/// The stub `pid`, whose user code was resumed, has entered the kernel, by a system call or because it was interrupted.
pub fn entered(pid: c_int, interrupted: bool) {
    if is_active() && SHARES.owner.get() != 0 {
        SHARES.entered.set(pid);
        SHARES.interrupted.set(interrupted);
        if interrupted {
            SHARES.disturbed.set(true);
        }
    }
}

/// All registers of stub `pid` have been read: if it has just entered the kernel, its program sleeps as long as the node's
/// CPU is busy with what it has done.
pub fn registers_read(page: &ClockPage, pid: c_int) {
    if SHARES.entered.get() != pid || pid == 0 {
        return;
    }
    SHARES.entered.set(0);
    let node = SHARES.owner.get();
    let interrupted = SHARES.interrupted.get();
    let (due, early_ns, early_ns_max) = exclusively(|| {
        if interrupted {
            // What the kernel does until it resumes the program is our doing.
            SHARES.owner.set(0);
            cpu(node).interrupt();
        } else {
            mark(page);
        }
        let due = cpu(node).busy_until();
        let may = if SHARES.waits_for_own.get() { cpu(node).takes(SLICE_NS).as_ns() } else { EARLY_NS_MAX };
        (due, due.since(present::look(page)).as_ns(), may)
    });
    if early_ns <= early_ns_max {
        return;
    }
    SHARES.owner.set(0);
    sleep(page, early_ns);
    exclusively(|| {
        mark(page);
        SHARES.claimed.set(false);
        SHARES.owner.set(if interrupted { 0 } else { node });
        if !interrupted {
            add(&page.nodes_lost_ns, cpu(node).wake(due, present::look(page)).as_ns());
        }
    });
}

/// All registers of a stub have been read that has just entered the kernel: its program lets others go first that can run, and
/// goes on after them. Where the kernel does not tell by what it sleeps, it goes on at once.
pub fn give_way(page: &ClockPage) {
    if page.kernel_sleep.load(Relaxed) == 0 {
        return;
    }
    let away_ns = present::takes(AWAY_NS).max(1);
    if !is_active() {
        return sleep(page, away_ns);
    }
    exclusively(|| mark(page));
    let node = SHARES.owner.swap(0);
    sleep(page, away_ns);
    exclusively(|| mark(page));
    SHARES.claimed.set(false);
    SHARES.owner.set(node);
}

/// Lets the present task of the kernel sleep for so long in virtual time.
fn sleep(page: &ClockPage, ns: u64) {
    let us = present::face().own_ns(ns).div_ceil(1000) as c_ulong;
    // SAFETY: the host has put the address of that function there, which may be called where a task may sleep: here the
    // kernel is between an entry of user code and what it does about it, where it holds nothing.
    unsafe {
        let sleep: Sleep = transmute(page.kernel_sleep.load(Relaxed) as usize);
        sleep(us, us, UNINTERRUPTIBLE);
    }
}

/// Whether the present slice is over at `now`. Only the first call after its end says so.
pub fn has_ended_slice(now: VirtualInstant) -> bool {
    let is_over = now.as_ns() >= slice_end_ns();
    if is_over {
        SHARES.slice_end_ns.set(u64::MAX);
        alarmed();
    }
    is_over
}

/// When the present slice is over, virtual nanoseconds.
pub fn slice_end_ns() -> u64 {
    SHARES.slice_end_ns.get()
}

/// User code is interrupted, and the clock has just been read. What the stub does from here on is to stop.
fn alarmed() {
    SHARES.alarm_stubs_ns.set(drive::stubs_ns());
}

/// Runs `handle`, the kernel's handler of an interrupt, of user code or of the kernel, as nobody's work. In a critical
/// section.
pub fn interrupt(page: &ClockPage, is_user_code: bool, handle: impl FnOnce()) {
    if !is_active() {
        return handle();
    }
    if is_user_code {
        alarmed();
        SHARES.disturbed.set(true);
        return handle();
    }
    mark(page);
    let owner = SHARES.owner.swap(0);
    handle();
    mark(page);
    SHARES.owner.set(owner);
}

/// The work of all programs ends, as the kernel idles.
pub fn work_ends(page: &ClockPage) {
    if is_active() {
        exclusively(|| mark(page));
        SHARES.owner.set(0);
        SHARES.claimed.set(true);
    }
}
