//! How the other guests of a run bound this one's clock (crates/wire).
//!
//! The clock stops at the last instant below its horizon, as it does at an end, whatever runs. Before it comes to that,
//! half the distance to the nearest guest after it did so last, it tells the others where it is and learns its new
//! horizon, so that guests which compute all the time compute side by side. Both is noticed where deadlines are: at a
//! clock reading, and where the kernel is about to let user code run; user code that runs is interrupted for it by the
//! host timer, and its stub stopped as for a tick of the kernel. That costs more than a short window is long, so there is
//! some rest between two (`keeper.rs`), and such a guest comes that much beyond its bound before it stops.
//!
//! **Who never catches up.** On the wall drive the host's clock goes on while a guest waits, so it waits until it is below
//! its bound again. Where guests share a core of the host, to let one another run takes longer than a short lookahead, and
//! none would ever come to run. So one that comes no nearer to the host's clock by waiting goes on at its bound for a while
//! ([`TURN_NS`]): below its horizon, which is all that others rely on, and late.
//!
//! **What others cost.** To tell them where it is and to wait for them is not the guest's work: on the work drive virtual
//! time stands still meanwhile (`aside.rs`). What it computed beyond its bound before it noticed stays counted: it waits
//! until the others allow that too, so a CPU is as fast in many short windows as in one. The wall drive goes on; by what
//! the clock then stood behind it, it was late, and that is counted as the lateness of timers is.
//!
//! **Idle.** A guest that idles tells its next instant, a timer or an arrival, and sleeps until its horizon is past it. No
//! frame can arrive before then any more, so from there on it sleeps and jumps as a guest on its own does. A signal ends
//! the wait; before the kernel hears of input, the clock goes to where it may send again (`Guest::present_ns`).
//!
//! The lock of the wire is only taken in a critical section, or with signals masked.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};

use virtual_time::VirtualInstant;
use wire::{Guest, NEVER};

use crate::page::ClockPage;
use crate::{aside, delivery, guest, keeper, masks, present, shares, standing, sys, tap};

/// How often a guest is let on by others until it looks whether that brings it nearer to the host's clock.
const ROUNDS: u32 = 16;

/// The turn of a guest that does not catch up, of the host's time: a tenth of the kernel's tick, which is not to be all that
/// it comes to.
const TURN_NS: u64 = 1_000_000;

/// How often a guest that waits looks whether the host has a command for it, which no signal tells it in a handler.
const LOOK_NS: u64 = 50_000_000;

/// Whether the others bind this guest: virtual 0 is known to all.
static BOUND: AtomicBool = AtomicBool::new(false);
/// The virtual instant at which to tell the others again, or at which the clock stops.
static TELL_NS: AtomicU64 = AtomicU64::new(NEVER);
/// The stub that was stopped at the bound, or 0.
static STOPPED: AtomicI32 = AtomicI32::new(0);
/// When its turn ends, of the host's clock; 0: it has none.
static TURN_END_NS: AtomicU64 = AtomicU64::new(0);
/// A handler has run while the guest waited.
static DISTURBED: AtomicBool = AtomicBool::new(false);
/// The last instant below the horizon, of this clock.
static LAST_NS: AtomicU64 = AtomicU64::new(NEVER);
/// The run is over for this guest.
static LEFT: AtomicBool = AtomicBool::new(false);

/// This guest's view of the wire once the others bind it.
fn bound_guest() -> Option<&'static Guest> {
    guest::guest().filter(|_| BOUND.load(Relaxed) && !LEFT.load(Relaxed))
}

/// Whether others bind this guest.
pub fn is_bound() -> bool {
    bound_guest().is_some()
}

/// A command of the host: from the first after all have their virtual 0 on, the others bind this guest.
pub fn begin() {
    let Some(guest) = guest::guest().filter(|guest| guest.wire().header().begun.load(Relaxed) != 0) else { return };
    if !BOUND.load(Relaxed) {
        guest::begin(guest);
        TELL_NS.store(0, Relaxed);
        BOUND.store(true, Relaxed);
    }
}

