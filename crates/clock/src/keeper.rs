//! The one clock behind the interposed functions: it, the timer, and the commands of the host.
//!
//! The kernel reads the clock and sets its timer from ordinary code and from signal handlers that interrupt it anywhere,
//! in the middle of these functions too. Two rules keep this simple:
//!
//! - The clock is in one of two slots, chosen by the parity of `GENERATION`. A change writes the idle slot and then
//!   moves the generation on. A reader that finds the generation moved after its computation starts again: so it never
//!   uses a torn line, and never returns an instant older than one that a handler has seen meanwhile.
//! - The timer is touched in a critical section (`masks.rs`) only, which no handler of ours enters.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    compiler_fence, AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst,
};

use virtual_time::{Alarm, Clock, Drive, DriveInstant, Face, GuestTimer, Now, Sleep, VirtualInstant};

use crate::aside;
use crate::bound;
use crate::delivery;
use crate::disks;
use crate::drive;
use crate::entropy;
use crate::input;
use crate::masks::{exclusively, Exclusive};
use crate::page::{count, ClockPage};
use crate::rest;
use crate::shares;
use crate::spin;
use crate::standing;
use crate::sys;

/// How late, in host time, the host timer may preempt user code. Most programs enter the kernel sooner, which then finds
/// the deadline by itself; and a preemption by signal costs as much as this.
pub const USER_SLACK_NS: u64 = 10_000;

/// How late, in host time, the host timer may interrupt kernel code: it is only the backstop behind the clock readings, of
/// which a busy kernel makes one a microsecond, for code that waits for a tick without reading the clock.
pub const KERNEL_SLACK_NS: u64 = 200_000;

static PAGE: AtomicPtr<ClockPage> = AtomicPtr::new(null_mut());
static WAKE_FD: AtomicI32 = AtomicI32::new(-1);
static KERNEL_PID: AtomicI32 = AtomicI32::new(0);

static GENERATION: AtomicUsize = AtomicUsize::new(0);
static CLOCKS: Shared<[Clock; 2]> = Shared::new([Clock::HELD_AT_ZERO; 2]);
static CHANGING: AtomicBool = AtomicBool::new(false);
/// Whether the event drive drives it.
static EVENT: AtomicBool = AtomicBool::new(false);
static APPLIED: AtomicU64 = AtomicU64::new(0);

/// The guest's face (`virtual_time::Face`).
static FACE_OWN: AtomicU64 = AtomicU64::new(1);
static FACE_RUN: AtomicU64 = AtomicU64::new(1);

static TIMER: Exclusive<GuestTimer> = Exclusive::new(GuestTimer::new());
/// The timer's deadline, nanoseconds; `OFF` when there is none. For a quick look without entering a critical section.
static DEADLINE_NS: AtomicU64 = AtomicU64::new(OFF);
static HOST_TIMER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

const OFF: u64 = u64::MAX;

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
    page.deadline_ns.store(OFF, Relaxed);
    drive::start();
    entropy::start(page.seed.load(Relaxed));
    FACE_OWN.store(page.face_own.load(Relaxed), Relaxed);
    FACE_RUN.store(page.face_run.load(Relaxed), Relaxed);
    take_command(page);
}

/// The clock page; `None` in a process that is not a guest kernel.
pub fn page() -> Option<&'static ClockPage> {
    // SAFETY: set once, to a mapping that stays.
    unsafe { PAGE.load(Relaxed).as_ref() }
}

/// Whether the caller's parent is the kernel, which is therefore alive.
pub fn is_child_of_kernel() -> bool {
    // SAFETY: plain system call.
    unsafe { libc::getppid() == KERNEL_PID.load(Relaxed) }
}

/// Leaves this process without a clock: a child of the kernel, with a copy of its memory.
pub fn detach() {
    PAGE.store(null_mut(), Relaxed);
    drive::detach();
}

