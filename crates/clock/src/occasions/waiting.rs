//! How this guest keeps to the bound that the others set (`deadlines/bound.rs`): it tells them where it is, and waits.
//!
//! **Who never catches up.** On the wall drive the host's clock goes on while a guest waits, so it waits until it is below
//! its bound again. Where guests share a core of the host, to let one another run takes longer than a short lookahead, and
//! none would ever come to run. So one that comes no nearer to the host's clock by waiting goes on at its bound for a while
//! (`TURN_NS`): below its horizon, which is all that others rely on, and late.
//!
//! **What others cost.** To tell them where it is and to wait for them is not the guest's work: on the work drive virtual
//! time stands still meanwhile (`time/aside.rs`). What it computed beyond its bound before it noticed stays counted: it waits
//! until the others allow that too, so a CPU is as fast in many short windows as in one. The wall drive goes on; by what
//! the clock then stood behind it, it was late, and that is counted as the lateness of timers is.
//!
//! **Idle.** A guest that idles tells its next instant, a timer or an arrival, and sleeps until its horizon is past it. No
//! frame can arrive before then any more, so from there on it sleeps and jumps as a guest on its own does. It is woken by
//! the wire, and its host timer is off: all that an alarm could tell has been told, and an alarm every 200 us would take
//! the kernel's idle loop round each time, whose work would bring the guest that far beyond its bound, and make all
//! frames late that arrive until then. The host's signals end the wait; what they interrupt is for others' sake until
//! there. Before the kernel hears of input, the clock goes to where it may send again (`Guest::go_back`).
//!
//! **Known and not read.** A kernel may idle while frames that it knows of lie in its rings: what reads them is a thread of
//! real-time priority, and such threads get 95 % of each second of a CPU, which is little time where the CPU is slow. It reads
//! them after its next timer, so that is what it tells. A sender that does not know that lowers the word to the arrival of
//! the next one, and so lets it run in vain: then it is at its bound, and tells its instant again.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Flag, Word};
use virtual_time::VirtualInstant;
use wire::{Guest, NEVER};

use crate::deadlines::bound::{self, adopt, turn_ns};
use crate::deadlines::{commands, timer};
use crate::host::own_counter::host_now;
use crate::host::page::ClockPage;
use crate::host::sys;
use crate::kernel::leavings::unseen;
use crate::kernel::masks;
use crate::sources::{guest, tap};
use crate::time::{aside, present, standing};

/// After so many rounds of waiting a guest looks whether they have brought it nearer to the host's clock.
const ROUNDS: u32 = 16;

/// How often a guest that waits looks whether the host has a command for it, which no signal tells it in a handler.
const LOOK_NS: u64 = 50_000_000;

struct Waiting {
    /// A handler has run while the guest waited.
    disturbed: Flag,
    /// Where the work of [`pass`] began, nanoseconds as of [`aside::own_work_ns`]; never, while it does not wait.
    aside_since_ns: Word,
}

static WAITING: Waiting = Waiting { disturbed: Flag::new(false), aside_since_ns: Word::new(NEVER) };

/// Tells the others where this guest is, if that is due; false if it is at its bound.
pub fn tell(page: &ClockPage) -> bool {
    let Some(guest) = bound::guest() else { return true };
    let now = standing::limit(present::look(page));
    if now.as_ns() < bound::tell_at_ns() {
        return true;
    }
    masks::exclusively(|| {
        let begin = aside::own_work_ns();
        standing::show(now);
        guest.tell(guest::run_ns(now));
        adopt(page, guest, now);
        aside::take_back_work(begin);
    });
    reached(now).as_ns() < bound::last_ns()
}

/// Tells the others where this guest is, if that is due, and waits at its bound until they allow what it has reached, or it
/// has a turn.
pub fn tell_and_wait(page: &ClockPage) {
    if bound::is_bound() {
        unseen(present::is_event, || keep_to_bound(page));
    }
}

fn keep_to_bound(page: &ClockPage) {
    if turn_ns() > 0 {
        return;
    }
    let mut lag_ns = u64::MAX;
    for round in 0_u32.. {
        if tell(page) {
            break;
        }
        let Some(guest) = bound::guest() else { return };
        if round % ROUNDS == 0 && present::is_wall() {
            let before_ns = core::mem::replace(&mut lag_ns, present::lag_ns());
            if lag_ns >= before_ns {
                bound::take_turn();
                break;
            }
        }
        wait_at(page, guest, guest::run_ns(reached(present::look(page))));
    }
}

/// The instant that the guest has reached, whose clock shows `now`: what it has done beyond the bound belongs to it. On the
/// wall drive that would be to run after the host's clock, so there it is what the clock shows.
fn reached(now: VirtualInstant) -> VirtualInstant {
    if present::is_wall() {
        now
    } else {
        standing::limit(present::unbounded())
    }
}

