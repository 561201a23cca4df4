//! What is due is served: an alarm, or something to read, by a call of the kernel's handler.
//!
//! **Cost.** A packet-forwarding kernel takes a timer interrupt for almost every packet. As a host signal each costs a
//! timer interrupt of the host, a signal frame with the extended CPU state, and sigreturn: two microseconds. But the
//! kernel also reads its clock a dozen times a packet, so a reached deadline is nearly always *noticed* before a signal
//! could arrive; and at idle it is we who wait for it (`idle.rs`). In both cases the kernel's handler is
//! called directly (`kernel/direct.rs`), with no other handler in between. The real signal remains for user code that
//! must be preempted, and as a backstop.
//!
//! A direct call is a critical section (`kernel/masks.rs`), since the kernel's handlers mask each other.

use core::ffi::c_int;

use interrupts::Count;
use virtual_time::{Alarm, VirtualInstant};

use crate::deadlines::timer;
use crate::host::page::ClockPage;
use crate::kernel::direct::{call_handler, free_signal_stack};
use crate::kernel::leavings::{fill_stack_below, words_to_clear};
use crate::kernel::masks::{self, exclusively};
use crate::kernel::rest;
use crate::nodes::shares;
use crate::sources::input;
use crate::time::{present, standing};

/// Alarms served one after the other before the interrupted code goes on. Packets are handled inside the handler, and when
/// it is done the next timer is often due.
const SERVED_AT_ONCE_MAX: u32 = 8;

/// A word that means, in the kernel's registers, that user code was interrupted: two integers of one.
const USER_WORD: u64 = 0x1_0000_0001;

/// Addresses of the kernel's handlers; 0: not installed yet.
pub struct KernelHandlers {
    /// SIGALRM.
    pub alarm: Count,
    /// SIGIO.
    pub input: Count,
    /// SIGSEGV.
    pub fault: Count,
    /// SIGCHLD, in seccomp mode.
    pub child: Count,
}

/// The kernel's handlers, behind ours.
pub static KERNEL: KernelHandlers =
    KernelHandlers { alarm: Count::new(0), input: Count::new(0), fault: Count::new(0), child: Count::new(0) };

/// Serves what is due, alarms and arrivals, each by `call` of the kernel's handler of a signal; returns how many there were.
/// In a critical section, in the handler of a signal.
pub fn serve_in_handler(page: &ClockPage, in_user: bool, call: impl Fn(c_int, usize)) -> u32 {
    let mut served = 0;
    while served < SERVED_AT_ONCE_MAX {
        let at = standing::serve_at(present::look(page), timer::next());
        let interrupt = |user_word, signal, handler: &Count| {
            fill_stack_below(user_word);
            shares::interrupt(page, in_user, || standing::during(at, || call(signal, handler.get())));
        };
        if is_due(page, at) {
            interrupt(u64::from(in_user) * USER_WORD, libc::SIGALRM, &KERNEL.alarm);
        } else if !has_arrived(page, at, || interrupt(0, libc::SIGIO, &KERNEL.input)) {
            break;
        }
        served += 1;
    }
    served
}

/// Whether the timer's deadline is due at `at`; if so, it counts as served. Its lateness is how far the clock, as read last, is
/// past it. In a critical section.
fn is_due(page: &ClockPage, at: VirtualInstant) -> bool {
    match timer::take_alarm(at) {
        Alarm::NotYet => false,
        Alarm::Due { lateness } => {
            page.record_lateness(lateness.as_ns() + present::latest(page).since(at).as_ns());
            rest::note_alarm();
            true
        }
    }
}

/// Whether there is something to read at `at`; if so, the kernel is told by `tell`, which calls its handler of input. In a
/// critical section.
fn has_arrived(page: &ClockPage, at: VirtualInstant, tell: impl FnOnce()) -> bool {
    if KERNEL.input.get() == 0 {
        return false;
    }
    let arrived = input::report(page, at, tell);
    if arrived {
        rest::note_alarm();
    }
    arrived
}

/// Serves what is due by the clock as read last, if a signal could interrupt the kernel here; tells whether anything was.
pub fn serve_if_due(page: &ClockPage) -> bool {
    if masks::is_exclusive() || KERNEL.alarm.get() == 0 {
        return false;
    }
    let Some(top) = free_signal_stack() else { return false };
    let clear_words = words_to_clear(present::is_event());
    exclusively(|| {
        let mut served = 0;
        // The caller has just read the clock.
        let mut now = present::latest(page);
        while served < SERVED_AT_ONCE_MAX {
            let at = standing::serve_at(now, timer::next());
            // SAFETY: the stack is free, and stays ours in the critical section; handlers take what a signal's would.
            let serve = |signal, kernel: &Count| unsafe { call_handler(top, clear_words, signal, kernel.get()) };
            let call = |signal, kernel| {
                shares::interrupt(page, false, || standing::during(at, || serve(signal, kernel)));
            };
            if is_due(page, at) {
                call(libc::SIGALRM, &KERNEL.alarm);
            } else if !has_arrived(page, at, || call(libc::SIGIO, &KERNEL.input)) {
                break;
            }
            served += 1;
            now = present::look(page);
        }
        served > 0
    })
}