/// The instant, of this clock, at which [`tell`] is due; never, where nobody else is there.
pub fn tell_at_ns() -> u64 {
    TELL_NS.load(Relaxed)
}

/// Does what there is to do for others' sake alone, which is not the guest's work.
pub fn aside(f: impl FnOnce()) {
    if is_bound() {
        let begin = aside::own_work_ns();
        f();
        aside::take_back_work(begin);
    } else {
        f();
    }
}

/// Tells the others where this guest is, if that is due; false if it stands at its bound.
pub fn tell(page: &ClockPage) -> bool {
    let Some(guest) = bound_guest() else { return true };
    let now = standing::limit(present::look(page));
    if now.as_ns() < tell_at_ns() {
        return true;
    }
    masks::exclusively(|| {
        let begin = aside::own_work_ns();
        standing::show(now);
        guest.tell(guest::run_ns(now));
        adopt(page, guest, now);
        aside::take_back_work(begin);
    });
    come_to(now).as_ns() < LAST_NS.load(Relaxed)
}

/// The same, and waits at the bound until the others allow what the guest has come to, or it has a turn.
pub fn tell_and_wait(page: &ClockPage) {
    if turn_ns() > 0 {
        return;
    }
    let mut lag_ns = u64::MAX;
    for round in 0_u32.. {
        if tell(page) {
            break;
        }
        let Some(guest) = bound_guest() else { return };
        if round % ROUNDS == 0 && present::is_wall() {
            let before_ns = core::mem::replace(&mut lag_ns, present::lag_ns());
            if lag_ns >= before_ns {
                TURN_END_NS.store(sys::host_now().as_ns() + TURN_NS, Relaxed);
                break;
            }
        }
        stand(page, guest, guest::run_ns(come_to(present::look(page))));
    }
}

/// For how much longer the guest may do at its bound what there is to do; nanoseconds of the host, 0 where it has no turn.
pub fn turn_ns() -> u64 {
    match TURN_END_NS.load(Relaxed) {
        0 => 0,
        end_ns => {
            let left_ns = end_ns.saturating_sub(sys::host_now().as_ns());
            if left_ns == 0 {
                TURN_END_NS.store(0, Relaxed);
            }
            left_ns
        }
    }
}

/// The instant that the guest has come to, whose clock shows `now`: what it has done beyond the bound belongs to it. On the
/// wall drive that would be to run after the host's clock, so there it is what the clock shows.
fn come_to(now: VirtualInstant) -> VirtualInstant {
    if present::is_wall() {
        now
    } else {
        keeper::come_to()
    }
}

/// Lets user code be interrupted because the clock is at its bound: its stub stops, and [`goes_on`] when it may.
pub fn stop(stub: c_int) {
    STOPPED.store(stub, Relaxed);
    sys::stop(stub);
}

/// Whether the stub `stub`, which has stopped, did so for the bound's sake alone, and is to go on now: the kernel need not
/// hear of it, unless it is an occasion for a program to wait for its node's CPU. Waits until it may go on.
pub fn goes_on(page: &ClockPage, stub: c_int) -> bool {
    if STOPPED.swap(0, Relaxed) != stub || shares::is_active() {
        return false;
    }
    delivery::after_user(page);
    tell_and_wait(page);
    // What is due may be another process's turn.
    let goes_on = !delivery::deliver_if_due(page);
    if goes_on {
        aside::begin();
    }
    goes_on
}

/// The kernel has something to do, and is to hear of it when the stub stops.
pub fn stop_for_kernel() {
    STOPPED.store(0, Relaxed);
}

