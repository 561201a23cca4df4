//! The kernel's idle loop: it jumps to its next deadline, or sleeps. A signal since the last idle makes it return at once
//! (`interrupts::Rest`).

use core::ffi::c_int;

use interrupts::Id;
use virtual_time::Sleep;

use crate::deadlines::{bound, commands, timer};
use crate::host::own_counter::host_now;
use crate::host::page::{add, count, ClockPage};
use crate::host::sys;
use crate::kernel::{masks, rest, serial};
use crate::nodes::shares;
use crate::occasions::serving::serve_if_due;
use crate::occasions::{contention, polling, waiting};
use crate::sources::input;
use crate::time::{drive, present, standing};

/// How long before a deadline, in host time, an idle kernel wakes up to watch for it. A sleeping core takes tens of
/// microseconds to come back, more in a virtual machine and milliseconds when something else runs on it; all that would
/// be the guest's lateness. Guests with a timer a millisecond never sleep, others watch for a small part of their time.
const WATCH_NS: u64 = 1_000_000;

/// The descriptor on which the kernel sleeps; -1 where it waits for a signal itself.
static SLEEPS_ON: Id = Id::new(-1);

/// The kernel sleeps on `fd`, which tells of signals. They reach its handlers all the same, and end the sleep.
pub fn will_sleep_on(fd: c_int) {
    SLEEPS_ON.set(fd);
}

/// Whether the kernel sleeps on such a descriptor.
pub fn sleeps_on_signals() -> bool {
    SLEEPS_ON.get() >= 0
}

/// Whether it is `fd`.
pub fn sleeps_on(fd: c_int) -> bool {
    fd >= 0 && SLEEPS_ON.get() == fd
}

/// The kernel's idle loop, with its signals masked: jumps to the deadline, or sleeps until it, or until a signal. A held
/// clock has no deadline, nor has a timer that is off. Returns at once when the kernel may have noted a signal that it has
/// not handled.
pub fn run(page: &ClockPage) {
    count(&page.idle_waits);
    if !present::is_event() {
        commands::heed(page);
    }
    if rest::has_noted() {
        rest::clear_noted();
        return;
    }
    input::report_again_if_forgotten();
    timer::remind_of_alarm();
    drive::read_unread();
    drive::forget_entries();
    shares::work_ends(page);
    standing::go();
    let begin = standing::show(present::look(page));
    rest::begin(page);
    let due = wait(page);
    rest::end(page);
    polling::idled();
    page.record_idle(begin, present::latest(page));
    contention::idled(page, begin.as_ns(), present::latest(page).as_ns());
    if due && serve_if_due(page) {
        standing::stay();
    }
    // What came during the sleep is handled as soon as the kernel has returned from it.
    rest::clear_noted();
}

/// Sleeps as the clock says; returns whether the deadline is reached.
fn wait(page: &ClockPage) -> bool {
    commands::heed(page);
    if input::take_kept() && serial::has_input() {
        let mask = masks::block();
        sys::raise(libc::SIGIO);
        sys::sleep(Some(0), mask);
        return false;
    }
    loop {
        if !rest::has_served() && !waiting::pass(page) {
            if was_disturbed(page) {
                return false;
            }
            continue;
        }
        let sleep = timer::skip_idle_time(page);
        if sleep == Sleep::No {
            return true;
        }
        // A sender let it run for a frame that it does not read yet: it tells its own instant again.
        if bound::is_before(timer::next().min(present::stands_at())) {
            continue;
        }
        let begin_ns = host_now().as_ns();
        let disturbed = !doze(page, sleep);
        add(&page.idle_host_ns, host_now().as_ns() - begin_ns);
        if disturbed && was_disturbed(page) {
            return false;
        }
    }
}

/// Waits until the clock has to be asked again; false if a signal came first.
fn doze(page: &ClockPage, sleep: Sleep) -> bool {
    let left_ns = match sleep {
        Sleep::Until(instant) => Some(instant.as_ns().saturating_sub(host_now().as_ns())),
        _ => None,
    };
    if !present::is_wall() {
        // Virtual time does not advance meanwhile, so waking late does no harm.
        return sys::sleep(left_ns, masks::block());
    }
    match left_ns {
        Some(left_ns) if left_ns <= WATCH_NS => {
            while matches!(timer::skip_idle_time(page), Sleep::Until(_)) {
                core::hint::spin_loop();
            }
            true
        }
        _ => sys::sleep(left_ns.map(|left_ns| left_ns - WATCH_NS), masks::block()),
    }
}

/// A signal has ended the sleep: does what the host has ordered; tells whether the kernel has to see to something. An alarm
/// is also the host's way to say that there is a command, of which the kernel sees nothing.
fn was_disturbed(page: &ClockPage) -> bool {
    commands::heed(page);
    timer::skip_idle_time(page);
    rest::has_noted()
}
