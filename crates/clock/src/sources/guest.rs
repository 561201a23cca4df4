//! This guest on the wire that joins it to the others of a run (crates/wire), and how its clock's instants are the run's.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::Word;
use virtual_time::VirtualInstant;
use wire::{Guest, NotAWire, Wire};

use crate::host::sys;

/// The environment variable by which the host hands over the wire: a file descriptor, a comma, the guest's number.
const VARIABLE: &CStr = c"DILATON_WIRE";

struct Place {
    guest: UnsafeCell<Option<Guest>>,
    /// The run's virtual 0 on this guest's clock.
    zero_ns: Word,
}

// SAFETY: the cell is written at start by the only thread.
unsafe impl Sync for Place {}

static PLACE: Place = Place { guest: UnsafeCell::new(None), zero_ns: Word::new(0) };

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

/// All have their virtual 0.
pub fn begin(guest: &Guest) {
    PLACE.zero_ns.set(guest.wire().member(guest.number()).zero_ns.load(Relaxed));
}

/// An instant of this clock as one of the run, which begins at 0.
pub fn run_ns(now: VirtualInstant) -> u64 {
    now.as_ns().saturating_sub(PLACE.zero_ns.get())
}

/// An instant of the run as one of this clock.
pub fn own_ns(run_ns: u64) -> u64 {
    run_ns.saturating_add(PLACE.zero_ns.get())
}