/// Waits in the middle of the instant `at_ns` of the run until it may be left. What is worked meanwhile is not the guest's.
/// So no handler of the kernel's may run meanwhile: it would see the clock go on, and then step back.
fn stand(page: &ClockPage, guest: &Guest, at_ns: u64) {
    masks::exclusively(|| {
        let mut begin = aside::own_work_ns();
        if !guest.go_on(at_ns) {
            waiting(guest, |watched| {
                if keeper::has_command(page) {
                    aside::take_back_work(begin);
                    keeper::heed_host(page);
                    begin = aside::own_work_ns();
                }
                guest.sleep(watched, Some(LOOK_NS));
                true
            });
        }
        aside::take_back_work(begin);
        if present::is_wall() && present::lag_ns() > 0 {
            page.record_lateness(present::lag_ns());
        }
        adopt(page, guest, present::look(page));
        standing::show(present::look(page));
    });
}

/// Waits until the guest may run, or `sleep` gives up; tells which. Looks for a while before it sleeps, since waking
/// takes longer.
fn waiting(guest: &Guest, mut sleep: impl FnMut(u64) -> bool) -> bool {
    let begin_ns = sys::host_now().as_ns();
    let spin_ns = guest.wire().header().spin_ns.load(Relaxed);
    let may_run = loop {
        let watched = guest.watch();
        if guest.may_run() {
            break true;
        }
        if sys::host_now().as_ns() - begin_ns < spin_ns {
            core::hint::spin_loop();
        } else if !sleep(watched) {
            break false;
        }
    };
    let waited_ns = sys::host_now().as_ns() - begin_ns;
    guest.wire().member(guest.number()).waited_host_ns.fetch_add(waited_ns, Relaxed);
    may_run
}

/// Takes over a new horizon, and looks what arrives before it.
fn adopt(page: &ClockPage, guest: &Guest, now: VirtualInstant) {
    let horizon_ns = guest.horizon_ns();
    let last_ns = if horizon_ns == NEVER { NEVER } else { guest::own_ns(horizon_ns - 1) };
    LAST_NS.store(last_ns, Relaxed);
    present::set_bound(page, VirtualInstant::from_ns(last_ns));
    tap::look_for_arrivals(guest);
    TELL_NS.store(now.as_ns().saturating_add(guest.step_ns()).min(last_ns), Relaxed);
}

/// The kernel idles, with its signals masked: waits until what is next in it may happen. False if a handler has run first.
pub fn pass(page: &ClockPage) -> bool {
    let Some(guest) = bound_guest() else { return true };
    // At its end it stands whatever is next, and whatever the others do.
    let next = keeper::next().min(present::end());
    let next_ns = if next == VirtualInstant::NEVER { NEVER } else { guest::run_ns(next) };
    let begin = aside::own_work_ns();
    let mut may_run = guest.pass(next_ns);
    if !may_run {
        DISTURBED.store(false, Relaxed);
        let mask = masks::block();
        may_run = waiting(guest, |watched| {
            // A handler that runs in between ends the sleep before it begins.
            sys::with_mask(mask, || guest.sleep(watched, None));
            !DISTURBED.load(Relaxed)
        }) && !DISTURBED.load(Relaxed);
    }
    if may_run {
        adopt(page, guest, present::look(page));
        aside::take_back_work(begin);
    }
    may_run
}

/// In a signal handler: ends the wait of [`pass`].
pub fn disturb() {
    if let Some(guest) = bound_guest() {
        DISTURBED.store(true, Relaxed);
        guest.wake();
    }
}

/// The host has something for the kernel, which idled: it goes on from where what it sends is nobody's past.
pub fn come_back(page: &ClockPage) {
    let Some(guest) = bound_guest() else { return };
    let present_ns = masks::exclusively(|| guest.present_ns(guest::run_ns(present::look(page))));
    stand(page, guest, present_ns);
    present::jump(page, VirtualInstant::from_ns(guest::own_ns(present_ns)));
}

/// The agent waits for the host, which it does during a run only at its end: the others go on without this guest, and it
/// without them.
pub fn leave(page: &ClockPage) {
    if let Some(guest) = bound_guest() {
        masks::exclusively(|| guest.leave());
        LEFT.store(true, Relaxed);
        TELL_NS.store(NEVER, Relaxed);
        present::set_bound(page, VirtualInstant::NEVER);
    }
}
