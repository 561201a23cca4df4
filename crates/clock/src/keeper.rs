//! The one clock behind the interposed functions.
//!
//! The kernel reads the clock and sets its timer from ordinary code and from signal handlers that interrupt it anywhere,
//! in the middle of these functions too. Two rules keep this simple:
//!
//! - The timeline is in one of two slots, chosen by the parity of `GENERATION`. A change writes the idle slot and then
//!   moves the generation on. A reader that finds the generation moved after its computation starts again: so it never
//!   uses a torn line, and never returns an instant older than one that a handler has seen meanwhile.
//! - The timer is set by the kernel with its interrupts off, but a User-Mode Linux kernel only *notes* a signal then; the
//!   host delivers it all the same. So an alarm that finds the timer being set leaves it alone and is raised again after.
//!   Everywhere else the timer is touched with SIGALRM blocked: in its handler, in those that mask it, and around idle.
//!
//! The same noting is a trap at idle: the kernel enters its idle loop with interrupts off, and a signal that it has noted but
//! not handled must keep it from sleeping, or it waits for an event that has happened. (The stock code relies on the host
//! timer being off then, and on the next tick for input.) So a signal since the last idle makes idle return at once: the
//! kernel enables interrupts, handles what it had noted, and comes back. SIGIO is blocked with SIGALRM while idle looks.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    compiler_fence, AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst,
};

use virtual_time::{Alarm, GuestTimer, HostInstant, Pace, Timeline, VirtualDuration, VirtualInstant};

use crate::page::{count, ClockPage};
use crate::sys;

static PAGE: AtomicPtr<ClockPage> = AtomicPtr::new(null_mut());
static WAKE_FD: AtomicI32 = AtomicI32::new(-1);
static KERNEL_PID: AtomicI32 = AtomicI32::new(0);

static GENERATION: AtomicUsize = AtomicUsize::new(0);
static LINES: Shared<[Timeline; 2]> =
    Shared::new([Timeline::new(HostInstant::from_ns(0), VirtualInstant::from_ns(0), Pace::Held); 2]);
static CHANGING: AtomicBool = AtomicBool::new(false);
static APPLIED: AtomicU64 = AtomicU64::new(0);

static SETTING: AtomicBool = AtomicBool::new(false);
static ALARM_WAITS: AtomicBool = AtomicBool::new(false);
static TIMER: Shared<GuestTimer> = Shared::new(GuestTimer::new());
static HOST_TIMER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

static ALARM_HANDLER: AtomicUsize = AtomicUsize::new(0);
static INPUT_HANDLER: AtomicUsize = AtomicUsize::new(0);
/// A signal went to the kernel since it idled last.
static NOTED: AtomicBool = AtomicBool::new(false);

/// State of the single-threaded kernel that its signal handlers share, under the rules at the head of this file.
struct Shared<T>(UnsafeCell<T>);

// SAFETY: the kernel is one thread; the rules above keep its handlers from seeing half-written values.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
}

/// Takes over the page. The first command is there already; virtual time begins at 0.
pub fn start(page: &'static ClockPage, wake_fd: c_int) {
    PAGE.store(core::ptr::from_ref(page).cast_mut(), Relaxed);
    WAKE_FD.store(wake_fd, Relaxed);
    // SAFETY: plain system call.
    KERNEL_PID.store(unsafe { libc::getpid() }, Relaxed);
    // The default slack of 50 us would make every idle period that much too long.
    sys::prctl(libc::PR_SET_TIMERSLACK, 1);
    let line = Timeline::new(sys::host_now(), VirtualInstant::from_ns(0), Pace::Held);
    // SAFETY: nothing else runs yet.
    unsafe { *LINES.0.get() = [line; 2] };
    take_command(page);
}

/// The clock page; `None` in a process that is not a guest kernel.
pub fn page() -> Option<&'static ClockPage> {
    // SAFETY: set once, to a mapping that stays.
    unsafe { PAGE.load(Relaxed).as_ref() }
}

