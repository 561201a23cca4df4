//! The kernel's idle loop: it jumps to its next deadline, or sleeps.
//!
//! **Noted signals.** With its interrupts off the kernel does not block signals, it *notes* them. At idle this is a trap:
//! the kernel enters its idle loop with interrupts off, and what it has noted but not handled must keep it from
//! sleeping. (The stock code relies on the host timer being off then, and on the next tick for input.) So a signal
//! since the last idle makes idle return at once: the kernel enables interrupts, handles what it had noted, and comes
//! back.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicBool, AtomicI32,
    Ordering::{Relaxed, Release},
};

use virtual_time::Sleep;

use crate::delivery::deliver_if_due;
use crate::page::{self, add, count, ClockPage};
use crate::{bound, drive, input, keeper, masks, present, shares, standing, sys};

/// How long before a deadline, in host time, an idle kernel wakes up to watch for it. A sleeping core takes tens of
/// microseconds to come back, more in a virtual machine and milliseconds when something else runs on it; all that would
/// be the guest's lateness. Guests with a timer a millisecond never sleep, others watch for a small part of their time.
const WATCH_NS: u64 = 1_000_000;

/// How many serial lines the host writes to: that of the channel, that of streams.
pub const LINES_COUNT: usize = 2;
static LINES: [AtomicI32; LINES_COUNT] = [const { AtomicI32::new(-1) }; LINES_COUNT];

/// The kernel sleeps, or is about to, with nothing left to do.
static RESTS: AtomicBool = AtomicBool::new(false);

/// A signal went to the kernel since it idled last.
static NOTED: AtomicBool = AtomicBool::new(false);

/// An alarm was served while the kernel rests. Its deadline is gone, and the next one is not known before the kernel has
/// woken up and set it: until then nothing may be jumped over.
static SERVED_AT_REST: AtomicBool = AtomicBool::new(false);

/// Remembers the serial lines that the host writes to.
pub fn start(lines: [c_int; LINES_COUNT]) {
    for (known, line) in LINES.iter().zip(lines) {
        known.store(line, Relaxed);
    }
}

/// Which of these lines `fd` is.
pub fn line_of(fd: c_int) -> Option<usize> {
    LINES.iter().position(|line| line.load(Relaxed) == fd)
}

/// Whether the host has written something that the kernel has not read.
pub fn has_input() -> bool {
    LINES.iter().any(|line| sys::is_readable(line.load(Relaxed)))
}

/// A signal goes to the kernel.
pub fn note() {
    NOTED.store(true, Relaxed);
    if let Some(page) = page::page() {
        page.rests.store(0, Relaxed);
    }
}

/// An alarm, or an arrival, goes to the kernel.
pub fn note_alarm() {
    note();
    SERVED_AT_REST.store(is_resting(), Relaxed);
}

/// Whether the kernel has nothing left to do.
pub fn is_resting() -> bool {
    RESTS.load(Relaxed)
}

/// Whether the kernel rests and has yet to set its next deadline.
pub fn has_served_at_rest() -> bool {
    is_resting() && SERVED_AT_REST.load(Relaxed)
}

/// The kernel's idle loop, with its signals masked: jumps to the deadline, or sleeps until it, or until a signal. A held
/// clock has no deadline, nor has a timer that is off. Returns at once when the kernel may have noted a signal that it has
/// not handled.
pub fn idle(page: &ClockPage) {
    count(&page.idle_waits);
    if !present::is_event() {
        keeper::heed_host(page);
    }
    if NOTED.load(Relaxed) {
        NOTED.store(false, Relaxed);
        return;
    }
    input::report_again_if_forgotten();
    keeper::remind_of_alarm();
    drive::idles();
    shares::idle(page);
    standing::go();
    let begin = standing::show(present::look(page));
    SERVED_AT_REST.store(false, Relaxed);
    RESTS.store(true, Relaxed);
    // Behind the timer's deadline, which is final.
    page.rests.store(1, Release);
    let due = rest(page);
    page.rests.store(0, Relaxed);
    RESTS.store(false, Relaxed);
    add(&page.idle_virtual_ns, present::latest(page).since(begin).as_ns());
    if due && deliver_if_due(page) {
        standing::stay();
    }
    // What came during the sleep is handled as soon as the kernel has returned from it.
    NOTED.store(false, Relaxed);
}

/// Sleeps as the clock says; tells whether the deadline is reached.
fn rest(page: &ClockPage) -> bool {
    keeper::heed_host(page);
    if input::take_kept() && has_input() {
        let mask = masks::block();
        sys::raise(libc::SIGIO);
        sys::sleep(Some(0), mask);
        return false;
    }
    loop {
        if !has_served_at_rest() && !bound::pass(page) {
            if was_disturbed(page) {
                return false;
            }
            continue;
        }
        let sleep = keeper::idle(page);
        if sleep == Sleep::No {
            return true;
        }
        let begin_ns = sys::host_now().as_ns();
        let disturbed = !wait(page, sleep);
        add(&page.idle_host_ns, sys::host_now().as_ns() - begin_ns);
        if disturbed && was_disturbed(page) {
            return false;
        }
    }
}

/// Waits until the clock has to be asked again; false if a signal came first.
fn wait(page: &ClockPage, sleep: Sleep) -> bool {
    let left_ns = match sleep {
        Sleep::Until(instant) => Some(instant.as_ns().saturating_sub(sys::host_now().as_ns())),
        _ => None,
    };
    if !present::is_wall() {
        // Virtual time does not advance meanwhile, so waking late does no harm.
        return sys::sleep(left_ns, masks::block());
    }
    match left_ns {
        Some(left_ns) if left_ns <= WATCH_NS => {
            while matches!(keeper::idle(page), Sleep::Until(_)) {
                core::hint::spin_loop();
            }
            true
        }
        _ => sys::sleep(left_ns.map(|left_ns| left_ns - WATCH_NS), masks::block()),
    }
}

/// A signal has ended the sleep: does what the host has ordered; tells whether the kernel has to see to something. An alarm
/// is the host's way to say that there is a command; on the event drive the kernel sees none of it.
fn was_disturbed(page: &ClockPage) -> bool {
    keeper::heed_host(page);
    keeper::idle(page);
    !present::is_event() || NOTED.load(Relaxed)
}
