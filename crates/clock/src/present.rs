//! The present clock, which handlers may change under whoever reads it.
//!
//! The kernel reads the clock from ordinary code and from signal handlers that interrupt it anywhere, in the middle of these
//! functions too. So the clock is in one of two slots, chosen by the parity of `GENERATION`. A change writes the idle slot
//! and then moves the generation on. A reader that finds the generation moved after its computation starts again: so it
//! never uses a torn line, and never returns an instant older than one that a handler has seen meanwhile.

use core::cell::UnsafeCell;
use core::sync::atomic::{compiler_fence, AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use virtual_time::{Clock, Drive, DriveInstant, Face, Now, VirtualInstant};

use crate::drive;
use crate::page::ClockPage;

static GENERATION: AtomicUsize = AtomicUsize::new(0);
static CLOCKS: Slots = Slots(UnsafeCell::new([Clock::HELD_AT_ZERO; 2]));
static CHANGING: AtomicBool = AtomicBool::new(false);
/// Whether the event drive drives it.
static EVENT: AtomicBool = AtomicBool::new(false);

/// The guest's face (`virtual_time::Face`).
static FACE_OWN: AtomicU64 = AtomicU64::new(1);
static FACE_RUN: AtomicU64 = AtomicU64::new(1);

struct Slots(UnsafeCell<[Clock; 2]>);

// SAFETY: the kernel is one thread; generations keep its handlers from seeing half-written values.
unsafe impl Sync for Slots {}

/// Takes over how the guest's clock reads.
pub fn start(page: &ClockPage) {
    FACE_OWN.store(page.face_own.load(Relaxed), Relaxed);
    FACE_RUN.store(page.face_run.load(Relaxed), Relaxed);
}

/// How the guest's clock reads.
pub fn face() -> Face {
    Face::new(FACE_OWN.load(Relaxed), FACE_RUN.load(Relaxed)).unwrap_or(Face::PLAIN)
}

/// What `f` makes of the present clock. Inlined, so that of the clock only what `f` needs is copied.
#[inline]
fn read<T>(f: impl Fn(&Clock) -> T) -> T {
    loop {
        let generation = GENERATION.load(Relaxed);
        // SAFETY: in bounds; a slot is rewritten only after the generation has moved on, which is checked below.
        let clock = unsafe { (*CLOCKS.0.get())[generation % 2] };
        let result = f(&clock);
        compiler_fence(SeqCst);
        if GENERATION.load(Relaxed) == generation {
            return result;
        }
    }
}

/// Puts another clock in place of the present one, unless that is being done already.
pub fn change(page: &ClockPage, f: impl Fn(&Clock) -> Clock) {
    if is_changing() {
        return;
    }
    CHANGING.store(true, Relaxed);
    let clock = read(f);
    let generation = GENERATION.load(Relaxed);
    // SAFETY: the idle slot; `CHANGING` keeps a handler from writing it at the same time.
    unsafe { (*CLOCKS.0.get())[(generation + 1) % 2] = clock };
    compiler_fence(SeqCst);
    GENERATION.store(generation.wrapping_add(1), Relaxed);
    EVENT.store(clock.drive() == Drive::Event, Relaxed);
    page.publish(&clock);
    CHANGING.store(false, Relaxed);
}

/// Whether it is being changed, and a handler has interrupted that.
pub fn is_changing() -> bool {
    CHANGING.load(Relaxed)
}

/// The present clock and the present moment.
pub fn clock() -> (Clock, Now) {
    read(|clock| (*clock, drive::both(clock.drive())))
}

/// Virtual now, told to the host too.
pub fn look(page: &ClockPage) -> VirtualInstant {
    let now = read(virtual_now);
    page.virtual_now_ns.store(now.as_ns(), Relaxed);
    now
}

/// Virtual now as read last.
pub fn latest(page: &ClockPage) -> VirtualInstant {
    VirtualInstant::from_ns(page.virtual_now_ns.load(Relaxed))
}

fn virtual_now(clock: &Clock) -> VirtualInstant {
    clock.virtual_at(drive::now(clock.drive()))
}

/// The last instant that the host lets the clock reach.
pub fn end() -> VirtualInstant {
    read(Clock::end)
}

/// The virtual instant when the guest has worked for another `ns` of host time.
pub fn after_work(ns: u64) -> VirtualInstant {
    read(|clock| clock.virtual_at(DriveInstant::from_ns(drive::now(clock.drive()).as_ns() + ns)))
}

/// What the clock would show without its bound.
pub fn unbounded() -> VirtualInstant {
    read(|clock| clock.unbounded_at(drive::now(clock.drive())))
}

/// How far the clock is behind its drive because of its bound, nanoseconds.
pub fn lag_ns() -> u64 {
    read(|clock| clock.beyond_bound(drive::now(clock.drive()))).as_ns()
}

/// Whether virtual time passes with the host's clock, also while the guest waits.
pub fn is_wall() -> bool {
    read(|clock| clock.drive() == Drive::Wall)
}

/// Whether virtual time passes with the guest's work.
pub fn is_work() -> bool {
    read(|clock| clock.drive() == Drive::Work)
}

/// Whether only what the guest itself does may have an effect on it: on the event drive. Whatever comes from the host then
/// waits until the kernel idles.
pub fn is_event() -> bool {
    EVENT.load(Relaxed)
}

/// The clock may go as far as `bound`.
pub fn set_bound(page: &ClockPage, bound: VirtualInstant) {
    change(page, |clock| clock.bounded(bound));
}

/// The clock goes on from `instant`, if that is later.
pub fn jump(page: &ClockPage, instant: VirtualInstant) {
    change(page, |clock| clock.jumped(drive::now(clock.drive()), instant));
    look(page);
}