/// Whether the caller is the kernel itself, not a helper thread that shares its memory.
pub fn is_kernel() -> bool {
    // SAFETY: plain system call.
    unsafe { libc::getpid() == KERNEL_PID.load(Relaxed) }
}

/// Leaves this process without a clock: a child of the kernel, with a copy of its memory.
pub fn detach() {
    PAGE.store(null_mut(), Relaxed);
}

/// Virtual now; `None` when this process has no clock.
pub fn now() -> Option<VirtualInstant> {
    let page = page()?;
    if page.command_sequence.load(Relaxed) != APPLIED.load(Relaxed) {
        take_command(page);
    }
    count(&page.reads);
    Some(read(&|line, host| line.virtual_at(host)))
}

/// The CLOCK_REALTIME of the guest at virtual instant 0, nanoseconds.
pub fn realtime_base_ns() -> u64 {
    page().map_or(0, |page| page.realtime_base_ns.load(Relaxed))
}

/// Applies `f` to the present line and the host's now, consistently.
fn read<T>(f: &dyn Fn(&Timeline, HostInstant) -> T) -> T {
    loop {
        let generation = GENERATION.load(Relaxed);
        // SAFETY: in bounds; a slot is rewritten only after the generation has moved on, which is checked below.
        let line = unsafe { (*LINES.0.get())[generation % 2] };
        let result = f(&line, sys::host_now());
        compiler_fence(SeqCst);
        if GENERATION.load(Relaxed) == generation {
            return result;
        }
    }
}

/// Takes over a command of the host: time goes on from the present instant at the new pace.
fn take_command(page: &ClockPage) {
    if CHANGING.swap(true, Relaxed) {
        return; // we interrupted ourselves; the change under way reads the command
    }
    if let Some((sequence, pace)) = page.command() {
        if sequence != APPLIED.load(Relaxed) {
            let line = read(&|line, host| line.change(host, pace));
            let generation = GENERATION.load(Relaxed);
            // SAFETY: the idle slot; `CHANGING` keeps a handler from writing it at the same time.
            unsafe { (*LINES.0.get())[(generation + 1) % 2] = line };
            compiler_fence(SeqCst);
            GENERATION.store(generation.wrapping_add(1), Relaxed);
            page.publish(&line);
            APPLIED.store(sequence, Relaxed);
            page.applied_sequence.store(sequence, Relaxed);
            // What the host timer was armed for holds no longer; raising the alarm has it armed for the new pace.
            if !HOST_TIMER.load(Relaxed).is_null() {
                sys::raise(libc::SIGALRM);
            }
        }
    }
    CHANGING.store(false, Relaxed);
}

/// Remembers the host timer behind the guest's clock event device.
pub fn adopt_timer(timer: libc::timer_t) {
    HOST_TIMER.store(timer, Relaxed);
}

/// Sets the guest's timer to `after` from now, then every `interval`; or off when `after` is zero.
pub fn set_timer(page: &ClockPage, after: VirtualDuration, interval: VirtualDuration) {
    count(&page.timers_set);
    let now = now().unwrap_or(VirtualInstant::from_ns(0));
    SETTING.store(true, Relaxed);
    compiler_fence(SeqCst);
    // SAFETY: `SETTING` keeps the alarm away from it.
    let timer = unsafe { &mut *TIMER.0.get() };
    if after.as_ns() == 0 {
        timer.clear();
    } else {
        timer.set(now.plus(after), (interval.as_ns() > 0).then_some(interval));
        arm(page, timer);
    }
    compiler_fence(SeqCst);
    SETTING.store(false, Relaxed);
    if ALARM_WAITS.swap(false, Relaxed) {
        sys::raise(libc::SIGALRM);
    }
}

/// Arms the host timer where that is necessary.
fn arm(page: &ClockPage, timer: &mut GuestTimer) {
    let (line, now) = read(&|line, host| (*line, host));
    if let Some(instant) = timer.arm(now, &line) {
        count(&page.host_timers_armed);
        sys::arm_timer(HOST_TIMER.load(Relaxed), instant);
    }
}