/// Waits at the instant `at_ns` of the run until the others let the guest go beyond it.
fn wait_at(page: &ClockPage, guest: &Guest, at_ns: u64) {
    wait(page, guest, |_| guest.go_on(at_ns));
}

/// Asks the others, and waits until they let the guest run, if they do not at once. The work of that is not the guest's. So no
/// handler of the kernel's may run meanwhile: it would see the clock go on, and then step back.
fn wait(page: &ClockPage, guest: &Guest, ask: impl FnOnce(&dyn Fn(u64)) -> bool) {
    masks::exclusively(|| {
        let begin_ns = Cell::new(aside::own_work_ns());
        // Waits for the others, or for an order.
        let sleep = |watched| {
            if commands::are_there(page) {
                aside::take_back_work(begin_ns.get());
                commands::heed(page);
                begin_ns.set(aside::own_work_ns());
            }
            guest.sleep(watched, Some(LOOK_NS));
        };
        if !ask(&sleep) {
            wait_until_may_run(guest, |watched| {
                sleep(watched);
                true
            });
        }
        aside::take_back_work(begin_ns.get());
        if present::is_wall() && present::lag_ns() > 0 {
            page.record_lateness(present::lag_ns());
        }
        adopt(page, guest, present::look(page));
        standing::show(present::look(page));
    });
}

/// Waits until the guest may run (true) or `sleep` gives up (false). It looks for a while before it sleeps, since waking takes
/// longer.
fn wait_until_may_run(guest: &Guest, mut sleep: impl FnMut(u64) -> bool) -> bool {
    let begin_ns = host_now().as_ns();
    let spin_ns = guest.wire().header().spin_ns.load(Relaxed);
    let may_run = loop {
        let watched = guest.watch();
        if guest.may_run() {
            break true;
        }
        if host_now().as_ns() - begin_ns < spin_ns {
            core::hint::spin_loop();
        } else if !sleep(watched) {
            break false;
        }
    };
    let waited_ns = host_now().as_ns() - begin_ns;
    guest.wire().member(guest.number()).waited_host_ns.fetch_add(waited_ns, Relaxed);
    may_run
}

/// The kernel idles, with its signals masked: waits until what is next in it may happen. False if a handler has run first.
pub fn pass(page: &ClockPage) -> bool {
    let Some(guest) = bound::guest() else { return true };
    // Where it stands it does so whatever is next, and whatever the others do.
    let next = timer::next().min(present::stands_at().max(present::latest(page)));
    let next_ns = if next == VirtualInstant::NEVER { NEVER } else { guest::run_ns(next) };
    WAITING.aside_since_ns.set(aside::own_work_ns());
    let mut may_run = guest.pass_reading(next_ns, tap::reads);
    if !may_run {
        WAITING.disturbed.set(false);
        let mask = masks::block();
        may_run = wait_until_may_run(guest, |watched| {
            timer::disarm();
            // A handler that runs in between ends the sleep before it begins.
            sys::with_mask(mask, || guest.sleep(watched, None));
            !WAITING.disturbed.get()
        }) && !WAITING.disturbed.get();
    }
    if may_run {
        adopt(page, guest, present::look(page));
    }
    end_aside();
    may_run
}

/// Tells the others that this guest has come to where it stands.
pub fn tell_place(page: &ClockPage) {
    let Some(guest) = bound::guest() else { return };
    let now = present::latest(page);
    masks::exclusively(|| {
        guest.tell(guest::run_ns(now));
        adopt(page, guest, now);
    });
}

/// Waits there until nothing can arrive before that any more.
pub fn wait_in_place(page: &ClockPage) {
    if let Some(guest) = bound::guest() {
        wait_at(page, guest, guest::run_ns(present::latest(page)));
    }
}

/// What was done in [`pass`] until now was for the others' sake: it is taken back from work.
fn end_aside() {
    let begin_ns = WAITING.aside_since_ns.swap(NEVER);
    if begin_ns != NEVER {
        aside::take_back_work(begin_ns);
    }
}

/// Called in a signal handler: ends the wait of [`pass`].
pub fn disturb() {
    if let Some(guest) = bound::guest() {
        end_aside();
        WAITING.disturbed.set(true);
        guest.wake();
    }
}

/// The host has something for the kernel, which idled. The clock goes to an instant at which nothing that the kernel sends can
/// arrive in another guest's past, or to an arrival before. If that is beyond where this guest stands, another one was
/// released before it: it waits until it is, too.
pub fn leave_idle(page: &ClockPage) {
    let Some(guest) = bound::guest() else { return };
    wait(page, guest, |sleep| loop {
        let watched = guest.watch();
        let goes_on_ns = guest.go_back(guest::run_ns(present::look(page)));
        if guest::own_ns(goes_on_ns) <= present::stands_at().as_ns() {
            break guest.pass(goes_on_ns);
        }
        sleep(watched);
    });
    present::jump(page, VirtualInstant::from_ns(guest::own_ns(guest.next_ns())));
}
