//! The time-stamp counter of the kernel's own process, which gives it up while its programs run.
//!
//! **Problem.** Stubs run with the counter disabled (`programs/counter.rs`). Whether it is, is a bit of a control
//! register, CR4, which the host writes whenever it switches between two processes that differ in it: twice for each
//! entry of a program into its kernel. In a virtual machine of an AMD processor the hypervisor takes an exit for each
//! such write, and the two cost as much as the switches themselves.
//!
//! **The rule.** Between two processes that both have it disabled nothing is written. So before a stub runs the kernel's
//! process gives its counter up, and from then on reads the host's clock by system call: some tenths of a microsecond
//! instead of hundredths. A kernel whose programs run reads it a few times for each of their entries; one that only
//! forwards packets reads it for each of them, and runs no program for long. So once the readings since a stub ran last
//! have cost as much as to take the counter back and to give it up once more, it is taken back. That is how to hire skis
//! without knowing the weather (Karlin et al., "Competitive snoopy caching", Algorithmica 3, 1988): never more than twice
//! the best.
//!
//! **Where.** On a processor of its own, or where the hypervisor takes no exit, the writes cost less than the system calls
//! would. So both are measured when the kernel starts, and the counter is never given up unless that pays.
//!
//! **Who reads it** while it is given up faults. All readings of this library and of the kernel come through
//! [`host_now`] and `time/drive.rs`. What is not foreseen, a function of libc that reads the clock for itself, is put
//! right: the signal comes to us first, and the counter is there when the instruction is carried out again ([`mend`]).
//!
//! Handlers take the counter back in the middle of everything, which harms nobody; they never give it up.

use core::arch::x86_64::_rdtsc;
use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Flag, Word};
use virtual_time::HostInstant;

use crate::host::page::{count, ClockPage};
use crate::host::{page, real, sys};

const PR_SET_TSC: c_int = 26;
const PR_TSC_ENABLE: c_uint = 1;
const PR_TSC_SIGSEGV: c_uint = 2;

/// What says of a fault that no address was wrong.
const SI_KERNEL: c_int = 0x80;
const RDTSC: [u8; 2] = [0x0F, 0x31];
const RDTSCP: [u8; 3] = [0x0F, 0x01, 0xF9];

/// How often the costs are measured. The least is taken: the host may do something else in between.
const TRIALS: usize = 16;

/// Readings that an entry of a program takes; it has to be worth so many system calls to write the register no more.
const READINGS_PER_ENTRY: u64 = 4;

/// What the host may say instead of a measurement, in the clock page.
const NEVER: u64 = 1;
const ALWAYS: u64 = 2;

/// Whether the counter is given up.
struct OwnCounter {
    /// Whether this process may read it.
    enabled: Flag,
    /// Readings by system call that cost as much as to take it back and to give it up; 0: it is not given up.
    calls_max: Word,
    /// The same less those since a stub ran last.
    calls_left: Word,
}

static COUNTER: OwnCounter = OwnCounter { enabled: Flag::new(true), calls_max: Word::new(0), calls_left: Word::new(0) };

/// Measures what it costs, and chooses.
pub fn start(page: &ClockPage) {
    let wish = page.own_counter_wish.load(Relaxed);
    if wish == NEVER {
        return;
    }
    let least_ns = |what: fn()| (0..TRIALS).map(|_| trial_ns(what)).min().unwrap_or(0);
    let both_ns = least_ns(|| {
        set(PR_TSC_SIGSEGV);
        set(PR_TSC_ENABLE);
    });
    let writes_ns = both_ns.saturating_sub(2 * least_ns(enable));
    let call_ns = least_ns(|| {
        by_call_ns();
    })
    .max(1);
    if wish == ALWAYS || writes_ns > READINGS_PER_ENTRY * call_ns {
        COUNTER.calls_max.set((both_ns / call_ns).max(1));
    }
    page.counter_switch_ns.store(writes_ns, Relaxed);
    page.counter_calls_max.store(COUNTER.calls_max.get(), Relaxed);
}

fn trial_ns(what: fn()) -> u64 {
    let begin_ns = by_counter_ns();
    what();
    by_counter_ns() - begin_ns
}

/// The kernel is about to let a stub run.
pub fn give_up() {
    let calls_max = COUNTER.calls_max.get();
    if calls_max == 0 {
        return;
    }
    COUNTER.calls_left.set(calls_max);
    if COUNTER.enabled.get() {
        COUNTER.enabled.set(false);
        set(PR_TSC_SIGSEGV);
        if let Some(page) = page::page() {
            count(&page.counter_given_up);
        }
    }
}

/// It may be read from here on.
pub fn take_back() {
    enable();
    COUNTER.enabled.set(true);
}

/// Puts the counter out of reach of a new stub, which calls it, and of all that it forks.
pub fn disable() {
    set(PR_TSC_SIGSEGV);
}

/// Gives the counter back to another child of the kernel, for which it is no secret.
pub fn enable() {
    set(PR_TSC_ENABLE);
}

/// Whether it may be read.
#[inline]
pub fn is_enabled() -> bool {
    COUNTER.enabled.get()
}

/// It, where it may be read.
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { _rdtsc() }
}

/// The host's monotonic clock, by the counter or without.
#[inline]
pub fn host_now() -> HostInstant {
    HostInstant::from_ns(host_ns())
}

fn host_ns() -> u64 {
    if is_enabled() {
        return by_counter_ns();
    }
    let left = COUNTER.calls_left.get();
    if left == 0 {
        take_back();
        return by_counter_ns();
    }
    COUNTER.calls_left.set(left - 1);
    if let Some(page) = page::page() {
        count(&page.counter_calls);
    }
    by_call_ns()
}

fn by_counter_ns() -> u64 {
    let mut time = sys::timespec(0);
    // SAFETY: it fills the structure.
    unsafe { real::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    sys::nanoseconds(time)
}

fn by_call_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Tells the handler of SIGSEGV whether the fault was an instruction that reads the counter, and may now be carried out again.
///
/// # Safety
/// The arguments are those of the handler.
pub unsafe fn mend(info: *const libc::siginfo_t, context: *const c_void) -> bool {
    // SAFETY: the host has filled both; what was to be carried out is there, and only as many bytes of it are read as are known
    // to be the instruction's.
    let is_reading = unsafe {
        let context = &*context.cast::<libc::ucontext_t>();
        let code = context.uc_mcontext.gregs[libc::REG_RIP as usize] as *const u8;
        let is = |bytes: &[u8]| bytes.iter().enumerate().all(|(at, byte)| *code.add(at) == *byte);
        (*info).si_code == SI_KERNEL && !code.is_null() && (is(&RDTSC) || is(&RDTSCP))
    };
    if is_reading {
        take_back();
    }
    is_reading
}

fn set(how: c_uint) {
    sys::prctl(PR_SET_TSC, how);
}
