//! When signals have to wait: critical sections of ours, and the kernel's own mask.
//!
//! **Sections.** The kernel installs its handlers so that SIGALRM and SIGIO mask each other. Where they are called directly
//! (`delivery.rs`) the masking is done here, without system calls: a handler of ours that finds a section entered only keeps
//! its signal, which is raised again afterwards. The same guards all state that handlers must not find half changed.
//!
//! **The kernel's mask.** Around its idle sleep the kernel blocks SIGALRM, lest an alarm be served between its look at the
//! timer and the sleep (os_idle_sleep). Two system calls, where a jump over idle time needs none, and there is one for
//! almost every packet. So the mask is a flag at first: a handler of ours that finds it set keeps its signal, which is raised
//! again when the kernel takes the mask away. Only before a real sleep the signals are blocked, and what was kept is raised
//! again, since then it has to end the sleep. SIGIO is masked with SIGALRM, so that input ends the sleep, too. The kernel
//! is told from helper threads that share its memory by the address of the mask that it hands from one call to the next.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{compiler_fence, AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use crate::sys;

/// What is blocked while the kernel sleeps.
const SIGNALS: u64 = sys::mask_of(libc::SIGALRM) | sys::mask_of(libc::SIGIO);

/// A section is entered: a handler of the kernel's runs, or what handlers share is being changed.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Signals that are kept.
static ALARM_LATER: AtomicBool = AtomicBool::new(false);
static INPUT_LATER: AtomicBool = AtomicBool::new(false);

/// Where the kernel keeps the mask from before it masked its signals; 0 while it does not mask them.
static MASK_ADDRESS: AtomicUsize = AtomicUsize::new(0);
/// The signals are really blocked, and the mask under which they were not.
static BLOCKED: AtomicBool = AtomicBool::new(false);
static OPEN_MASK: AtomicU64 = AtomicU64::new(0);

/// State that is touched in critical sections only, or before anything else runs.
pub struct Exclusive<T>(UnsafeCell<T>);

// SAFETY: the kernel is one thread, and its handlers wait until a section is left.
unsafe impl<T> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    /// With its first value.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Where it is. Whoever makes a reference of it vouches for the section, and that there is no other reference.
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Runs `f` in a critical section, into which sections may be nested. Signals that came meanwhile are raised again.
pub fn exclusively<T>(f: impl FnOnce() -> T) -> T {
    // A handler that comes between the two leaves it as it was.
    let nested = is_exclusive();
    BUSY.store(true, Relaxed);
    compiler_fence(SeqCst);
    let result = f();
    compiler_fence(SeqCst);
    if !nested {
        BUSY.store(false, Relaxed);
        if !is_flag_set() {
            raise_kept();
        }
    }
    result
}

/// Whether a section is entered.
pub fn is_exclusive() -> bool {
    BUSY.load(Relaxed)
}

/// In the handler of `signal`: keeps it, if it has to wait; tells whether it has.
pub fn keep(signal: c_int) -> bool {
    let keeps = is_exclusive() || is_flag_set();
    if keeps {
        let later = if signal == libc::SIGALRM { &ALARM_LATER } else { &INPUT_LATER };
        later.store(true, Relaxed);
    }
    keeps
}

/// Raises what was kept. In a handler it stays pending until that returns.
fn raise_kept() {
    for (kept, signal) in [(&ALARM_LATER, libc::SIGALRM), (&INPUT_LATER, libc::SIGIO)] {
        if kept.load(Relaxed) {
            kept.store(false, Relaxed);
            sys::raise(signal);
        }
    }
}

/// The kernel is about to idle and masks its signals; it keeps the mask from before at `address`.
pub fn mask(address: usize) {
    MASK_ADDRESS.store(address, Relaxed);
}

/// Whether the caller is the kernel about to idle, which hands over the mask that it keeps at `address`.
pub fn is_masked_at(address: usize) -> bool {
    address != 0 && MASK_ADDRESS.load(Relaxed) == address
}

/// Whether the kernel masks its signals.
pub fn is_masked() -> bool {
    MASK_ADDRESS.load(Relaxed) != 0
}

/// Whether it does so by the flag alone: a handler that runs all the same has to keep its signal.
fn is_flag_set() -> bool {
    is_masked() && !BLOCKED.load(Relaxed)
}

/// The kernel has idled and takes its mask away.
pub fn unmask() {
    let blocked = BLOCKED.load(Relaxed);
    MASK_ADDRESS.store(0, Relaxed);
    if blocked {
        BLOCKED.store(false, Relaxed);
        sys::set_mask(OPEN_MASK.load(Relaxed));
    }
    raise_kept();
}

/// Blocks the signals, which from here on come through in a sleep only; returns the mask to sleep under.
pub fn block() -> u64 {
    if !BLOCKED.load(Relaxed) {
        OPEN_MASK.store(sys::block(SIGNALS), Relaxed);
        BLOCKED.store(true, Relaxed);
        raise_kept();
    }
    OPEN_MASK.load(Relaxed)
}