/// What the kernel reads: virtual now on the guest's face, nanoseconds; `None` when this process has no clock. A deadline
/// that is found reached is served first.
pub fn reading_ns() -> Option<u64> {
    now().map(|now| face().reading_ns(now))
}

/// How the guest's clock reads.
pub fn face() -> Face {
    Face::new(FACE_OWN.load(Relaxed), FACE_RUN.load(Relaxed)).unwrap_or(Face::PLAIN)
}

/// Virtual now.
fn now() -> Option<VirtualInstant> {
    let page = page()?;
    count(&page.reads);
    if let Some(shown) = standing::show_again() {
        return Some(shown);
    }
    if has_command(page) && !EVENT.load(Relaxed) {
        take_command(page);
    }
    drive::step_reading();
    let mut now = look(page);
    if now.as_ns() >= bound::tell_at_ns() {
        bound::tell_and_wait(page);
        now = look(page);
    }
    if now.as_ns() >= next_ns() && delivery::deliver_if_due(page) {
        now = look(page);
    }
    Some(standing::show(now))
}

/// Virtual now, told to the host too.
pub fn look(page: &ClockPage) -> VirtualInstant {
    let now = read(virtual_now);
    page.virtual_now_ns.store(now.as_ns(), Relaxed);
    now
}

/// Virtual now as read last.
pub fn latest(page: &ClockPage) -> VirtualInstant {
    VirtualInstant::from_ns(page.virtual_now_ns.load(Relaxed))
}

/// The last instant that the host lets the clock reach.
pub fn end_ns() -> u64 {
    read(Clock::end).as_ns()
}

/// What is next in this guest: its timer's deadline, an arrival, or what a disk has done.
pub fn next_ns() -> u64 {
    DEADLINE_NS.load(Relaxed).min(input::next_ns())
}

fn virtual_now(clock: &Clock) -> VirtualInstant {
    clock.virtual_at(drive::now(clock.drive()))
}

/// The virtual instant when the guest has worked for another `ns` of host time.
pub fn after_work(ns: u64) -> VirtualInstant {
    read(|clock| clock.virtual_at(DriveInstant::from_ns(drive::now(clock.drive()).as_ns() + ns)))
}

/// Whether only what the guest itself does may have an effect on it: on the event drive. Whatever comes from the host then
/// waits until the kernel idles.
pub fn is_event() -> bool {
    EVENT.load(Relaxed)
}

/// The CLOCK_REALTIME of the guest at virtual instant 0, nanoseconds.
pub fn realtime_base_ns() -> u64 {
    page().map_or(0, |page| page.realtime_base_ns.load(Relaxed))
}

/// What `f` makes of the present clock. Inlined, so that of the clock only what `f` needs is copied.
#[inline]
fn read<T>(f: impl Fn(&Clock) -> T) -> T {
    loop {
        let generation = GENERATION.load(Relaxed);
        // SAFETY: in bounds; a slot is rewritten only after the generation has moved on, which is checked below.
        let clock = unsafe { (*CLOCKS.0.get())[generation % 2] };
        let result = f(&clock);
        compiler_fence(SeqCst);
        if GENERATION.load(Relaxed) == generation {
            return result;
        }
    }
}

/// The present clock and the present moment.
fn present() -> (Clock, Now) {
    read(|clock| (*clock, drive::both(clock.drive())))
}

/// Puts another clock in place of the present one, unless that is being done already.
fn change(page: &ClockPage, f: impl Fn(&Clock) -> Clock) {
    if CHANGING.load(Relaxed) {
        return;
    }
    CHANGING.store(true, Relaxed);
    let clock = read(f);
    let generation = GENERATION.load(Relaxed);
    // SAFETY: the idle slot; `CHANGING` keeps a handler from writing it at the same time.
    unsafe { (*CLOCKS.0.get())[(generation + 1) % 2] = clock };
    compiler_fence(SeqCst);
    GENERATION.store(generation.wrapping_add(1), Relaxed);
    EVENT.store(clock.drive() == Drive::Event, Relaxed);
    page.publish(&clock);
    CHANGING.store(false, Relaxed);
}

