//! Whether the kernel's process has been on its core, undisturbed, since it was looked at.
//!
//! The host's kernel tells it by a *restartable sequence* (rseq(2)): it clears the sequence's pointer whenever it takes the
//! process off the CPU, or interrupts it with a signal. The sequence itself is never entered; its pointer is all that is needed.

use core::cell::UnsafeCell;
use core::ptr::addr_of_mut;

use crate::host::sys;

/// struct rseq of the host kernel (include/uapi/linux/rseq.h), in its first size.
#[repr(C, align(32))]
struct Rseq {
    cpu_id_start: u32,
    cpu_id: u32,
    sequence: u64,
    rest: [u32; 4],
}

/// struct rseq_cs: a sequence of no instructions that we run, with the signature that the host checks before its end.
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: u64,
    length: u64,
    abort: u64,
}

/// What the host kernel is told to watch, and where it tells.
struct Watched {
    rseq: UnsafeCell<Rseq>,
    sequence: UnsafeCell<Sequence>,
    /// A signature, and the end that it stands before.
    signed: [u32; 2],
}

// SAFETY: written at start by the only thread, and then by the host kernel on its behalf.
unsafe impl Sync for Watched {}

const SIGNATURE: u32 = 0x5305_3053;

static WATCHED: Watched = Watched {
    rseq: UnsafeCell::new(Rseq { cpu_id_start: 0, cpu_id: 0, sequence: 0, rest: [0; 4] }),
    sequence: UnsafeCell::new(Sequence { version: 0, flags: 0, start: 0, length: 1, abort: 0 }),
    signed: [SIGNATURE, 0],
};

/// Has the host's kernel tell it from here on.
pub fn start() {
    // SAFETY: the structures are static; nothing else uses them yet.
    unsafe {
        let sequence = WATCHED.sequence.get();
        (*sequence).start = sequence as u64;
        (*sequence).abort = (&raw const WATCHED.signed[1]) as u64;
        sys::rseq(WATCHED.rseq.get().cast(), false, SIGNATURE);
    }
}

/// Called in a new child of the kernel, whose memory will not have the structure that the host kernel writes to.
pub fn detach() {
    // SAFETY: what was registered, if it was.
    unsafe { sys::rseq(WATCHED.rseq.get().cast(), true, SIGNATURE) };
}

/// Whether the process has been on its core, without a signal, since [`watch`].
pub fn is() -> bool {
    // SAFETY: the structure is static; the host kernel writes it while we do not run.
    unsafe { addr_of_mut!((*WATCHED.rseq.get()).sequence).read_volatile() != 0 }
}

/// Begins to watch for disturbances, or forces a resync.
pub fn watch(begin: bool) {
    let sequence = if begin { WATCHED.sequence.get() as u64 } else { 0 };
    // SAFETY: as in [`is`].
    unsafe { addr_of_mut!((*WATCHED.rseq.get()).sequence).write_volatile(sequence) };
}
