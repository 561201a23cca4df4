//! The guest's random numbers where a seed is given: what the kernel asks its host for.
//!
//! A User-Mode Linux kernel has no other source at boot: its random number generator is seeded by getrandom(2) of the host
//! (os_getrandom), and hashes that with the instants of interrupts, which are virtual. With the calls answered from the
//! seed, everything random in the guest follows from it: keys of hash tables, initial sequence numbers, ports, addresses
//! of programs, and what programs read from the kernel.

use core::ffi::{c_uint, c_void};

use interrupts::Word;

use crate::host::real;

/// The generator's state; 0: the host's own random numbers are used.
static STATE: Word = Word::new(0);

/// Answers from `seed` from now on, unless that is 0.
pub fn start(seed: u64) {
    STATE.set(seed);
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA'14). The kernel hashes what it
/// gets, so that it need not be more than well mixed.
fn next() -> u64 {
    let state = STATE.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    // Zero would mean that there is no seed.
    STATE.set(state.max(1));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// getrandom(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    if STATE.get() == 0 {
        // SAFETY: passed through.
        return unsafe { real::getrandom(buffer, length, flags) };
    }
    // SAFETY: the caller's buffer is writable for its length.
    let bytes = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&next().to_le_bytes()[..chunk.len()]);
    }
    length as isize
}
