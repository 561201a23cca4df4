//! CPUs of nodes that share the guest: whose work it does, and the sleep of who has worked in advance.
//!
//! `virtual_time::NodeCpu` has the rule. This is what it takes in a stock kernel:
//!
//! **Whose work.** A program joins its node before it is executed (`counter.rs`). From there on its stub is the node's, and
//! so is each stub that the kernel copies from one, as it does for fork and exec (copy_context_skas0): what is copied is
//! what had its registers set last, and no copy comes by `clone`. All work of the guest between two *marks* is
//! that of one owner. A stub that is resumed makes its node the owner, also of the kernel's work at its system call; so what
//! the kernel does on the way from one program to the next is the first one's, and what wakes an idle guest, the
//! next one's. Of user code that is interrupted only its stub's CPU time until then counts: each interruption is work of
//! the kernel's process, and at a low TDF there are many. Interrupts, with all packets that they handle, and sleeps are
//! nobody's: they are counted as *other* work.
//!
//! **The sleep.** It is at the one place where a program can be held up without its or the kernel's noticing: at an entry
//! into the kernel, when all its registers have been read, and nothing was done yet. There the task may sleep as a
//! driver may in a system call; so we call what the kernel exports to modules for that, usleep_range_state. It is of no
//! use after a fault, since the kernel has yet to ask the stub for its address.
//!
//! **The slice.** User code that makes no system call is interrupted for it by the host timer and its stub stopped, as for a
//! tick of the kernel.

use core::ffi::{c_int, c_uint, c_ulong};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU16, AtomicU64, Ordering::Relaxed};

use virtual_time::{Drive, NodeCpu, Tdf, VirtualInstant};

use crate::masks::{exclusively, Exclusive};
use crate::page::{add, ClockPage};
use crate::{drive, present};

/// Host time of work after which a node that has more to do is asked to sleep: long beside what a sleep costs the guest, ten
/// microseconds, and short beside what other nodes notice.
const SLICE_NS: u64 = 100_000;

/// Virtual time by which a system call may come too early; less is not worth a sleep, and stays owed.
const EARLY_NS_MAX: u64 = 10_000;

/// Nodes with a CPU of their own; numbers begin at 1, as 0 is no node.
const NODES_MAX: usize = 8192;

/// Of a stub whose program has joined, and is yet to be executed: nothing is charged for that.
const JOINING: u16 = 1 << 15;

/// Linux's PID_MAX_LIMIT. Of these bytes only pages with a stub in them are ever touched.
const PIDS_MAX: usize = 1 << 22;

/// TASK_UNINTERRUPTIBLE of the kernel (include/linux/sched.h).
const UNINTERRUPTIBLE: c_uint = 2;

type Sleep = unsafe extern "C" fn(c_ulong, c_ulong, c_uint);

static CPUS: Exclusive<[NodeCpu; NODES_MAX]> = Exclusive::new([const { NodeCpu::new(Tdf::ONE) }; NODES_MAX]);
static NODE_OF_STUB: [AtomicU16; PIDS_MAX] = [const { AtomicU16::new(0) }; PIDS_MAX];

/// Whether any program has joined.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The work up to which all is charged.
static MARK_NS: AtomicU64 = AtomicU64::new(0);
/// Virtual now at the last mark, nanoseconds.
static MARK_VIRTUAL_NS: AtomicU64 = AtomicU64::new(0);
/// The CPU time of all stubs when one was resumed last, when an alarm came last, and whether something came in between.
static STUBS_NS: AtomicU64 = AtomicU64::new(0);
static ALARM_STUBS_NS: AtomicU64 = AtomicU64::new(0);
static DISTURBED: AtomicBool = AtomicBool::new(false);
/// The node that present work is for; 0: none.
static OWNER: AtomicU16 = AtomicU16::new(0);
/// Whether the guest has idled since the last program ran, so that the next one's node is charged from the mark on.
static CLAIMED: AtomicBool = AtomicBool::new(false);
/// The stub whose registers the kernel set last: that which it copies, if it does.
static COPIED: AtomicI32 = AtomicI32::new(0);
/// The stub at whose entry its program may sleep once its registers have been read; 0: none.
static ENTERED: AtomicI32 = AtomicI32::new(0);
/// Whether it was interrupted, and makes no system call.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Until when, in virtual nanoseconds, the present slice lasts.
static SLICE_END_NS: AtomicU64 = AtomicU64::new(u64::MAX);

