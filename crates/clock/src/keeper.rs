//! The one clock behind the interposed functions, as the kernel sees it: its readings, its timer, and the commands of the
//! host.
//!
//! The kernel reads the clock and sets its timer from ordinary code and from signal handlers that interrupt it anywhere,
//! in the middle of these functions too. So the clock may change under who reads it (`present.rs`), and the timer is touched
//! in a critical section (`masks.rs`) only.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU64,
    Ordering::{Relaxed, Release},
};

use virtual_time::{user_slack_ns, Alarm, Drive, GuestTimer, Others, Sleep, VirtualInstant};

use crate::masks::{exclusively, Exclusive};
use crate::page::{count, ClockPage};
use crate::present::{change, face, is_event, look};
use crate::{
    bound, delivery, disks, drive, entropy, input, interruption, page, present, rest, shares, spin, standing, sys,
};

/// How late, in host time, the host timer may interrupt kernel code: it is only the backstop behind the clock readings, of
/// which a busy kernel makes one a microsecond, for code that waits for a tick without reading the clock.
pub const KERNEL_SLACK_NS: u64 = 200_000;

/// How long, in host time, a guest runs on before it is interrupted for the others' sake alone (`bound.rs`). In a virtual
/// machine an interruption takes up to 40 us, of which more than half cannot be told from the guest's work. At short
/// lookaheads a guest that computes would otherwise do little else.
const REST_NS: u64 = 200_000;

static WAKE_FD: AtomicI32 = AtomicI32::new(-1);
static KERNEL_PID: AtomicI32 = AtomicI32::new(0);

static APPLIED: AtomicU64 = AtomicU64::new(0);

static TIMER: Exclusive<GuestTimer> = Exclusive::new(GuestTimer::new());
/// The timer's deadline, nanoseconds; `OFF` when there is none. For a quick look without entering a critical section.
static DEADLINE_NS: AtomicU64 = AtomicU64::new(OFF);
static HOST_TIMER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

const OFF: u64 = u64::MAX;

/// Takes over the page. The first command is there already; virtual time begins at 0.
pub fn start(page: &'static ClockPage, wake_fd: c_int) {
    WAKE_FD.store(wake_fd, Relaxed);
    // SAFETY: plain system call.
    KERNEL_PID.store(unsafe { libc::getpid() }, Relaxed);
    // The default slack of 50 us would make every idle period that much too long.
    sys::prctl(libc::PR_SET_TIMERSLACK, 1);
    page.deadline_ns.store(OFF, Relaxed);
    page.user_slack_ns.store(user_slack_ns(interruption::measured_ns()), Relaxed);
    drive::start();
    entropy::start(page.seed.load(Relaxed));
    present::start(page);
    take_command(page);
}

/// Whether the caller's parent is the kernel, which is therefore alive.
pub fn is_child_of_kernel() -> bool {
    // SAFETY: plain system call.
    unsafe { libc::getppid() == KERNEL_PID.load(Relaxed) }
}

/// Leaves this process without a clock: a child of the kernel, with a copy of its memory.
pub fn detach() {
    page::forget();
    drive::detach();
}

/// What the kernel reads: virtual now on the guest's face, nanoseconds; `None` when this process has no clock. A deadline
/// that is found reached is served first.
pub fn reading_ns() -> Option<u64> {
    now().map(|now| face().reading_ns(now))
}

/// Virtual now.
fn now() -> Option<VirtualInstant> {
    let page = page::page()?;
    count(&page.reads);
    if let Some(shown) = standing::show_again() {
        return Some(shown);
    }
    if has_command(page) && !is_event() {
        take_command(page);
    }
    drive::step_reading();
    let mut now = look(page);
    if now.as_ns() >= bound::tell_at_ns() {
        bound::tell_and_wait(page);
        now = look(page);
    }
    if now >= next() && delivery::deliver_if_due(page) {
        now = look(page);
    }
    Some(standing::show(now))
}

/// What is next in this guest: its timer's deadline, an arrival, or what a disk has done.
pub fn next() -> VirtualInstant {
    VirtualInstant::from_ns(DEADLINE_NS.load(Relaxed).min(input::next_ns()))
}

/// The CLOCK_REALTIME of the guest at virtual instant 0, nanoseconds.
pub fn realtime_base_ns() -> u64 {
    page::page().map_or(0, |page| page.realtime_base_ns.load(Relaxed))
}

/// Takes over a command of the host: time goes on from the present instant as it says.
fn take_command(page: &ClockPage) {
    let Some(command) = page.command().filter(|command| command.sequence != APPLIED.load(Relaxed)) else { return };
    if present::is_changing() {
        return; // a handler, in the middle of a change: the next reading takes the command over
    }
    if command.orders.drive == Drive::Work {
        drive::meter_work();
    }
    if rest::is_resting() {
        idle(page); // which a ceiling may have kept behind the host's clock
    }
    change(page, |clock| {
        let now = drive::both(clock.drive());
        let then = if command.orders.drive == clock.drive() { now.drive } else { drive::now(command.orders.drive) };
        page.virtual_now_ns.store(clock.virtual_at(now.drive).as_ns(), Relaxed);
        clock.obey(now, then, command.orders)
    });
    bound::begin();
    APPLIED.store(command.sequence, Relaxed);
    page.applied_sequence.store(command.sequence, Relaxed);
    // The host timer was armed for the old pace; its alarm has it armed for the new one.
    if !HOST_TIMER.load(Relaxed).is_null() {
        sys::raise(libc::SIGALRM);
    }
}

