//! Which stub has which pages, in seccomp mode: the kernel names the pages, and the host the process.

use core::ffi::c_int;

use interrupts::{Flag, Word};

use crate::programs::shared::Shared;

/// Pages that are told apart by their place: those of a guest of 16 GiB, which is the most.
const PLACES: usize = 1 << 21;

/// Bits of the number of a process (PID_MAX_LIMIT); the bit above them: it has not stopped yet; above, the pages' number.
const PID_BITS: u32 = 22;
const NEW: u64 = 1 << PID_BITS;
const NUMBER_SHIFT: u32 = PID_BITS + 1;

/// For each place whose it is; 0: nobody's.
static STUBS: [Word; PLACES] = [const { Word::new(0) }; PLACES];

/// Whether there is any.
static ARE_THERE: Flag = Flag::new(false);

/// A stub, and its pages.
#[derive(Clone, Copy)]
pub struct Stub {
    pub pid: c_int,
    pub shared: Shared,
    /// Whether it was made just now.
    pub is_new: bool,
}

/// The process `pid` is the stub with these pages.
pub fn made(pid: c_int, shared: Shared) {
    ARE_THERE.set(true);
    place(shared).set((shared.number() as u64) << NUMBER_SHIFT | NEW | pid as u64);
}

/// The stub that waits for its turn, or is waited for, at `address`, if that is such a word.
pub fn at(address: usize) -> Option<Stub> {
    let shared = Shared::of_turn(address)?;
    let word = place(shared).get();
    let pid = (word & (NEW - 1)) as c_int;
    (word >> NUMBER_SHIFT == shared.number() as u64 && pid != 0).then_some(Stub {
        pid,
        shared,
        is_new: word & NEW != 0,
    })
}

/// It has stopped.
pub fn is_no_longer_new(shared: Shared) {
    let word = place(shared).get();
    place(shared).set(word & !NEW);
}

/// Whether the kernel has made any, and so traces none.
pub fn are_there() -> bool {
    ARE_THERE.get()
}

fn place(shared: Shared) -> &'static Word {
    &STUBS[shared.number() % PLACES]
}
