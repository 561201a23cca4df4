//! The handlers of the signals that the host sends: alarm, input, and faults of the kernel's own.
//!
//! Most of what is due is served without them (`serving.rs`). They remain for user code that must be preempted, and as a
//! backstop.
//!
//! **The event drive.** Signals come when the host sends them. So that a run depends on nothing but itself, none has an
//! effect at any other point than where the kernel rests: at idle, with nothing noted. There is no preemption; input waits,
//! and so do commands. Only a program that spins is interrupted (`deadlines/spinning.rs`).

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

use interrupts::Count;

use crate::deadlines::{bound, commands, spinning, timer};
use crate::host::page::{self, count, ClockPage};
use crate::host::{own_counter, sys};
use crate::kernel::direct::OF_KERNEL;
use crate::kernel::leavings::fill_stack_below;
use crate::kernel::masks::{self, exclusively};
use crate::kernel::{rest, serial};
use crate::nodes::shares;
use crate::occasions::serving::{serve_in_handler, KERNEL};
use crate::occasions::{deaths, user_code, waiting};
use crate::sources::input;
use crate::time::{aside, drive, present};

/// A signal whose handler in the kernel goes behind one of ours.
pub struct Adopted {
    kernel: &'static Count,
    ours: usize,
}

impl Adopted {
    /// How `signal` is adopted; `None` if it is not.
    pub fn of(signal: c_int) -> Option<Self> {
        match signal {
            libc::SIGALRM => Some(Self { kernel: &KERNEL.alarm, ours: on_alarm as *const () as usize }),
            libc::SIGIO => Some(Self { kernel: &KERNEL.input, ours: on_input as *const () as usize }),
            libc::SIGSEGV => Some(Self { kernel: &KERNEL.fault, ours: on_fault as *const () as usize }),
            libc::SIGCHLD => Some(Self { kernel: &KERNEL.child, ours: on_child as *const () as usize }),
            _ => None,
        }
    }

    /// Remembers the kernel's handler, at `address`; returns the address of ours, which goes before it.
    pub fn install(&self, address: usize) -> usize {
        self.kernel.set(address);
        self.ours
    }

    /// The handler that the kernel is to see where `address` is installed: its own in place of ours.
    pub fn seen_by_kernel(&self, address: usize) -> usize {
        if address == self.ours {
            self.kernel.get()
        } else {
            address
        }
    }
}

/// SIGSEGV: a fault of the kernel's own code. Either it reaches into the memory of a program, and expects this, or it has read
/// a counter that it had given up.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: a signal's arguments, and the address that the kernel installed with SA_SIGINFO.
    unsafe {
        if !own_counter::mend(info, context) {
            sys::handler(KERNEL.fault.get())(signal, info, context);
        }
    }
}

/// SIGCHLD: a child of the kernel has ended.
extern "C" fn on_child(_signal: c_int, _info: *mut libc::siginfo_t, _context: *mut c_void) {
    deaths::look();
}

/// SIGIO: a file descriptor of the kernel's is ready.
extern "C" fn on_input(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(page) = page::page() else { return };
    waiting::disturb();
    if masks::keep(signal) {
        return;
    }
    if present::is_event() {
        if !rest::is_resting() {
            input::keep();
            return;
        }
        // The host sends the signal also when it has room again for what the guest says, at whatever instant that is.
        if !serial::has_input() {
            return;
        }
    }
    rest::note();
    if rest::is_resting() {
        waiting::leave_idle(page);
    }
    exclusively(|| {
        // SAFETY: the address that the kernel installed with SA_SIGINFO.
        let kernel_handler = unsafe { sys::handler(KERNEL.input.get()) };
        fill_stack_below(0);
        input::expect_host();
        shares::interrupt(page, user_code::running() != 0, || kernel_handler(signal, info, context));
    });
}

/// SIGALRM: the host timer fired, or the host sent a command. Only a reached deadline goes on to the kernel's handler.
extern "C" fn on_alarm(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(page) = page::page() else { return };
    count(&page.alarms);
    waiting::disturb();
    if masks::keep(signal) {
        return;
    }
    let stub = user_code::running();
    let in_user = stub != 0;
    let mut aside_ns = None;
    if present::is_event() {
        // It has ended the kernel's sleep, if it slept.
        if !spinning::look(page, stub) {
            // A program that polls until time has passed keeps the kernel from idling for as long as the clock stands. What
            // does not poll comes to its end first, so that where in it the host's command came has no effect.
            if drive::is_busy() && present::stands() {
                commands::heed(page);
            }
            exclusively(timer::arm_look);
            return;
        }
        commands::heed(page);
        timer::skip_idle_time(page);
    } else {
        commands::heed(page);
        if in_user {
            aside_ns = look_at_user(page, stub);
        } else {
            aside_ns = bound::is_bound().then(aside::own_work_ns);
            present::look(page);
        }
    }
    exclusively(|| {
        let context = if in_user { context } else { OF_KERNEL };
        // SAFETY: the addresses that the kernel installed with SA_SIGINFO.
        let call = |signal, kernel| unsafe { sys::handler(kernel)(signal, info, context) };
        if serve_in_handler(page, in_user, call) == 0 {
            count(&page.alarms_not_due);
        } else {
            aside_ns = None;
            aside::give_back();
            user_code::stop_for_kernel();
        }
        if in_user {
            fill_stack_below(0);
        }
        if present::is_event() {
            if input::take_kept() {
                input::expect_host();
                call(libc::SIGIO, KERNEL.input.get());
            }
            timer::arm_look();
            return;
        }
        timer::arm(page, if in_user { page.user_slack_ns.load(Relaxed) } else { timer::KERNEL_SLACK_NS });
        if let Some(begin_ns) = aside_ns {
            aside::take_back_work(begin_ns);
        }
    });
}

/// Looks at the clock when an alarm has come while `stub` runs, and stops the stub if it is not to go on. Returns where the
/// kernel's work for that began, nanoseconds as of [`aside::own_work_ns`]; `None` where nothing bounds the clock.
fn look_at_user(page: &ClockPage, stub: c_int) -> Option<u64> {
    let aside_ns = bound::is_bound().then(|| {
        aside::begin();
        aside::own_work_ns()
    });
    let now = present::look(page);
    let is_at_bound = !waiting::tell(page);
    if shares::has_ended_slice(now) {
        // Its stub stops, and its program waits before the kernel lets it run on.
        user_code::stop_for_kernel();
        sys::stop(stub);
    } else if is_at_bound {
        user_code::stop_at_bound(stub);
    }
    aside_ns
}