/// A signal whose handler in the kernel goes behind one of ours.
pub struct Adopted {
    kernel: &'static AtomicUsize,
    ours: usize,
}

impl Adopted {
    /// How `signal` is adopted; `None` if it is not.
    pub fn of(signal: c_int) -> Option<Self> {
        match signal {
            libc::SIGALRM => Some(Self { kernel: &ALARM_HANDLER, ours: on_alarm as *const () as usize }),
            libc::SIGIO => Some(Self { kernel: &INPUT_HANDLER, ours: on_input as *const () as usize }),
            _ => None,
        }
    }

    /// Puts ourselves before the kernel's handler at `address`; returns the address of ours.
    pub fn install(&self, address: usize) -> usize {
        self.kernel.store(address, Relaxed);
        // Only now: before a handler is installed, the signal would end the process.
        sys::signal_on_input(WAKE_FD.load(Relaxed), libc::SIGALRM);
        self.ours
    }

    /// The handler as the kernel knows it: its own where it is ours that is installed.
    pub fn seen_by_kernel(&self, address: usize) -> usize {
        if address == self.ours {
            self.kernel.load(Relaxed)
        } else {
            address
        }
    }
}

/// SIGIO: a file descriptor of the kernel's is ready.
extern "C" fn on_input(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    NOTED.store(true, Relaxed);
    // SAFETY: the address that the kernel installed with SA_SIGINFO.
    let kernel_handler = unsafe { sys::handler(INPUT_HANDLER.load(Relaxed)) };
    kernel_handler(signal, info, context);
}

/// SIGALRM: the host timer fired, idle ended, or the host sent a command. Only a deadline that is reached goes on to the
/// kernel's handler.
extern "C" fn on_alarm(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(page) = page() else { return };
    if page.command_sequence.load(Relaxed) != APPLIED.load(Relaxed) {
        sys::drain(WAKE_FD.load(Relaxed));
        take_command(page);
    }
    if SETTING.load(Relaxed) {
        ALARM_WAITS.store(true, Relaxed);
        return;
    }
    // SAFETY: SIGALRM is blocked here, and the kernel is not setting it.
    let timer = unsafe { &mut *TIMER.0.get() };
    let (line, now) = read(&|line, host| (*line, host));
    let alarm = timer.alarm(now, &line);
    arm(page, timer);
    match alarm {
        Alarm::NotYet => count(&page.alarms_not_due),
        Alarm::Due { lateness } => {
            page.record_lateness(lateness.as_ns());
            NOTED.store(true, Relaxed);
            // SAFETY: the address that the kernel installed with SA_SIGINFO.
            let kernel_handler = unsafe { sys::handler(ALARM_HANDLER.load(Relaxed)) };
            kernel_handler(signal, info, context);
        }
    }
}

/// The kernel's idle loop: sleeps under `mask` until the deadline, or until a signal. A held clock has no deadline, nor has
/// a timer that is off. Returns at once when the kernel may have noted a signal that it has not handled.
///
/// # Safety
/// `mask` must point to a signal mask; SIGALRM and SIGIO must be blocked.
pub unsafe fn idle(page: &ClockPage, mask: *const libc::sigset_t) {
    count(&page.idle_waits);
    if NOTED.swap(false, Relaxed) {
        return;
    }
    now(); // takes over a command
           // SAFETY: a copy; SIGALRM is blocked.
    let deadline = unsafe { *TIMER.0.get() }.deadline();
    let left_ns =
        read(&|line, host| deadline.and_then(|deadline| line.host_at(deadline)).map(|due| due.ns_since(host)));
    // SAFETY: the caller's mask.
    let expired = left_ns == Some(0) || unsafe { sys::sleep(left_ns, mask) };
    if expired {
        sys::raise(libc::SIGALRM);
        // SAFETY: the pending signal is delivered under the kernel's own mask: this returns once its handler has run.
        unsafe { sys::sleep(None, mask) };
    }
    // What came during the sleep is handled as soon as the kernel has returned from it.
    NOTED.store(false, Relaxed);
}
