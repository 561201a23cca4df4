//! What is wrong with disks for a while: whose requests fail, or come back changed (`disk::Faulty` has the rule).
//!
//! A request is carried out by several calls of the I/O thread, all of which have one fate. It is drawn at the first of them,
//! since only that tells which disk it is of.

use disk::{Fate, Fault, Faulty, Operation};
use interrupts::Word;

use crate::kernel::masks::Exclusive;
use crate::sources::caches::DISKS_MAX;

static FAULTS: Exclusive<[Faulty; DISKS_MAX]> = Exclusive::new([const { Faulty::new(Fault::NONE) }; DISKS_MAX]);

/// What becomes of the request that is carried out.
static FATE: Exclusive<Option<Fate>> = Exclusive::new(None);

/// When it came.
static NOW_NS: Word = Word::new(0);

/// Makes this wrong with a disk from now on. Called in a critical section.
pub fn set(place: usize, fault: Fault) {
    // SAFETY: the caller's critical section, in which nobody else has a reference.
    unsafe { (*FAULTS.get())[place] = Faulty::new(fault) };
}

/// How much longer a request takes that comes now. In a critical section.
pub fn delay_ns(place: usize, now_ns: u64) -> u64 {
    // SAFETY: as of `set`.
    unsafe { &(*FAULTS.get())[place] }.delay_ns(now_ns)
}

/// Another request is carried out. In a critical section.
pub fn begin_request(now_ns: u64) {
    NOW_NS.set(now_ns);
    // SAFETY: as of `set`.
    unsafe { *FATE.get() = None };
}

/// What becomes of a part of the request that is carried out. In a critical section.
pub fn fate(place: usize, operation: Operation) -> Fate {
    // SAFETY: as of `set`.
    unsafe {
        let fate = *(*FATE.get()).get_or_insert_with(|| (*FAULTS.get())[place].fate(NOW_NS.get(), operation));
        if let Fate::Corrupted(_) = fate {
            // One bit of the request, not of each part.
            *FATE.get() = Some(Fate::Done);
        }
        fate
    }
}
