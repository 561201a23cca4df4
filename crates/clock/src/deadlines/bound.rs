//! How the other guests of a run bound this one's clock (crates/wire): what this guest knows of them.
//!
//! The clock stops at the last instant below its horizon, as it does at an end, whatever runs. Before it comes to that,
//! half the distance to the nearest guest after it did so last, it tells the others where it is and learns its new
//! horizon, so that guests which compute all the time compute side by side. Both is noticed where deadlines are: at a
//! clock reading, and where the kernel is about to let user code run; user code that runs is interrupted for it by the
//! host timer, and its stub stopped as for a tick of the kernel. That costs more than a short window is long, so there is
//! some rest between two (`timer.rs`), and such a guest comes that much beyond its bound before it stops. How it waits
//! there is in `occasions/waiting.rs`.
//!
//! The lock of the wire is only taken in a critical section, or with signals masked.

use interrupts::{Flag, Word};
use virtual_time::VirtualInstant;
use wire::{Guest, NEVER};

use crate::host::own_counter::host_now;
use crate::host::page::ClockPage;
use crate::kernel::masks;
use crate::sources::guest::{self, guest as this_guest};
use crate::sources::tap;
use crate::time::{aside, present};

/// How long the turn of a guest is that does not catch up, of the host's time: a tenth of the kernel's tick, so that it gets
/// to more than its ticks.
const TURN_NS: u64 = 1_000_000;

struct Bound {
    /// Whether the others bind this guest: virtual 0 is known to all.
    begun: Flag,
    /// The run is over for this guest.
    left: Flag,
    /// The virtual instant at which to tell the others again, or at which the clock stops.
    tell_ns: Word,
    /// The last instant below the horizon, of this clock.
    last_ns: Word,
    /// When its turn ends, of the host's clock; 0: it has none.
    turn_end_ns: Word,
}

static BOUND: Bound = Bound {
    begun: Flag::new(false),
    left: Flag::new(false),
    tell_ns: Word::new(NEVER),
    last_ns: Word::new(NEVER),
    turn_end_ns: Word::new(0),
};

/// This guest's view of the wire once the others bind it.
pub fn guest() -> Option<&'static Guest> {
    this_guest().filter(|_| BOUND.begun.get() && !BOUND.left.get())
}

/// Whether others bind this guest.
pub fn is_bound() -> bool {
    guest().is_some()
}

/// Once all guests have their virtual 0, the others bind this one.
fn begin() {
    let Some(guest) = this_guest().filter(|guest| guest.takes_part()) else { return };
    if !BOUND.begun.get() {
        guest::begin(guest);
        BOUND.tell_ns.set(0);
        BOUND.begun.set(true);
    }
}

/// The instant, of this clock, at which [`tell`] is due; never, where nobody else is there.
pub fn tell_at_ns() -> u64 {
    BOUND.tell_ns.get()
}

/// Runs `f`, which is done for the others' sake alone and so is not the guest's work.
pub fn aside(f: impl FnOnce()) {
    if is_bound() {
        let begin = aside::own_work_ns();
        f();
        aside::take_back_work(begin);
    } else {
        f();
    }
}

/// The last instant below the horizon, of this clock, nanoseconds.
pub fn last_ns() -> u64 {
    BOUND.last_ns.get()
}

/// Whether the others bind this guest before that instant.
pub fn is_before(instant: VirtualInstant) -> bool {
    is_bound() && BOUND.last_ns.get() < instant.as_ns()
}

/// This guest does not catch up with the host's clock, and goes on at its bound for a while.
pub fn take_turn() {
    BOUND.turn_end_ns.set(host_now().as_ns() + TURN_NS);
}

/// How much longer the guest may go on at its bound, nanoseconds of the host; 0 where it has no turn.
pub fn turn_ns() -> u64 {
    match BOUND.turn_end_ns.get() {
        0 => 0,
        end_ns => {
            let left_ns = end_ns.saturating_sub(host_now().as_ns());
            if left_ns == 0 {
                BOUND.turn_end_ns.set(0);
            }
            left_ns
        }
    }
}

/// Takes over a new horizon, and looks for frames that arrive before it.
pub fn adopt(page: &ClockPage, guest: &Guest, now: VirtualInstant) {
    let horizon_ns = guest.horizon_ns();
    let last_ns = if horizon_ns == NEVER { NEVER } else { guest::own_ns(horizon_ns - 1) };
    BOUND.last_ns.set(last_ns);
    present::set_bound(page, VirtualInstant::from_ns(last_ns));
    tap::look_for_arrivals(guest);
    BOUND.tell_ns.set(now.as_ns().saturating_add(guest.step_ns()).min(last_ns));
}

/// The host has ordered something: tells the others where this guest comes to stand.
pub fn obey(page: &ClockPage) {
    begin();
    if let Some(guest) = guest() {
        let stand = present::stands_at();
        masks::exclusively(|| {
            guest.stands(if stand == VirtualInstant::NEVER { NEVER } else { guest::run_ns(stand) });
            adopt(page, guest, present::look(page));
        });
    }
}

/// The agent waits for the host, which it does during a run only at its end. The others go on without this guest from now on,
/// and it without them.
pub fn leave(page: &ClockPage) {
    if let Some(guest) = guest() {
        // In one section: a handler in between would tell the others that this guest runs, and they would wait for it.
        masks::exclusively(|| {
            guest.leave();
            go(page);
        });
    }
}

/// Another kernel goes on from `now` in this guest's place. The others wait for it, and this one is none of them any more.
pub fn hand_over(page: &ClockPage, now: VirtualInstant) {
    if let Some(guest) = guest() {
        masks::exclusively(|| {
            guest.hand_over(guest::run_ns(now));
            guest::end();
            go(page);
        });
    }
}

/// Nobody binds this guest any more.
fn go(page: &ClockPage) {
    BOUND.left.set(true);
    BOUND.tell_ns.set(NEVER);
    present::set_bound(page, VirtualInstant::NEVER);
}
