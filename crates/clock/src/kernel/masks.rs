//! When signals have to wait: critical sections of ours, and the kernel's own mask.
//!
//! **Sections.** The kernel installs its handlers so that SIGALRM and SIGIO mask each other. Where they are called
//! directly (`occasions/serving.rs`) the masking is done here, without system calls: a handler of ours that finds a
//! section entered only keeps its signal, which is raised again afterwards. The same guards all state that handlers
//! must not find half changed.
//!
//! **The kernel's mask.** Around its idle sleep the kernel blocks SIGALRM, lest an alarm be served between its look at the
//! timer and the sleep (os_idle_sleep). Two system calls, where a jump over idle time needs none, and there is one for
//! almost every packet. So the mask is a flag at first: a handler of ours that finds it set keeps its signal, which is raised
//! again when the kernel takes the mask away. Only before a real sleep the signals are blocked, and what was kept is raised
//! again, since then it has to end the sleep. SIGIO is masked with SIGALRM, so that input ends the sleep, too. The kernel
//! is told from helper threads that share its memory by the address of the mask that it hands from one call to the next.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{compiler_fence, Ordering::SeqCst};

use interrupts::{Count, Flag, Word};

use crate::host::sys;

/// The signals that are blocked while the kernel sleeps.
pub const SIGNALS: u64 = sys::mask_of(libc::SIGALRM) | sys::mask_of(libc::SIGIO);

/// Which signals wait, and what for.
struct Masks {
    /// A section is entered: a handler of the kernel's runs, or what handlers share is being changed.
    busy: Flag,
    /// Signals that are kept.
    alarm_later: Flag,
    input_later: Flag,
    /// Where the kernel keeps the mask from before it masked its signals; 0 while it does not mask them.
    mask_address: Count,
    /// The signals are really blocked, and the mask under which they were not.
    blocked: Flag,
    open_mask: Word,
}

static MASKS: Masks = Masks {
    busy: Flag::new(false),
    alarm_later: Flag::new(false),
    input_later: Flag::new(false),
    mask_address: Count::new(0),
    blocked: Flag::new(false),
    open_mask: Word::new(0),
};

/// State that is touched in critical sections only, or before anything else runs.
pub struct Exclusive<T>(UnsafeCell<T>);

// SAFETY: the kernel is one thread, and its handlers wait until a section is left.
unsafe impl<T> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    /// A cell with its first value.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The address of the state. Whoever makes a reference of it vouches for the section, and that there is no other reference.
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Runs `f` in a critical section, into which sections may be nested. Signals that came meanwhile are raised again.
pub fn exclusively<T>(f: impl FnOnce() -> T) -> T {
    // A handler that comes between the two leaves it as it was.
    let nested = is_exclusive();
    MASKS.busy.set(true);
    compiler_fence(SeqCst);
    let result = f();
    compiler_fence(SeqCst);
    if !nested {
        MASKS.busy.set(false);
        if !is_flag_set() {
            raise_kept();
        }
    }
    result
}

/// Whether a section is entered.
pub fn is_exclusive() -> bool {
    MASKS.busy.get()
}

/// Called in the handler of `signal`: keeps the signal if it has to wait, and tells whether it does.
pub fn keep(signal: c_int) -> bool {
    let keeps = is_exclusive() || is_flag_set();
    if keeps {
        let later = if signal == libc::SIGALRM { &MASKS.alarm_later } else { &MASKS.input_later };
        later.set(true);
    }
    keeps
}

/// Raises the signals that were kept. In a handler they stay pending until it returns.
fn raise_kept() {
    for (kept, signal) in [(&MASKS.alarm_later, libc::SIGALRM), (&MASKS.input_later, libc::SIGIO)] {
        if kept.get() {
            kept.set(false);
            sys::raise(signal);
        }
    }
}

/// The kernel is about to idle and masks its signals; it keeps the mask from before at `address`.
pub fn mask(address: usize) {
    MASKS.mask_address.set(address);
}

/// Whether the caller is the kernel about to idle, which hands over the mask that it keeps at `address`.
pub fn is_masked_at(address: usize) -> bool {
    address != 0 && MASKS.mask_address.get() == address
}

/// Whether the kernel masks its signals.
pub fn is_masked() -> bool {
    MASKS.mask_address.get() != 0
}

/// Whether it masks them by the flag alone. A handler that runs all the same has to keep its signal.
fn is_flag_set() -> bool {
    is_masked() && !MASKS.blocked.get()
}

/// The kernel has idled and takes its mask away.
pub fn unmask() {
    let blocked = MASKS.blocked.get();
    MASKS.mask_address.set(0);
    if blocked {
        MASKS.blocked.set(false);
        sys::set_mask(MASKS.open_mask.get());
    }
    raise_kept();
}

/// Blocks the signals, which from here on get through only in a sleep. Returns the mask to sleep under.
pub fn block() -> u64 {
    if !MASKS.blocked.get() {
        MASKS.open_mask.set(sys::block(SIGNALS));
        MASKS.blocked.set(true);
        raise_kept();
    }
    MASKS.open_mask.get()
}
