//! Programs that wait without a pause: they ask whether something has come, again and again, while nothing has.
//!
//! `iperf3` does so for a round trip at the begin and at the end of a test, and `ping` in the last 10 ms before it sends.
//! The CPU is busy then, and nobody waits for it: whatever comes is served at once, as by an idle one, and other programs go first
//! (`occasions/polling.rs` of the clock). So time in which a
//! program does nothing but ask, and in which nothing comes, is idle, and what comes meanwhile begins a busy period of its
//! own. Otherwise all that comes in such a stretch would look as if it had waited since the begin of it.
//!
//! What is told from that is a program that computes, or moves data, between two questions; and one that only reads the
//! clock, since nobody can tell what it computes in between.

use crate::{Flag, Id, Word};

/// So many calls in a row that find nothing are polling. Programs that do not wait so ask thrice at most, for the time, for
/// what is ready, and for data that may be left.
const CALLS_MIN: u64 = 8;

/// CPU time of user code between two calls that is more than it takes to ask again, a switch to the stub and back included.
const COMPUTES_NS: u64 = 50_000;

/// No system call.
const NO_CALL: i32 = -1;

/// What a call says about the program that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// It asks for the time.
    Time,
    /// It asks whether something has come, and nothing has.
    Look,
    /// It does something.
    Other,
}

/// What the program that ran last has asked.
#[derive(Debug)]
pub struct Polling {
    /// Its stub, and the system call that it is in.
    stub: Id,
    call: Id,
    /// How many of its calls in a row found nothing, and whether one of them could have found more than the time.
    calls: Word,
    looks: Flag,
    /// The CPU time of user code when it was answered last.
    answered_ns: Word,
}

impl Polling {
    /// Nobody has asked.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            stub: Id::new(0),
            call: Id::new(NO_CALL),
            calls: Word::new(0),
            looks: Flag::new(false),
            answered_ns: Word::new(0),
        }
    }

    /// The program of `stub` has entered the kernel, by that system call; negative: by none.
    #[inline]
    pub fn entered(&self, stub: i32, system_call: i32) {
        if self.stub.swap(stub) != stub {
            self.forget();
        }
        self.call.set(system_call);
    }

    /// The kernel answers `stub`, which is about to go on; `user_ns` is the CPU time of all user code, nanoseconds, and `kind`
    /// says what the system call was that it answers. If the program polls: whether it has done so for a while, and nothing
    /// else since it was answered last.
    #[inline]
    pub fn answered(&self, stub: i32, user_ns: u64, kind: impl FnOnce(i32) -> Call) -> Option<bool> {
        let call = self.call.swap(NO_CALL);
        if call < 0 || self.stub.get() != stub {
            return None;
        }
        let computed_ns = user_ns.saturating_sub(self.answered_ns.swap(user_ns));
        let kind = kind(call);
        if kind == Call::Other || computed_ns > COMPUTES_NS {
            self.forget();
            return None;
        }
        if kind == Call::Look {
            self.looks.set(true);
        }
        let calls = self.calls.get().saturating_add(1);
        self.calls.set(calls);
        (calls >= CALLS_MIN && self.looks.get()).then_some(calls > CALLS_MIN)
    }

    /// Whether the program of `stub`, which has entered the kernel, has polled so far, and calls again.
    #[inline]
    pub fn polls(&self, stub: i32) -> bool {
        self.stub.get() == stub && self.call.get() >= 0 && self.calls.get() >= CALLS_MIN && self.looks.get()
    }

    /// Something else has happened than that the present program asks.
    #[inline]
    pub fn forget(&self) {
        self.calls.set(0);
        self.looks.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::{Call, Polling, CALLS_MIN, COMPUTES_NS};

    /// What is told of calls in a row, each of its kind and after so much CPU time of user code.
    fn told(polling: &Polling, calls: impl IntoIterator<Item = (Call, u64)>) -> Vec<Option<bool>> {
        let mut user_ns = 0;
        let mut tell = |(kind, used_ns)| {
            user_ns += used_ns;
            polling.entered(7, 1);
            polling.answered(7, user_ns, |_| kind)
        };
        calls.into_iter().map(&mut tell).collect()
    }

    #[test]
    fn eight_looks_in_a_row_are_polling_and_from_the_ninth_on_nothing_else_was_done() {
        let found = told(&Polling::none(), [(Call::Look, 1_000); 10]);
        assert_eq!(found[..7], [None; 7]);
        assert_eq!(found[7..], [Some(false), Some(true), Some(true)]);
    }

    #[test]
    fn who_has_polled_and_calls_again_may_have_come_to_ask_once_more() {
        let polling = Polling::none();
        told(&polling, [(Call::Look, 0); CALLS_MIN as usize - 1]);
        polling.entered(7, 1);
        assert!(!polling.polls(7), "it was answered seven times");
        polling.answered(7, 0, |_| Call::Look);
        assert!(!polling.polls(7), "it is not in the kernel");
        polling.entered(7, 1);
        assert!(polling.polls(7) && !polling.polls(8));
        polling.entered(7, -1);
        assert!(!polling.polls(7), "it was interrupted");
        polling.entered(8, 1);
        assert!(!polling.polls(8));
    }

    #[test]
    fn a_program_that_only_reads_the_clock_may_compute_in_between() {
        assert_eq!(told(&Polling::none(), [(Call::Time, 1_000); 20]), [None; 20]);
    }

    #[test]
    fn looks_between_readings_of_the_clock_are_polling() {
        let calls = (0..20).map(|n| (if n % 3 == 0 { Call::Look } else { Call::Time }, 1_000));
        assert_eq!(told(&Polling::none(), calls).last(), Some(&Some(true)));
    }

    #[test]
    fn who_does_something_or_computes_begins_anew() {
        for (kind, used_ns) in [(Call::Other, 1_000), (Call::Look, COMPUTES_NS + 1)] {
            let polling = Polling::none();
            told(&polling, [(Call::Look, 0); CALLS_MIN as usize]);
            assert_eq!(told(&polling, [(kind, used_ns)]), [None]);
            assert_eq!(told(&polling, [(Call::Look, 0)]), [None]);
        }
    }

    #[test]
    fn another_program_begins_anew() {
        let polling = Polling::none();
        told(&polling, [(Call::Look, 0); CALLS_MIN as usize]);
        polling.entered(8, 1);
        assert_eq!(polling.answered(8, 0, |_| Call::Look), None);
        assert_eq!(told(&polling, [(Call::Look, 0)]), [None]);
    }

    #[test]
    fn an_answer_to_no_call_or_to_another_program_says_nothing() {
        let polling = Polling::none();
        told(&polling, [(Call::Look, 0); CALLS_MIN as usize]);
        polling.entered(7, -1);
        assert_eq!(polling.answered(7, 0, |_| unreachable!()), None);
        polling.entered(7, 1);
        assert_eq!(polling.answered(8, 0, |_| unreachable!()), None);
    }
}