/// Takes over a command of the host: time goes on from the present instant as it says.
fn take_command(page: &ClockPage) {
    let Some(command) = page.command().filter(|command| command.sequence != APPLIED.load(Relaxed)) else { return };
    if CHANGING.load(Relaxed) {
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

/// Whether virtual time passes with the host's clock, also while the guest waits.
pub fn is_wall() -> bool {
    read(|clock| clock.drive() == Drive::Wall)
}

/// Whether virtual time passes with the guest's work.
pub fn is_work() -> bool {
    read(|clock| clock.drive() == Drive::Work)
}

/// The kernel idles: the clock does what its drive makes of that, and says how the kernel has to sleep.
pub fn idle(page: &ClockPage) -> Sleep {
    if rest::has_served_at_rest() || disks::are_ahead() {
        return Sleep::No;
    }
    let deadline_ns = next_ns();
    let deadline = (deadline_ns != OFF).then_some(VirtualInstant::from_ns(deadline_ns));
    let (clock, now) = present();
    let (idled, sleep) = clock.idle(now, deadline);
    if idled != clock {
        change(page, |_| idled);
    }
    page.virtual_now_ns.store(idled.virtual_at(now.drive).as_ns(), Relaxed);
    sleep
}

/// The clock may go as far as `bound`.
pub fn set_bound(page: &ClockPage, bound: VirtualInstant) {
    change(page, |clock| clock.bounded(bound));
}

/// Where the work of the kernel's own process is, for [`take_back_work`].
pub fn own_work_ns() -> u64 {
    if drive::is_metered() {
        drive::own_ns()
    } else {
        u64::MAX
    }
}

/// What the kernel's own process has worked since `begin_ns` was not for the guest: others were told or waited for, or data
/// were moved for a disk.
pub fn take_back_work(begin_ns: u64) {
    if drive::is_metered() {
        let ns = drive::own_ns().saturating_sub(begin_ns);
        drive::take_back(ns);
        aside::taken_back(ns);
    }
}

/// What the clock would show without its bound.
pub fn come_to() -> VirtualInstant {
    standing::limit(read(|clock| clock.unbounded_at(drive::now(clock.drive()))))
}

/// How far the clock is behind its drive because of its bound, nanoseconds.
pub fn lag_ns() -> u64 {
    read(|clock| clock.beyond_bound(drive::now(clock.drive()))).as_ns()
}

/// The clock goes on from `instant`, if that is later.
pub fn jump(page: &ClockPage, instant: VirtualInstant) {
    change(page, |clock| clock.jumped(drive::now(clock.drive()), instant));
    look(page);
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
    let slack_ns = USER_SLACK_NS.max(bound::turn_ns());
    exclusively(|| arm(page, slack_ns));
}

/// Arms the host timer where that is necessary, to fire at most `slack_ns` of host time late. In a critical section. On the
/// event drive the guest is not interrupted.
pub fn arm(page: &ClockPage, slack_ns: u64) {
    if is_event() {
        return;
    }
    let (clock, now) = present();
    let also = VirtualInstant::from_ns(bound::tell_at_ns().min(input::next_ns()).min(shares::slice_end_ns()));
    if let Some(instant) = with_timer(|timer| timer.arm(now, &clock, also, slack_ns)) {
        count(&page.host_timers_armed);
        sys::arm_timer(HOST_TIMER.load(Relaxed), instant);
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
    let deadline_ns = timer.deadline().map_or(OFF, VirtualInstant::as_ns);
    DEADLINE_NS.store(deadline_ns, Relaxed);
    if let Some(page) = page() {
        page.deadline_ns.store(deadline_ns, Relaxed);
    }
    result
}
