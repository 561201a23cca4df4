//! How signals reach the kernel: its alarm and its input.
//!
//! **Cost.** A packet-forwarding kernel takes a timer interrupt for almost every packet. As a host signal each costs a
//! timer interrupt of the host, a signal frame with the extended CPU state, and sigreturn: two microseconds. But the
//! kernel also reads its clock a dozen times a packet, so a reached deadline is nearly always *noticed* before a signal
//! could arrive; and at idle it is we who wait for it (`rest.rs`). In both cases the kernel's handler is called directly
//! (`direct.rs`), with no other handler in between. The real signal remains for user code that must be preempted, and as
//! a backstop.
//!
//! **Masks.** A direct call is a critical section (`masks.rs`), since the kernel's handlers mask each other.
//!
//! **The event drive.** Signals come when the host sends them. So that a run depends on nothing but itself, none has an
//! effect at any other point than where the kernel rests: at idle, with nothing noted. There is no preemption; input waits,
//! and so do commands. Only a program that spins is interrupted (`spin.rs`).

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};

use virtual_time::{Alarm, VirtualInstant};

use crate::direct::{call_handler, fill_stack_below, free_signal_stack};
use crate::masks::exclusively;
use crate::page::{count, ClockPage};
use crate::{aside, bound, drive, input, keeper, masks, page, present, rest, shares, spin, standing, stops, sys};

/// Alarms served one after the other before the interrupted code goes on. Packets are handled inside the handler, and when
/// it is done the next timer is often due.
const SERVED_AT_ONCE_MAX: u32 = 8;

/// A word that means, in the kernel's registers, that user code was interrupted: two integers of one.
const USER_WORD: u64 = 0x1_0000_0001;

static ALARM_HANDLER: AtomicUsize = AtomicUsize::new(0);
static INPUT_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// The stub whose user code runs: it was resumed, and the kernel has not looked at it since. 0: none.
static IN_USER: AtomicI32 = AtomicI32::new(0);

/// A signal whose handler in the kernel goes behind one of ours.
pub struct Adopted {
    kernel: &'static AtomicUsize,
    ours: usize,
}

impl Adopted {
    /// How `signal` is adopted; `None` if it is not.
    pub fn of(signal: c_int) -> Option<Self> {
        match signal {
            libc::SIGALRM => Some(Self { kernel: &ALARM_HANDLER, ours: on_alarm as *const () as usize }),
            libc::SIGIO => Some(Self { kernel: &INPUT_HANDLER, ours: on_input as *const () as usize }),
            _ => None,
        }
    }

    /// Puts ourselves before the kernel's handler at `address`; returns the address of ours.
    pub fn install(&self, address: usize) -> usize {
        self.kernel.store(address, Relaxed);
        self.ours
    }

    /// The handler as the kernel knows it: its own where it is ours that is installed.
    pub fn seen_by_kernel(&self, address: usize) -> usize {
        if address == self.ours {
            self.kernel.load(Relaxed)
        } else {
            address
        }
    }
}

/// SIGIO: a file descriptor of the kernel's is ready.
extern "C" fn on_input(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(page) = page::page() else { return };
    bound::disturb();
    if masks::keep(signal) {
        return;
    }
    if present::is_event() {
        if !rest::is_resting() {
            input::keep();
            return;
        }
        // The host sends the signal also when it has room again for what the guest says, at whatever instant that is.
        if !rest::has_input() {
            return;
        }
    }
    rest::note();
    if rest::is_resting() {
        bound::come_back(page);
    }
    exclusively(|| {
        // SAFETY: the address that the kernel installed with SA_SIGINFO.
        let kernel_handler = unsafe { sys::handler(INPUT_HANDLER.load(Relaxed)) };
        fill_stack_below(0);
        input::expect_host();
        shares::interrupt(page, IN_USER.load(Relaxed) != 0, || kernel_handler(signal, info, context));
    });
}

/// SIGALRM: the host timer fired, or the host sent a command. Only a reached deadline goes on to the kernel's handler.
extern "C" fn on_alarm(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(page) = page::page() else { return };
    count(&page.alarms);
    bound::disturb();
    if masks::keep(signal) {
        return;
    }
    let stub = IN_USER.load(Relaxed);
    let in_user = stub != 0;
    let mut aside_ns = None;
    if present::is_event() {
        // It has ended the kernel's sleep, if it slept.
        if !spin::look(page, stub) {
            exclusively(keeper::arm_look);
            return;
        }
        keeper::heed_host(page);
        keeper::idle(page);
    } else {
        keeper::heed_host(page);
        if in_user {
            aside_ns = look_at_user(page, stub);
        } else {
            aside_ns = bound::is_bound().then(aside::own_work_ns);
            present::look(page);
        }
    }
    exclusively(|| {
        // SAFETY: the addresses that the kernel installed with SA_SIGINFO.
        let call = |signal, kernel: &AtomicUsize| unsafe { sys::handler(kernel.load(Relaxed))(signal, info, context) };
        if serve_due(page, in_user, call) == 0 {
            count(&page.alarms_not_due);
        } else {
            aside_ns = None;
            aside::give_back();
            bound::stop_for_kernel();
        }
        if in_user {
            fill_stack_below(0);
        }
        if present::is_event() {
            if input::take_kept() {
                input::expect_host();
                call(libc::SIGIO, &INPUT_HANDLER);
            }
            keeper::arm_look();
            return;
        }
        keeper::arm(page, if in_user { page.user_slack_ns.load(Relaxed) } else { keeper::KERNEL_SLACK_NS });
        if let Some(begin_ns) = aside_ns {
            aside::take_back_work(begin_ns);
        }
    });
}