fn cpu(node: u16) -> &'static mut NodeCpu {
    // SAFETY: callers keep no reference across another call of this.
    unsafe { &mut (*CPUS.get())[usize::from(node)] }
}

fn stub(pid: c_int) -> &'static AtomicU16 {
    &NODE_OF_STUB[pid as usize % PIDS_MAX]
}

/// Whether any program has joined a node with a CPU of its own.
pub fn is_active() -> bool {
    ACTIVE.load(Relaxed)
}

/// The program that stub `pid` is about to execute is of this node, whose CPU has this speed in cores of the host.
pub fn join(pid: c_int, node: u64, (host, guest): (u64, u64)) {
    let (true, Ok(speed)) = ((1..NODES_MAX as u64).contains(&node), Tdf::new(host, guest)) else {
        crate::die(b"dilaton clock: the agent named an impossible node\n");
    };
    let node = node as u16;
    if !is_active() {
        drive::meter_work();
        MARK_NS.store(work_ns(), Relaxed);
        ACTIVE.store(true, Relaxed);
    }
    if cpu(node).speed() != speed {
        *cpu(node) = NodeCpu::new(speed);
    }
    stub(pid).store(node | JOINING, Relaxed);
}

/// The kernel sets the registers of stub `pid`.
pub fn registers_set(pid: c_int) {
    COPIED.store(pid, Relaxed);
}

/// The kernel makes a stub that is no copy of another.
pub fn none_copied() {
    COPIED.store(0, Relaxed);
}

/// The stub `pid` is new.
pub fn born(pid: c_int) {
    if is_active() {
        let parent = COPIED.load(Relaxed);
        let node = if parent == 0 { 0 } else { stub(parent).load(Relaxed) & !JOINING };
        stub(pid).store(node, Relaxed);
    }
}

fn work_ns() -> u64 {
    drive::now(Drive::Work).as_ns()
}

/// Charges the work since the last mark to its owner: of what was disturbed, only the CPU time of stubs.
fn mark(page: &ClockPage) {
    let work_ns = work_ns();
    let done_ns = work_ns.saturating_sub(MARK_NS.swap(work_ns, Relaxed));
    MARK_VIRTUAL_NS.store(present::look(page).as_ns(), Relaxed);
    let node = OWNER.load(Relaxed);
    let own_ns = match (node, DISTURBED.swap(false, Relaxed)) {
        (0, _) => 0,
        (_, false) => done_ns,
        (_, true) => done_ns.min(stubs_ns().saturating_sub(STUBS_NS.load(Relaxed))),
    };
    add(&page.other_work_ns, done_ns - own_ns);
    if node != 0 {
        add(&page.nodes_work_ns, own_ns);
        add(&page.nodes_busy_ns, cpu(node).work(own_ns).as_ns());
    }
}

/// The CPU time of all stubs but for what it took one to stop for an alarm.
fn stubs_ns() -> u64 {
    if INTERRUPTED.load(Relaxed) {
        ALARM_STUBS_NS.load(Relaxed)
    } else {
        drive::stubs_ns()
    }
}

/// The kernel resumes the user code of stub `pid`.
pub fn resume(page: &ClockPage, pid: c_int) {
    if !is_active() {
        return;
    }
    let node = stub(pid).load(Relaxed);
    let node = if node & JOINING == 0 { node } else { 0 };
    exclusively(|| {
        let claims = CLAIMED.swap(false, Relaxed);
        if !claims {
            mark(page);
        }
        OWNER.store(node, Relaxed);
        if node != 0 {
            let lost = cpu(node).go_on(VirtualInstant::from_ns(MARK_VIRTUAL_NS.load(Relaxed)));
            add(&page.nodes_lost_ns, lost.as_ns());
            SLICE_END_NS.store(present::after_work(SLICE_NS).as_ns(), Relaxed);
        }
        if claims {
            mark(page);
        }
        STUBS_NS.store(drive::stubs_ns(), Relaxed);
        INTERRUPTED.store(false, Relaxed);
    });
}

