//! How signals reach the kernel: its alarm, its input, and its sleep when it idles.
//!
//! **Cost.** A packet-forwarding kernel takes a timer interrupt for almost every packet. As a host signal each costs a
//! timer interrupt of the host, a signal frame with the extended CPU state, and sigreturn: two microseconds. But the
//! kernel also reads its clock a dozen times a packet, so a reached deadline is nearly always *noticed* before a signal
//! could arrive; and at idle it is we who wait for it. In both cases the kernel's handler is called directly, as the
//! host would call it: on the signal stack (the kernel finds its interrupt stack by the stack pointer), with the
//! arguments of a signal, and with no other handler in between. The real signal remains for user code that must be
//! preempted, and as a backstop.
//!
//! **Masks.** The kernel installs its handlers so that SIGALRM and SIGIO mask each other. During a direct call the
//! masking is done here, without system calls: `BUSY` is set, and a handler of ours that finds it set only notes its
//! signal, which is raised again afterwards. The same flag guards the timer while it is set.
//!
//! **Noted signals.** With its interrupts off the kernel does not block signals, it *notes* them. At idle this is a trap:
//! the kernel enters its idle loop with interrupts off, and what it has noted but not handled must keep it from
//! sleeping. (The stock code relies on the host timer being off then, and on the next tick for input.) So a signal
//! since the last idle makes idle return at once: the kernel enables interrupts, handles what it had noted, and comes
//! back. SIGIO is blocked with SIGALRM while idle looks (`interpose::sigprocmask`).
//!
//! **The event drive.** Signals come when the host sends them. So that a run depends on nothing but itself, none has an
//! effect at any other point than where the kernel rests: at idle, with nothing noted. There is no preemption; input waits,
//! and so do commands. Only a program that spins is interrupted (`spin.rs`).

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::mem::{zeroed, MaybeUninit};
use core::ptr;
use core::sync::atomic::{compiler_fence, AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use virtual_time::{Alarm, Sleep};

use crate::page::{count, ClockPage};
use crate::{bound, drive, keeper, spin, sys, tap};

/// How long before a deadline, in host time, an idle kernel wakes up to watch for it. A sleeping core takes tens of
/// microseconds to come back, more in a virtual machine and milliseconds when something else runs on it; all that would
/// be the guest's lateness. Guests with a timer a millisecond never sleep, others watch for a small part of their time.
const WATCH_NS: u64 = 1_000_000;

/// Alarms served one after the other before the interrupted code goes on. Packets are handled inside the handler, and when
/// it is done the next timer is often due.
const SERVED_AT_ONCE_MAX: u32 = 8;

/// A word that means, in the kernel's registers, that user code was interrupted: two integers of one.
const USER_WORD: u64 = 0x1_0000_0001;

/// What the first frames of the kernel's alarm handler take of its stack, at most; the stock kernel's take fewer than 32.
const FIRST_FRAMES_WORDS: usize = 64;

static ALARM_HANDLER: AtomicUsize = AtomicUsize::new(0);
static INPUT_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// The serial lines that the host writes to.
static LINES: [AtomicI32; 2] = [AtomicI32::new(-1), AtomicI32::new(-1)];

/// A critical section: a handler of the kernel's runs, or the timer is being set.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Signals that came in a critical section.
static ALARM_LATER: AtomicBool = AtomicBool::new(false);
static INPUT_LATER: AtomicBool = AtomicBool::new(false);

/// The kernel sleeps, or is about to, with nothing left to do.
static RESTS: AtomicBool = AtomicBool::new(false);
/// Input that came on the event drive while the kernel did not rest.
static INPUT_AT_REST: AtomicBool = AtomicBool::new(false);

/// A signal went to the kernel since it idled last.
static NOTED: AtomicBool = AtomicBool::new(false);

/// An alarm was served while the kernel rests. Its deadline is gone, and the next one is not known before the kernel has
/// woken up and set it: until then nothing may be jumped over.
static SERVED_AT_REST: AtomicBool = AtomicBool::new(false);

/// The stub whose user code runs: it was resumed, and the kernel has not looked at it since. 0: none.
static IN_USER: AtomicI32 = AtomicI32::new(0);

/// The kernel's signal stack; both zero until it is known.
static STACK_LOW: AtomicUsize = AtomicUsize::new(0);
static STACK_HIGH: AtomicUsize = AtomicUsize::new(0);

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

/// Remembers the serial lines that the host writes to.
pub fn start(lines: [c_int; 2]) {
    for (known, line) in LINES.iter().zip(lines) {
        known.store(line, Relaxed);
    }
}

/// Whether the host has written something that the kernel has not read.
fn has_input() -> bool {
    LINES.iter().any(|line| sys::is_readable(line.load(Relaxed)))
}

/// Runs `f` in a critical section, into which sections may be nested. Signals that came meanwhile are raised again.
pub fn exclusively<T>(f: impl FnOnce() -> T) -> T {
    let nested = BUSY.swap(true, Relaxed);
    compiler_fence(SeqCst);
    let result = f();
    compiler_fence(SeqCst);
    if !nested {
        BUSY.store(false, Relaxed);
        // In a handler they stay pending until it returns.
        if ALARM_LATER.swap(false, Relaxed) {
            sys::raise(libc::SIGALRM);
        }
        if INPUT_LATER.swap(false, Relaxed) {
            sys::raise(libc::SIGIO);
        }
    }
    result
}

/// SIGIO: a file descriptor of the kernel's is ready.
extern "C" fn on_input(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(page) = keeper::page() else { return };
    bound::disturb();
    if BUSY.load(Relaxed) {
        INPUT_LATER.store(true, Relaxed);
        return;
    }
    if keeper::is_event() {
        if !is_resting() {
            INPUT_AT_REST.store(true, Relaxed);
            return;
        }
        // The host sends the signal also when it has room again for what the guest says, at whatever instant that is.
        if !has_input() {
            return;
        }
    }
    NOTED.store(true, Relaxed);
    if is_resting() {
        bound::come_back(page);
    }
    exclusively(|| {
        // SAFETY: the address that the kernel installed with SA_SIGINFO.
        let kernel_handler = unsafe { sys::handler(INPUT_HANDLER.load(Relaxed)) };
        fill_stack_below(0);
        tap::expect_host();
        kernel_handler(signal, info, context);
    });
}

/// Overwrites what earlier calls have left on the stack. The kernel's handlers pass on registers of which they have not set
/// all (arch/um/os-Linux/signal.c): one goes into its random numbers, where what is left there would be instants of the
/// host; another tells whether user code was interrupted, to which the tick then charges its time.
#[inline(never)]
fn fill_stack_below(word: u64) {
    /// The registers are below 2,696 bytes of extended state, on a stack of 16 KiB.
    const WORDS: usize = 768;
    let mut words = MaybeUninit::<[u64; WORDS]>::uninit();
    for place in 0..WORDS {
        // SAFETY: within the array; volatile, since nothing that the compiler sees reads it.
        unsafe { words.as_mut_ptr().cast::<u64>().add(place).write_volatile(word) };
    }
}

/// SIGALRM: the host timer fired, or the host sent a command. Only a reached deadline goes on to the kernel's handler.
extern "C" fn on_alarm(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(page) = keeper::page() else { return };
    count(&page.alarms);
    bound::disturb();
    if BUSY.load(Relaxed) {
        ALARM_LATER.store(true, Relaxed);
        return;
    }
    let in_user = IN_USER.load(Relaxed) != 0;
    if keeper::is_event() {
        // It has ended the kernel's sleep, if it slept.
        if !spin::look(page, IN_USER.load(Relaxed)) {
            exclusively(keeper::arm_look);
            return;
        }
        keeper::heed_host(page);
        keeper::idle(page);
    } else {
        keeper::heed_host(page);
        keeper::look(page);
        if in_user && !bound::tell(page) {
            // Its stub stops, and the kernel waits before it lets it run on.
            sys::stop(IN_USER.load(Relaxed));
        }
    }
    exclusively(|| {
        let mut served = 0;
        while served < SERVED_AT_ONCE_MAX {
            // SAFETY: the addresses that the kernel installed with SA_SIGINFO.
            let alarm_handler = unsafe { sys::handler(ALARM_HANDLER.load(Relaxed)) };
            let tell_arrival = || {
                fill_stack_below(0);
                // SAFETY: as above.
                let input_handler = unsafe { sys::handler(INPUT_HANDLER.load(Relaxed)) };
                input_handler(libc::SIGIO, info, context);
            };
            if is_due(page) {
                fill_stack_below(u64::from(in_user) * USER_WORD);
                alarm_handler(signal, info, context);
            } else if !has_arrived(page, tell_arrival) {
                break;
            }
            served += 1;
        }
        if served == 0 {
            count(&page.alarms_not_due);
        }
        if in_user {
            fill_stack_below(0);
        }
        if keeper::is_event() {
            if INPUT_AT_REST.swap(false, Relaxed) {
                // SAFETY: as above.
                let input_handler = unsafe { sys::handler(INPUT_HANDLER.load(Relaxed)) };
                tap::expect_host();
                input_handler(libc::SIGIO, info, context);
            }
            keeper::arm_look();
            return;
        }
        keeper::arm(page, if in_user { keeper::USER_SLACK_NS } else { keeper::KERNEL_SLACK_NS });
    });
}

/// Takes a reached deadline into account; false if there is none. In a critical section.
fn is_due(page: &ClockPage) -> bool {
    match keeper::take_alarm() {
        Alarm::NotYet => false,
        Alarm::Due { lateness } => {
            page.record_lateness(lateness.as_ns());
            NOTED.store(true, Relaxed);
            SERVED_AT_REST.store(is_resting(), Relaxed);
            true
        }
    }
}

/// Tells the kernel of frames that have arrived by `tell`, which calls its handler of input; false if there are none. In a
/// critical section.
fn has_arrived(page: &ClockPage, tell: impl FnOnce()) -> bool {
    if INPUT_HANDLER.load(Relaxed) == 0 {
        return false;
    }
    let arrived = tap::report(page, tell);
    if arrived {
        NOTED.store(true, Relaxed);
        SERVED_AT_REST.store(is_resting(), Relaxed);
    }
    arrived
}

/// Calls the kernel's alarm handler if its deadline is reached and it could be interrupted here by a signal; tells whether
/// it did.
pub fn deliver_if_due(page: &ClockPage) -> bool {
    if BUSY.load(Relaxed) || ALARM_HANDLER.load(Relaxed) == 0 {
        return false;
    }
    let Some(top) = free_signal_stack() else { return false };
    exclusively(|| {
        let mut served = 0;
        while served < SERVED_AT_ONCE_MAX {
            // SAFETY: the stack is free, and stays ours in the critical section; handlers take what a signal's would.
            let call = |signal, kernel| unsafe { call_handler(top, signal, kernel) };
            if is_due(page) {
                call(libc::SIGALRM, &ALARM_HANDLER);
            } else if !has_arrived(page, || call(libc::SIGIO, &INPUT_HANDLER)) {
                break;
            }
            served += 1;
        }
        served > 0
    })
}

/// The top of the kernel's signal stack, unless we are on it or it is not there yet.
fn free_signal_stack() -> Option<usize> {
    if STACK_HIGH.load(Relaxed) == 0 {
        // SAFETY: sigaltstack fills the structure.
        let stack = unsafe {
            let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
            sys::signal_stack(stack.as_mut_ptr());
            stack.assume_init()
        };
        if stack.ss_flags & libc::SS_DISABLE != 0 || stack.ss_size == 0 {
            return None;
        }
        STACK_LOW.store(stack.ss_sp as usize, Relaxed);
        STACK_HIGH.store(stack.ss_sp as usize + stack.ss_size, Relaxed);
    }
    let (low, high) = (STACK_LOW.load(Relaxed), STACK_HIGH.load(Relaxed));
    let here: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    (here < low || here >= high).then_some(high & !0xF)
}

/// Calls the kernel's handler of `signal` on the stack that ends at `top`, which is a multiple of 16.
///
/// # Safety
/// Nothing may be using that stack.
unsafe fn call_handler(top: usize, signal: c_int, kernel: &AtomicUsize) {
    // SAFETY: for these C structures zeros are a value; the kernel reads the registers of the interrupted code from the
    // context, only to tell user code from its own.
    let (mut info, mut context): (libc::siginfo_t, libc::ucontext_t) = unsafe { (zeroed(), zeroed()) };
    info.si_signo = signal;
    // What tells whether user code was interrupted is below the handler's first frames (`fill_stack_below`).
    // SAFETY: the stack is free.
    unsafe { ptr::write_bytes((top as *mut u64).sub(FIRST_FRAMES_WORDS), 0, FIRST_FRAMES_WORDS) };
    // SAFETY: r12 is preserved by the handler, a C function, and so brings our stack back.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {handler}",
            "mov rsp, r12",
            top = in(reg) top,
            handler = in(reg) kernel.load(Relaxed),
            inout("rdi") signal => _,
            inout("rsi") &raw mut info => _,
            inout("rdx") &raw mut context => _,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// The kernel is about to let the stub `pid` run: what is due is delivered before, and what will be due interrupts it.
pub fn before_user(page: &ClockPage, pid: c_int) {
    bound::tell_and_wait(page);
    deliver_if_due(page);
    drive::stub_runs(pid);
    IN_USER.store(pid, Relaxed);
    keeper::arm_for_user(page);
}

/// The kernel has turned to a stub that stopped.
pub fn after_user() {
    if IN_USER.swap(0, Relaxed) != 0 {
        drive::step_entry();
        drive::stub_stopped();
    }
}

/// The kernel's idle loop: jumps to the deadline, or sleeps under `mask` until it, or until a signal. A held clock has no
/// deadline, nor has a timer that is off. Returns at once when the kernel may have noted a signal that it has not handled.
///
/// # Safety
/// `mask` must point to a signal mask; SIGALRM and SIGIO must be blocked.
pub unsafe fn idle(page: &ClockPage, mask: *const libc::sigset_t) {
    count(&page.idle_waits);
    if !keeper::is_event() {
        keeper::heed_host(page);
    }
    if NOTED.swap(false, Relaxed) {
        return;
    }
    let before = keeper::both_ns();
    SERVED_AT_REST.store(false, Relaxed);
    RESTS.store(true, Relaxed);
    // SAFETY: the caller's mask.
    let due = unsafe { rest(page, mask) };
    RESTS.store(false, Relaxed);
    let after = keeper::both_ns();
    page.idle_virtual_ns.fetch_add(after.0 - before.0, Relaxed);
    page.idle_host_ns.fetch_add(after.1 - before.1, Relaxed);
    if due {
        deliver_if_due(page);
    }
    // What came during the sleep is handled as soon as the kernel has returned from it.
    NOTED.store(false, Relaxed);
}

/// Whether the kernel has nothing left to do.
pub fn is_resting() -> bool {
    RESTS.load(Relaxed)
}

/// Whether the kernel rests and has yet to set its next deadline.
pub fn has_served_at_rest() -> bool {
    is_resting() && SERVED_AT_REST.load(Relaxed)
}

/// Sleeps as the clock says; tells whether the deadline is reached.
unsafe fn rest(page: &ClockPage, mask: *const libc::sigset_t) -> bool {
    keeper::heed_host(page);
    if INPUT_AT_REST.swap(false, Relaxed) && has_input() {
        sys::raise(libc::SIGIO);
        // SAFETY: the caller's mask, under which the signal comes through.
        unsafe { sys::sleep(Some(0), mask) };
        return false;
    }
    loop {
        // SAFETY: the caller's mask.
        if !has_served_at_rest() && unsafe { !bound::pass(page, mask) } {
            if was_disturbed(page) {
                return false;
            }
            continue;
        }
        let left_ns = match keeper::idle(page) {
            Sleep::No => return true,
            Sleep::Until(instant) => Some(instant.as_ns().saturating_sub(sys::host_now().as_ns())),
            Sleep::Forever => None,
        };
        // On the other drives virtual time does not advance meanwhile, so waking late does no harm.
        let watches = keeper::is_wall() && left_ns.is_some_and(|left_ns| left_ns <= WATCH_NS);
        if watches {
            while matches!(keeper::idle(page), Sleep::Until(_)) {
                core::hint::spin_loop();
            }
            continue;
        }
        let sleep_ns = left_ns.map(|left_ns| if keeper::is_wall() { left_ns - WATCH_NS } else { left_ns });
        // SAFETY: the caller's mask.
        let undisturbed = unsafe { sys::sleep(sleep_ns, mask) };
        if !undisturbed && was_disturbed(page) {
            return false;
        }
    }
}

/// A signal has ended the sleep: does what the host has ordered; tells whether the kernel has to see to something. An alarm
/// is the host's way to say that there is a command; on the event drive the kernel sees none of it.
fn was_disturbed(page: &ClockPage) -> bool {
    keeper::heed_host(page);
    keeper::idle(page);
    !keeper::is_event() || NOTED.load(Relaxed)
}
