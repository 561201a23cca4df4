//! Programs that wait for a CPU that another has: `interrupts::Contention` has the rule.
//!
//! Whether a task is alone the kernel tells by a function that it exports to modules, which reads two words of its own. When the
//! kernel was entered nobody has to ask the clock: user code takes virtual time by the CPU time of its stub, from the moment
//! at which it was resumed.

use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Contention, Flag, Jobs, Stretch, Word};

use crate::host::page::ClockPage;
use crate::occasions::begins;
use crate::time::{drive, present};

type IsAlone = unsafe extern "C" fn() -> bool;

static CONTENTION: Contention = Contention::none();
static JOBS: Jobs = Jobs::none();
/// Whether the user code that ran last made no system call, but was interrupted.
static INTERRUPTED: Flag = Flag::new(false);
/// When user code was resumed last, virtual nanoseconds; the CPU time of all stubs then, and how many interrupts there had been.
static RESUMED_NS: Word = Word::new(0);
static RESUMED_STUBS_NS: Word = Word::new(0);
static RESUMED_INTERRUPTS: Word = Word::new(0);

/// Whether the present task is the only one that can run; `None` where the kernel does not tell.
pub fn is_alone(page: &ClockPage) -> Option<bool> {
    let function = page.kernel_alone.load(Relaxed);
    // SAFETY: the host has put the address of that function there, which may be called wherever the kernel runs a task.
    (function != 0).then(|| unsafe { transmute::<usize, IsAlone>(function as usize)() })
}

/// The kernel is about to let the stub `pid` run for its program, and has just read the clock. Whether no other program can run,
/// where the kernel tells.
pub fn turns_to(page: &ClockPage, pid: c_int) -> bool {
    let Some(is_alone) = is_alone(page) else { return false };
    let (now_ns, stubs_ns) = (present::latest(page).as_ns(), drive::stubs_ns());
    let used_ns = present::takes(stubs_ns.saturating_sub(RESUMED_STUBS_NS.get()));
    RESUMED_STUBS_NS.set(stubs_ns);
    let entered_ns = RESUMED_NS.swap(now_ns).saturating_add(used_ns).min(now_ns);
    let interrupts = page.interrupts.load(Relaxed);
    CONTENTION.entered(entered_ns, RESUMED_INTERRUPTS.swap(interrupts));
    let since_ns = CONTENTION.since_ns();
    page.record_job(JOBS.turns_to(pid, since_ns, now_ns, INTERRUPTED.get()));
    begins::turns_to(page, pid, since_ns, entered_ns, now_ns);
    record(page, CONTENTION.turns_to(pid, is_alone, now_ns, interrupts));
    is_alone
}

/// The guest idled from one instant, in virtual nanoseconds, to the other.
pub fn idled(page: &ClockPage, begin_ns: u64, end_ns: u64) {
    let interrupts = page.interrupts.load(Relaxed);
    page.record_job(JOBS.idles(begin_ns));
    record(page, CONTENTION.idles(begin_ns, interrupts));
    CONTENTION.entered(end_ns, interrupts);
}

/// The program of the stub `pid`, which runs or is about to, asks, again and again, and nothing has come.
pub fn asks(page: &ClockPage, pid: c_int) {
    let now_ns = present::latest(page).as_ns();
    page.record_job(JOBS.asks(pid, now_ns));
    CONTENTION.asks(pid, now_ns, page.interrupts.load(Relaxed));
}

/// It does something else.
pub fn works(page: &ClockPage, pid: c_int) {
    JOBS.works(pid, present::latest(page).as_ns());
    CONTENTION.works(pid);
}

/// The kernel ends the stub `pid`.
pub fn ended(pid: c_int) {
    CONTENTION.works(pid);
}

/// The user code that ran has entered the kernel, by a system call or because it was interrupted.
pub fn entered(interrupted: bool) {
    INTERRUPTED.set(interrupted);
}

fn record(page: &ClockPage, stretch: Option<Stretch>) {
    if let Some(stretch) = stretch {
        page.record_contention(stretch);
    }
}