/// Looks at the clock where an alarm has come while `stub` runs, and stops that where it is not to go on. Returns where the work
/// of this began that is not the stub's, nanoseconds as of [`aside::own_work_ns`]; `None` where nothing bounds the clock.
fn look_at_user(page: &ClockPage, stub: c_int) -> Option<u64> {
    let aside_ns = bound::is_bound().then(|| {
        aside::begin();
        aside::own_work_ns()
    });
    let now = present::look(page);
    let stands = !bound::tell(page);
    if shares::has_ended_slice(now) {
        // Its stub stops, and its program waits before the kernel lets it run on.
        bound::stop_for_kernel();
        sys::stop(stub);
    } else if stands {
        bound::stop(stub);
    }
    aside_ns
}

/// Serves what is due, alarms and arrivals, each by `call` of the kernel's handler of a signal; returns how many there were.
/// In a critical section, in the handler of a signal.
fn serve_due(page: &ClockPage, in_user: bool, call: impl Fn(c_int, &AtomicUsize)) -> u32 {
    let mut served = 0;
    while served < SERVED_AT_ONCE_MAX {
        let at = standing::serve_at(present::look(page), keeper::next());
        let interrupt = |user_word, signal, handler| {
            fill_stack_below(user_word);
            shares::interrupt(page, in_user, || standing::during(at, || call(signal, handler)));
        };
        if is_due(page, at) {
            interrupt(u64::from(in_user) * USER_WORD, libc::SIGALRM, &ALARM_HANDLER);
        } else if !has_arrived(page, at, || interrupt(0, libc::SIGIO, &INPUT_HANDLER)) {
            break;
        }
        served += 1;
    }
    served
}

/// Takes a deadline that is served at `at` into account; false if there is none. Late is by how much the clock, as looked at
/// last, is past it. In a critical section.
fn is_due(page: &ClockPage, at: VirtualInstant) -> bool {
    match keeper::take_alarm(at) {
        Alarm::NotYet => false,
        Alarm::Due { lateness } => {
            page.record_lateness(lateness.as_ns() + present::latest(page).since(at).as_ns());
            rest::note_alarm();
            true
        }
    }
}

/// Tells the kernel of what there is to read at `at` by `tell`, which calls its handler of input; false if there is nothing.
/// In a critical section.
fn has_arrived(page: &ClockPage, at: VirtualInstant, tell: impl FnOnce()) -> bool {
    if INPUT_HANDLER.load(Relaxed) == 0 {
        return false;
    }
    let arrived = input::report(page, at, tell);
    if arrived {
        rest::note_alarm();
    }
    arrived
}

/// Calls the kernel's alarm handler if its deadline is reached, by the clock as read last, and it could be interrupted here
/// by a signal; tells whether it did.
pub fn deliver_if_due(page: &ClockPage) -> bool {
    if masks::is_exclusive() || ALARM_HANDLER.load(Relaxed) == 0 {
        return false;
    }
    let Some(top) = free_signal_stack() else { return false };
    exclusively(|| {
        let mut served = 0;
        // The caller has just read the clock.
        let mut now = present::latest(page);
        while served < SERVED_AT_ONCE_MAX {
            let at = standing::serve_at(now, keeper::next());
            // SAFETY: the stack is free, and stays ours in the critical section; handlers take what a signal's would.
            let serve = |signal, kernel| standing::during(at, || unsafe { call_handler(top, signal, kernel) });
            let call = |signal, kernel| shares::interrupt(page, false, || serve(signal, kernel));
            if is_due(page, at) {
                call(libc::SIGALRM, &ALARM_HANDLER);
            } else if !has_arrived(page, at, || call(libc::SIGIO, &INPUT_HANDLER)) {
                break;
            }
            served += 1;
            now = present::look(page);
        }
        served > 0
    })
}

/// Whether user code runs, or is about to.
pub fn runs_user_code() -> bool {
    IN_USER.load(Relaxed) != 0
}

/// The kernel is about to let the stub `pid` run: what is due is delivered before, and what will be due interrupts it.
/// False if it is not to run, since it has to stop at once; a stub that runs for the kernel does not.
pub fn before_user(page: &ClockPage, pid: c_int, is_for_kernel: bool) -> bool {
    standing::go();
    bound::tell_and_wait(page);
    if !is_for_kernel {
        keeper::remind_of_alarm();
    }
    present::look(page);
    deliver_if_due(page);
    // From here on an interrupt stops the stub by a signal.
    IN_USER.store(pid, Relaxed);
    if !is_for_kernel && stops::make(page, pid) {
        IN_USER.store(0, Relaxed);
        aside::give_back();
        shares::turned_back(page);
        return false;
    }
    drive::stub_runs(pid);
    shares::resume(page, pid);
    keeper::arm_for_user(page);
    true
}

/// The kernel has turned to a stub that stopped.
pub fn after_user(page: &ClockPage) {
    if IN_USER.load(Relaxed) != 0 {
        IN_USER.store(0, Relaxed);
        aside::end();
        drive::step_entry();
        drive::stub_stopped();
        shares::stopped(page);
        if present::is_event() {
            // No step may go unnoticed beyond the bound: what the kernel did there would depend on where the bound is.
            bound::tell_and_wait(page);
        }
    }
}