/// The program that was to be resumed is not, as the kernel has something else to do before.
pub fn turned_back(page: &ClockPage) {
    let node = OWNER.load(Relaxed);
    if is_active() && node != 0 {
        exclusively(|| {
            mark(page);
            cpu(node).interrupt();
        });
        OWNER.store(0, Relaxed);
    }
}

/// The user code of a stub has stopped.
pub fn stopped(page: &ClockPage) {
    if is_active() {
        SLICE_END_NS.store(u64::MAX, Relaxed);
        exclusively(|| mark(page));
    }
}

/// The stub `pid`, whose user code was resumed, has entered the kernel, by a system call or because it was interrupted.
pub fn entered(pid: c_int, interrupted: bool) {
    if is_active() && OWNER.load(Relaxed) != 0 {
        ENTERED.store(pid, Relaxed);
        INTERRUPTED.store(interrupted, Relaxed);
        if interrupted {
            DISTURBED.store(true, Relaxed);
        }
    }
}

/// All registers of stub `pid` have been read: if it has just entered the kernel, its program sleeps as long as the node's
/// CPU is busy with what it has done.
pub fn registers_read(page: &ClockPage, pid: c_int) {
    if ENTERED.load(Relaxed) != pid || pid == 0 {
        return;
    }
    ENTERED.store(0, Relaxed);
    let node = OWNER.load(Relaxed);
    let interrupted = INTERRUPTED.load(Relaxed);
    let (due, early_ns) = exclusively(|| {
        if interrupted {
            // What the kernel does until it resumes the program is our doing.
            OWNER.store(0, Relaxed);
            cpu(node).interrupt();
        } else {
            mark(page);
        }
        let due = cpu(node).busy_until();
        (due, due.since(present::look(page)).as_ns())
    });
    if early_ns <= EARLY_NS_MAX {
        return;
    }
    OWNER.store(0, Relaxed);
    sleep(page, early_ns);
    exclusively(|| {
        mark(page);
        CLAIMED.store(false, Relaxed);
        OWNER.store(if interrupted { 0 } else { node }, Relaxed);
        if !interrupted {
            add(&page.nodes_lost_ns, cpu(node).wake(due, present::look(page)).as_ns());
        }
    });
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

/// Whether the present slice is over at `now`; that is told once.
pub fn has_ended_slice(now: VirtualInstant) -> bool {
    let is_over = now.as_ns() >= slice_end_ns();
    if is_over {
        SLICE_END_NS.store(u64::MAX, Relaxed);
        alarmed();
    }
    is_over
}

/// When the present slice is over, virtual nanoseconds.
pub fn slice_end_ns() -> u64 {
    SLICE_END_NS.load(Relaxed)
}

/// User code is interrupted, and the clock has just been read: what the stub does from here on is to stop.
fn alarmed() {
    ALARM_STUBS_NS.store(drive::stubs_ns(), Relaxed);
}

/// Runs `handle`, the kernel's handler of an interrupt, of user code or of the kernel, as nobody's work. In a critical
/// section.
pub fn interrupt(page: &ClockPage, is_user_code: bool, handle: impl FnOnce()) {
    if !is_active() {
        return handle();
    }
    if is_user_code {
        alarmed();
        DISTURBED.store(true, Relaxed);
        return handle();
    }
    mark(page);
    let owner = OWNER.swap(0, Relaxed);
    handle();
    mark(page);
    OWNER.store(owner, Relaxed);
}

/// The kernel idles.
pub fn idle(page: &ClockPage) {
    if is_active() {
        exclusively(|| mark(page));
        OWNER.store(0, Relaxed);
        CLAIMED.store(true, Relaxed);
    }
}
