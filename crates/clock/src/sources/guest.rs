//! This guest on the wire that joins it to the others of a run (crates/wire), and how its clock's instants are the run's.
//!
//! A kernel that boots in the middle of the run counts from its own start, so the run's virtual 0 may be before that. Until
//! the instant from which it goes on, what it does is done at that instant, as all is done at 0 that comes before.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Flag, Word};
use virtual_time::VirtualInstant;
use wire::{Guest, NotAWire, Wire};

use crate::host::sys;

/// The environment variable by which the host hands over the wire: a file descriptor, a comma, the guest's number.
const VARIABLE: &CStr = c"DILATON_WIRE";

struct Place {
    guest: UnsafeCell<Option<Guest>>,
    /// The run's virtual 0 on this guest's clock, with a sign.
    zero_ns: Word,
    /// The instant of the run from which this kernel takes part in it.
    begin_ns: Word,
    /// Whether it does.
    takes_part: Flag,
}

// SAFETY: the cell is written at start by the only thread.
unsafe impl Sync for Place {}

static PLACE: Place =
    Place { guest: UnsafeCell::new(None), zero_ns: Word::new(0), begin_ns: Word::new(0), takes_part: Flag::new(false) };

/// Takes over the wire, if this guest has one.
pub fn start() {
    let Some(text) = sys::variable(VARIABLE) else { return };
    let Some([fd, number]) = sys::numbers(text) else {
        crate::die(b"dilaton clock: DILATON_WIRE is not a file descriptor and a number\n")
    };
    // SAFETY: a new shared mapping of the whole file, which is never unmapped.
    let wire = unsafe {
        let length = libc::lseek(fd, 0, libc::SEEK_END).max(0) as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let address = libc::mmap(core::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, 0);
        if address == libc::MAP_FAILED {
            crate::die(b"dilaton clock: the wire cannot be mapped\n");
        }
        match Wire::at(address.cast(), length) {
            Ok(wire) => wire,
            Err(NotAWire::Magic | NotAWire::Size) => crate::die(b"dilaton clock: what was handed over is not a wire\n"),
            Err(NotAWire::Version) => {
                crate::die(b"dilaton clock: the wire is of another version: rebuild with ./dev setup\n")
            }
        }
    };
    let guest = Guest::new(wire, number as usize);
    if guest.is_none() {
        crate::die(b"dilaton clock: the wire has no such guest, or too many ways to it\n");
    }
    // SAFETY: before anything else looks at it.
    unsafe { *PLACE.guest.get() = guest };
}

/// This guest's view of the wire; `None` for one on its own.
pub fn guest() -> Option<&'static Guest> {
    // SAFETY: written once, at start.
    unsafe { (*PLACE.guest.get()).as_ref() }
}

/// This guest's view of the wire while its kernel takes part in the run: neither before, nor once another one does.
pub fn taking_part() -> Option<&'static Guest> {
    guest().filter(|_| PLACE.takes_part.get())
}

/// All have their virtual 0.
pub fn begin(guest: &Guest) {
    PLACE.zero_ns.set(guest.wire().member(guest.number()).zero_ns.load(Relaxed));
    PLACE.begin_ns.set(guest.next_ns());
    PLACE.takes_part.set(true);
}

/// Another kernel takes part in the run from now on.
pub fn end() {
    PLACE.takes_part.set(false);
}

/// An instant of this clock as one of the run.
pub fn run_ns(now: VirtualInstant) -> u64 {
    let zero_ns = PLACE.zero_ns.get() as i64;
    let since_ns = if zero_ns < 0 { u64::saturating_add } else { u64::saturating_sub };
    since_ns(now.as_ns(), zero_ns.unsigned_abs()).max(PLACE.begin_ns.get())
}

/// An instant of the run as one of this clock.
pub fn own_ns(run_ns: u64) -> u64 {
    let zero_ns = PLACE.zero_ns.get() as i64;
    let own_ns = if zero_ns < 0 { u64::saturating_sub } else { u64::saturating_add };
    own_ns(run_ns, zero_ns.unsigned_abs())
}
