//! The guest's timer, its deadline in virtual time, and the host timer behind it, which is armed as rarely as possible.
//!
//! The kernel sets its timer from ordinary code and from signal handlers that interrupt it anywhere, in the middle of these
//! functions too. So the timer is touched in a critical section (`kernel/masks.rs`) only.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Relaxed, Release},
};

use interrupts::Word;
use virtual_time::{Alarm, GuestTimer, Others, Sleep, VirtualInstant};

use crate::deadlines::{bound, spinning};
use crate::host::own_counter::host_now;
use crate::host::page::{self, count, ClockPage};
use crate::host::sys;
use crate::kernel::masks::{exclusively, Exclusive};
use crate::kernel::rest;
use crate::nodes::shares;
use crate::sources::{disks, input};
use crate::time::present::{self, face, is_event, Moment};
use crate::time::{drive, standing};

/// How late, in host time, the host timer may interrupt kernel code: it is only the backstop behind the clock readings, of
/// which a busy kernel makes one a microsecond, for code that waits for a tick without reading the clock.
pub const KERNEL_SLACK_NS: u64 = 200_000;

/// How long, in host time, a guest runs on before it is interrupted for the others' sake alone (`bound.rs`). In a virtual
/// machine an interruption takes up to 40 us, of which more than half cannot be told from the guest's work. At short
/// lookaheads a guest that computes would otherwise do little else.
const REST_NS: u64 = 200_000;

static TIMER: Exclusive<GuestTimer> = Exclusive::new(GuestTimer::new());

struct Known {
    /// The timer's deadline, nanoseconds, for a quick look without entering a critical section; `OFF` when there is none.
    deadline_ns: Word,
    /// The kernel's own timer, which is the host timer behind it.
    host_timer: AtomicPtr<c_void>,
}

static KNOWN: Known = Known { deadline_ns: Word::new(OFF), host_timer: AtomicPtr::new(null_mut()) };

/// No deadline, also in the clock page.
pub const OFF: u64 = u64::MAX;

/// What is next in this guest: its timer's deadline, an arrival, or what a disk has done.
pub fn next() -> VirtualInstant {
    VirtualInstant::from_ns(KNOWN.deadline_ns.get().min(input::next_ns()))
}

/// The kernel idles: the clock does what its drive makes of that, and says how the kernel has to sleep.
pub fn skip_idle_time(page: &ClockPage) -> Sleep {
    if rest::has_served() || disks::are_ahead() {
        return Sleep::No;
    }
    let own = VirtualInstant::from_ns(KNOWN.deadline_ns.get());
    if disks::hurry_up() && own != VirtualInstant::NEVER {
        present::change(page, |clock| clock.run_out(drive::now(clock.drive()), own));
        if present::look(page) >= own {
            return Sleep::No;
        }
    }
    let deadline = Some(next()).filter(|&next| next != VirtualInstant::NEVER);
    let Moment { clock, now } = present::moment();
    let (idled, sleep) = clock.idle(now, deadline);
    if idled != clock {
        present::change(page, |_| idled);
    }
    page.virtual_now_ns.store(idled.virtual_at(now.drive).as_ns(), Relaxed);
    sleep
}

/// Remembers the host timer behind the guest's clock event device.
pub fn adopt(timer: libc::timer_t) {
    KNOWN.host_timer.store(timer, Relaxed);
    if is_event() {
        exclusively(arm_look);
    }
}

/// Whether the kernel has made its timer.
pub fn is_adopted() -> bool {
    !KNOWN.host_timer.load(Relaxed).is_null()
}

/// Sets the guest's timer to `after_ns` of its own clock from now, then every `interval_ns`; or off when `after_ns` is zero.
/// The kernel has computed `after_ns` from what it was shown last.
pub fn set(page: &ClockPage, after_ns: u64, interval_ns: u64) {
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

/// Makes sure that the host timer preempts user code soon after the deadline. The clock was looked at last at `moment`, which
/// holds unless a handler has changed it since; a host timer that has fired since has been armed anew by its handler.
pub fn arm_for_user(page: &ClockPage, moment: Option<Moment>) {
    if is_host_timer_used() {
        let moment = moment.filter(|moment| moment.clock == present::clock()).unwrap_or_else(present::moment);
        let slack_ns = page.user_slack_ns.load(Relaxed).max(bound::turn_ns());
        exclusively(|| arm_at(page, &moment, slack_ns));
    }
}

/// Arms the host timer where that is necessary, to fire at most `slack_ns` of host time late. In a critical section.
pub fn arm(page: &ClockPage, slack_ns: u64) {
    if is_host_timer_used() {
        arm_at(page, &present::moment(), slack_ns);
    }
}

/// It is not needed on the event drive, where the guest is not interrupted, nor by a kernel that rests, which sleeps until what
/// is next.
fn is_host_timer_used() -> bool {
    !is_event() && !rest::is_resting()
}

/// [`arm`], where the clock was looked at last at `moment`.
fn arm_at(page: &ClockPage, &Moment { clock, now }: &Moment, slack_ns: u64) {
    let also = VirtualInstant::from_ns(input::next_ns().min(shares::slice_end_ns()));
    let others = Others {
        tell: VirtualInstant::from_ns(bound::tell_at_ns()),
        rest_ns: if bound::is_bound() { REST_NS } else { 0 },
    };
    if let Some(instant) = with_timer(|timer| timer.arm(now, &clock, also, others, slack_ns)) {
        count(&page.host_timers_armed);
        bound::aside(|| sys::arm_timer(KNOWN.host_timer.load(Relaxed), instant));
    }
}

/// Switches the host timer off: the kernel rests, and others wake it when there is something to do. Signals are masked.
pub fn disarm() {
    if !is_event() && with_timer(|timer| timer.disarm(host_now())) {
        sys::disarm_timer(KNOWN.host_timer.load(Relaxed));
    }
}

/// Arms the host timer for the next look at what spins, on the event drive. In a critical section.
pub fn arm_look() {
    let instant = spinning::next_look();
    with_timer(|timer| timer.armed_for(instant));
    sys::arm_timer(KNOWN.host_timer.load(Relaxed), instant);
}

fn with_timer<T>(f: impl FnOnce(&mut GuestTimer) -> T) -> T {
    // SAFETY: callers are in a critical section, and none of them keeps the reference.
    let timer = unsafe { &mut *TIMER.get() };
    let result = f(timer);
    let as_ns = |instant: Option<VirtualInstant>| instant.map_or(OFF, VirtualInstant::as_ns);
    KNOWN.deadline_ns.set(as_ns(timer.deadline()));
    if let Some(page) = page::page() {
        // After what says that the kernel rests no more.
        page.deadline_ns.store(as_ns(timer.setting()), Release);
    }
    result
}
