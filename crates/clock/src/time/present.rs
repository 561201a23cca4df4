//! The present clock, which handlers may change under whoever reads it.
//!
//! The kernel reads the clock from ordinary code and from signal handlers that interrupt it anywhere, in the middle of these
//! functions too. So the clock is in one of two slots, chosen by the parity of `generation`. A change writes the idle slot
//! and then moves the generation on. A reader that finds the generation moved after its computation starts again: so it
//! never uses a torn line, and never returns an instant older than one that a handler has seen meanwhile.

use core::cell::UnsafeCell;
use core::sync::atomic::{compiler_fence, Ordering::Relaxed, Ordering::SeqCst};

use interrupts::{Count, Flag, Word};
use virtual_time::{Clock, Drive, DriveInstant, Face, Now, Pace, VirtualInstant};

use crate::host::page::ClockPage;
use crate::time::drive;

struct Present {
    /// Its parity says which of the two clocks is the present one.
    generation: Count,
    clocks: UnsafeCell<[Clock; 2]>,
    changing: Flag,
    /// Whether the event drive drives the clock.
    event: Flag,
    /// The guest's face (`virtual_time::Face`).
    face_own: Word,
    face_run: Word,
}

// SAFETY: the kernel is one thread; generations keep its handlers from seeing half-written values.
unsafe impl Sync for Present {}

static PRESENT: Present = Present {
    generation: Count::new(0),
    clocks: UnsafeCell::new([Clock::HELD_AT_ZERO; 2]),
    changing: Flag::new(false),
    event: Flag::new(false),
    face_own: Word::new(1),
    face_run: Word::new(1),
};

/// Takes over how the guest's clock reads.
pub fn start(page: &ClockPage) {
    PRESENT.face_own.set(page.face_own.load(Relaxed));
    PRESENT.face_run.set(page.face_run.load(Relaxed));
}

/// How the guest's clock reads.
pub fn face() -> Face {
    Face::new(PRESENT.face_own.get(), PRESENT.face_run.get()).unwrap_or(Face::PLAIN)
}

/// Applies `f` to the present clock. It is inlined, so that only the part of the clock that `f` needs is copied.
#[inline]
fn read<T>(f: impl Fn(&Clock) -> T) -> T {
    loop {
        let generation = PRESENT.generation.get();
        // SAFETY: in bounds; a slot is rewritten only after the generation has moved on, which is checked below.
        let clock = unsafe { (*PRESENT.clocks.get())[generation % 2] };
        let result = f(&clock);
        compiler_fence(SeqCst);
        if PRESENT.generation.get() == generation {
            return result;
        }
    }
}

/// Puts another clock in place of the present one, unless that is being done already.
pub fn change(page: &ClockPage, f: impl Fn(&Clock) -> Clock) {
    if is_changing() {
        return;
    }
    PRESENT.changing.set(true);
    let clock = read(f);
    let generation = PRESENT.generation.get();
    // SAFETY: the idle slot; `changing` keeps a handler from writing it at the same time.
    unsafe { (*PRESENT.clocks.get())[(generation + 1) % 2] = clock };
    compiler_fence(SeqCst);
    PRESENT.generation.set(generation.wrapping_add(1));
    PRESENT.event.set(clock.drive() == Drive::Event);
    page.publish(&clock);
    PRESENT.changing.set(false);
}

/// Whether the clock is being changed by the code that the present handler has interrupted.
pub fn is_changing() -> bool {
    PRESENT.changing.get()
}

/// The clock, and when it was looked at.
pub struct Moment {
    /// As it was then.
    pub clock: Clock,
    /// By the host's clock and by the clock's drive.
    pub now: Now,
}

/// The present clock.
pub fn clock() -> Clock {
    read(|clock| *clock)
}

/// The present clock at the present moment.
pub fn moment() -> Moment {
    read(|clock| Moment { clock: *clock, now: drive::both(clock.drive()) })
}

/// Reads virtual now, and shows it to the host, too.
pub fn look(page: &ClockPage) -> VirtualInstant {
    let now = read(virtual_now);
    page.virtual_now_ns.store(now.as_ns(), Relaxed);
    now
}

/// Does so, and returns the moment of it, from which the host timer is armed without another look. On the event drive, which
/// arms none, there is none.
pub fn look_to_arm(page: &ClockPage) -> Option<Moment> {
    if is_event() {
        look(page);
        return None;
    }
    let moment = moment();
    page.virtual_now_ns.store(moment.clock.virtual_at(moment.now.drive).as_ns(), Relaxed);
    Some(moment)
}

/// Virtual now as read last.
pub fn latest(page: &ClockPage) -> VirtualInstant {
    VirtualInstant::from_ns(page.virtual_now_ns.load(Relaxed))
}

fn virtual_now(clock: &Clock) -> VirtualInstant {
    clock.virtual_at(drive::now(clock.drive()))
}

/// Where the clock stands, or comes to stand, unless the host orders something; never, where it goes on.
pub fn stands_at() -> VirtualInstant {
    read(|clock| clock.stands_at(drive::now(clock.drive())))
}

/// Whether virtual time passes neither by work nor by idling: the host holds the clock, or has let it come to its end.
pub fn stands() -> bool {
    read(|clock| clock.line().pace() == Pace::Held || virtual_now(clock) >= clock.end())
}

/// Whether another `ns` of steps bring the clock beyond its end, on the event drive.
pub fn steps_beyond(ns: u64) -> bool {
    read(|clock| clock.steps_beyond(drive::now(clock.drive()), ns))
}

/// The guest makes no step before the host orders something, as the next one would bring the clock beyond its end.
pub fn end_here(page: &ClockPage) {
    change(page, Clock::ended);
    look(page);
}

/// The clock stands where it is until the host orders something.
pub fn stand(page: &ClockPage) {
    change(page, |clock| clock.stood(drive::now(clock.drive())));
}

/// The virtual instant when the guest has worked for another `ns` of host time.
pub fn after_work(ns: u64) -> VirtualInstant {
    read(|clock| clock.virtual_at(DriveInstant::from_ns(drive::now(clock.drive()).as_ns() + ns)))
}

/// How much virtual time `ns` of work take; none while the clock is held.
pub fn takes(ns: u64) -> u64 {
    read(|clock| match clock.line().pace() {
        Pace::Held => 0,
        Pace::Running(tdf) => (u128::from(ns) * u128::from(tdf.guest()) / u128::from(tdf.host())) as u64,
    })
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

/// Whether the event drive drives the clock. Then only what the guest itself does may have an effect on it, and whatever comes
/// from the host waits until the kernel idles.
pub fn is_event() -> bool {
    PRESENT.event.get()
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