/// The kernel idles: the clock does what its drive makes of that, and says how the kernel has to sleep.
pub fn idle(page: &ClockPage) -> Sleep {
    if rest::has_served_at_rest() || disks::are_ahead() {
        return Sleep::No;
    }
    let deadline = Some(next()).filter(|&next| next != VirtualInstant::NEVER);
    let (clock, now) = present::clock();
    let (idled, sleep) = clock.idle(now, deadline);
    if idled != clock {
        change(page, |_| idled);
    }
    page.virtual_now_ns.store(idled.virtual_at(now.drive).as_ns(), Relaxed);
    sleep
}

/// What the clock would show without its bound.
pub fn come_to() -> VirtualInstant {
    standing::limit(present::unbounded())
}

/// Whether there is a command that has not been taken over.
pub fn has_command(page: &ClockPage) -> bool {
    page.command_sequence.load(Relaxed) != APPLIED.load(Relaxed)
}

/// Takes over a command that the host has announced through the wake pipe, if there is one.
pub fn heed_host(page: &ClockPage) {
    if has_command(page) {
        sys::drain(WAKE_FD.load(Relaxed));
        take_command(page);
    }
}

/// The agent waits for the host from now on, and virtual time stands still; or it no longer does.
pub fn wait_for_host(page: &ClockPage, waits: bool) {
    change(page, |clock| clock.wait_for_host(drive::now(clock.drive()), waits));
    look(page);
    if waits {
        bound::leave(page);
    }
}

/// Lets the wake pipe raise SIGALRM; not earlier than its handler is there, for without one it ends the process.
pub fn listen_to_host() {
    sys::signal_on_input(WAKE_FD.load(Relaxed), libc::SIGALRM);
}

/// Remembers the host timer behind the guest's clock event device.
pub fn adopt_timer(timer: libc::timer_t) {
    HOST_TIMER.store(timer, Relaxed);
    if is_event() {
        exclusively(arm_look);
    }
}

/// Sets the guest's timer to `after_ns` of its own clock from now, then every `interval_ns`; or off when `after_ns` is zero.
/// The kernel has computed `after_ns` from what it was shown last.
pub fn set_timer(page: &ClockPage, after_ns: u64, interval_ns: u64) {
    count(&page.timers_set);
    let deadline = face().deadline_meant(standing::shown(), after_ns);
    exclusively(|| {
        with_timer(|timer| {
            if after_ns == 0 {
                timer.clear();
            } else {
                timer.set(deadline, (interval_ns > 0).then_some(face().span(interval_ns)));
            }
        });
        arm(page, KERNEL_SLACK_NS);
    });
}

/// Asks the timer whether its deadline is reached at `now`; if so, it moves on to its next expiry. In a critical section.
pub fn take_alarm(now: VirtualInstant) -> Alarm {
    with_timer(|timer| timer.alarm(now))
}

/// The kernel has handled what it had noted: an alarm after which it has not set its timer is due once more.
pub fn remind_of_alarm() {
    exclusively(|| with_timer(GuestTimer::remind));
}

/// Makes sure that the host timer preempts user code soon after the deadline.
pub fn arm_for_user(page: &ClockPage) {
    let slack_ns = page.user_slack_ns.load(Relaxed).max(bound::turn_ns());
    exclusively(|| arm(page, slack_ns));
}

/// Arms the host timer where that is necessary, to fire at most `slack_ns` of host time late. In a critical section. On the
/// event drive the guest is not interrupted.
pub fn arm(page: &ClockPage, slack_ns: u64) {
    if is_event() {
        return;
    }
    let (clock, now) = present::clock();
    let also = VirtualInstant::from_ns(input::next_ns().min(shares::slice_end_ns()));
    let others = Others {
        tell: VirtualInstant::from_ns(bound::tell_at_ns()),
        rest_ns: if bound::is_bound() { REST_NS } else { 0 },
    };
    if let Some(instant) = with_timer(|timer| timer.arm(now, &clock, also, others, slack_ns)) {
        count(&page.host_timers_armed);
        bound::aside(|| sys::arm_timer(HOST_TIMER.load(Relaxed), instant));
    }
}

/// Arms the host timer for the next look at what spins, on the event drive. In a critical section.
pub fn arm_look() {
    let instant = spin::next_look();
    with_timer(|timer| timer.armed_for(instant));
    sys::arm_timer(HOST_TIMER.load(Relaxed), instant);
}

fn with_timer<T>(f: impl FnOnce(&mut GuestTimer) -> T) -> T {
    // SAFETY: callers are in a critical section, and none of them keeps the reference.
    let timer = unsafe { &mut *TIMER.get() };
    let result = f(timer);
    let as_ns = |instant: Option<VirtualInstant>| instant.map_or(OFF, VirtualInstant::as_ns);
    DEADLINE_NS.store(as_ns(timer.deadline()), Relaxed);
    if let Some(page) = page::page() {
        // After what says that the kernel rests no more.
        page.deadline_ns.store(as_ns(timer.setting()), Release);
    }
    result
}
