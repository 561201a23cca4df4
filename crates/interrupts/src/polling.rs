//! Programs that wait without a pause: they ask whether something has come, again and again, while nothing has.
//!
//! `iperf3` does so for a round trip at the begin and at the end of a test, and `ping` in the last 10 ms before it sends.
//! The CPU is busy then, and nobody waits for it: whatever comes is served at once, as by an idle one, and other programs go first
//! (`occasions/polling.rs` of the clock). So time in which a
//! program does nothing but ask, and in which nothing comes, is idle, and what comes meanwhile begins a busy period of its
//! own. Otherwise all that comes in such a stretch would look as if it had waited since the begin of it.
//!
//! Several may poll at once, and let each other go first. So it is remembered of each what it has asked: that others run, and
//! that it is put aside for them, does not make it one that has something to do. Who sleeps in a call for another reason is woken up
//! by something, and begins anew.
//!
//! What is told from that is a program that computes, or moves data, between two questions; and one that only reads the
//! clock, since nobody can tell what it computes in between.

use crate::places::{Places, PLACES};
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

/// What programs have asked since they did something else last.
#[derive(Debug)]
pub struct Polling {
    places: Places,
    programs: [Program; PLACES],
    /// The stub whose program ran last; 0: the guest has been idle since.
    present: Id,
    /// Whether another program has run, or the guest was idle, since one was answered last.
    others: Flag,
    /// How often nobody else could run.
    lone: Word,
    /// The CPU time of all user code when a program entered the kernel last.
    entered_ns: Word,
}

/// What a program has asked.
#[derive(Debug)]
struct Program {
    /// The system call that it is in, and how often nobody else could run when it began.
    call: Id,
    lone: Word,
    /// How many of its calls in a row found nothing, and whether one of them could have found more than the time.
    calls: Word,
    looks: Flag,
    /// The CPU time of its user code since a call of it was answered last.
    computed_ns: Word,
}

impl Program {
    const fn none() -> Self {
        Self {
            call: Id::new(NO_CALL),
            lone: Word::new(0),
            calls: Word::new(0),
            looks: Flag::new(false),
            computed_ns: Word::new(0),
        }
    }

    fn polls(&self) -> bool {
        self.calls.get() >= CALLS_MIN && self.looks.get() && self.computed_ns.get() <= COMPUTES_NS
    }

    /// A call of it has found nothing.
    fn asked(&self, kind: Call) {
        self.calls.set(self.calls.get().saturating_add(1));
        if kind == Call::Look {
            self.looks.set(true);
        }
        self.computed_ns.set(0);
    }

    fn begin_anew(&self) {
        self.calls.set(0);
        self.looks.set(false);
        self.computed_ns.set(0);
    }
}

impl Polling {
    /// Nobody has asked.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            places: Places::none(),
            programs: [const { Program::none() }; PLACES],
            present: Id::new(0),
            others: Flag::new(false),
            lone: Word::new(0),
            entered_ns: Word::new(0),
        }
    }

    /// The program of `stub` has entered the kernel, by that system call; negative: by none. `user_ns` is the CPU time of all
    /// user code, nanoseconds.
    #[inline]
    pub fn entered(&self, stub: i32, system_call: i32, user_ns: u64) {
        self.turns_to(stub);
        let (place, is_new) = self.places.take(stub);
        let program = &self.programs[place];
        if is_new {
            program.begin_anew();
        }
        program.computed_ns.add(user_ns.saturating_sub(self.entered_ns.swap(user_ns)));
        program.call.set(system_call);
        program.lone.set(self.lone.get());
    }

    /// The system call by which the program of `stub` has entered the kernel, if it has polled so far.
    #[inline]
    pub fn polls_by(&self, stub: i32) -> Option<i32> {
        let program = self.program(stub)?;
        let call = program.call.get();
        (call >= 0 && program.polls()).then_some(call)
    }

    /// The stub has ended.
    #[inline]
    pub fn ended(&self, stub: i32) {
        self.places.free(stub);
    }

    /// The guest idles: who is in a call sleeps in it.
    #[inline]
    pub fn idles(&self) {
        self.present.set(0);
        self.lone.add(1);
    }

    /// The kernel turns to a program that is the only one that can run: others that are in a call sleep in it. Of several that can
    /// run, who is in a call may have been put aside at the end of it.
    #[inline]
    pub fn turns_to_the_only_one(&self) {
        self.lone.add(1);
    }

    /// The kernel lets `stub` go on; `kind` says what the system call was that it answers, if it answers one. If the program
    /// polls: whether for a while, and nothing else has been done since a program was answered last.
    #[inline]
    pub fn answered(&self, stub: i32, kind: impl FnOnce(i32) -> Call) -> Option<bool> {
        self.turns_to(stub);
        let does_nothing_else = !self.others.take();
        let program = self.program(stub)?;
        let call = program.call.swap(NO_CALL);
        if call < 0 {
            // It was interrupted, and goes on.
            return program.polls().then_some(false);
        }
        let kind = kind(call);
        let slept = program.lone.get() != self.lone.get();
        if kind == Call::Other || slept || program.computed_ns.get() > COMPUTES_NS {
            program.begin_anew();
            return None;
        }
        program.asked(kind);
        program.polls().then_some(program.calls.get() > CALLS_MIN && does_nothing_else)
    }

    /// That program runs.
    fn turns_to(&self, stub: i32) {
        if self.present.swap(stub) != stub {
            self.others.set(true);
        }
    }

    fn program(&self, stub: i32) -> Option<&Program> {
        self.places.find(stub).map(|place| &self.programs[place])
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::{Call, Polling, CALLS_MIN, COMPUTES_NS};

    /// What is told of calls of program 7 in a row, each of its kind and after so much CPU time of user code.
    fn told(polling: &Polling, calls: impl IntoIterator<Item = (Call, u64)>) -> Vec<Option<bool>> {
        let mut user_ns = 0;
        let mut tell = |(kind, used_ns)| {
            user_ns += used_ns;
            polling.entered(7, 1, user_ns);
            polling.answered(7, |_| kind)
        };
        calls.into_iter().map(&mut tell).collect()
    }

    /// Programs that have polled for a while.
    fn pollers(stubs: impl IntoIterator<Item = i32>) -> Polling {
        let polling = Polling::none();
        for stub in stubs {
            for _ in 0..=CALLS_MIN {
                polling.entered(stub, 1, 0);
                polling.answered(stub, |_| Call::Look);
            }
        }
        polling
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
        polling.entered(7, 1, 0);
        assert_eq!(polling.polls_by(7), None, "it was answered seven times");
        polling.answered(7, |_| Call::Look);
        assert_eq!(polling.polls_by(7), None, "it is not in the kernel");
        polling.entered(7, 1, 0);
        assert_eq!((polling.polls_by(7), polling.polls_by(8)), (Some(1), None));
        polling.entered(7, -1, 0);
        assert_eq!(polling.polls_by(7), None, "it was interrupted");
        polling.entered(8, 1, 0);
        assert_eq!(polling.polls_by(8), None);
        polling.entered(7, 1, COMPUTES_NS + 1);
        assert_eq!(polling.polls_by(7), None, "it has computed");
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

    /// What is told of program 7, which has polled, lets others go first that do what `others_do` and say what CPU time all
    /// user code has taken then, and finds nothing.
    fn told_after_giving_way(polling: &Polling, others_do: impl FnOnce(&Polling) -> u64) -> Option<bool> {
        polling.entered(7, 1, 0);
        assert_eq!(polling.polls_by(7), Some(1));
        let user_ns = others_do(polling);
        polling.entered(7, 1, user_ns);
        polling.answered(7, |_| Call::Look)
    }

    #[test]
    fn two_that_let_each_other_go_first_both_poll_on() {
        let polling = pollers([7, 8]);
        for _ in 0..3 {
            let told = told_after_giving_way(&polling, |polling| {
                polling.entered(8, 1, 0);
                assert_eq!(polling.answered(8, |_| Call::Look), Some(false));
                polling.entered(8, 1, 0);
                assert_eq!(polling.polls_by(8), Some(1));
                0
            });
            assert_eq!(told, Some(false));
        }
    }

    #[test]
    fn what_others_do_while_one_gives_way_is_something_else() {
        let polling = pollers([7]);
        let told = told_after_giving_way(&polling, |polling| {
            polling.turns_to_the_only_one();
            polling.entered(8, 1, 1_000_000);
            assert_eq!(polling.answered(8, |_| Call::Other), None);
            polling.entered(8, -1, 2_000_000);
            2_000_000
        });
        assert_eq!(told, Some(false));
        polling.entered(7, 1, 2_000_000);
        assert_eq!(polling.answered(7, |_| Call::Look), Some(true), "what 8 has computed is not of 7");
    }

    #[test]
    fn who_gives_way_and_then_sleeps_in_its_call_begins_anew() {
        let polling = pollers([7]);
        polling.entered(7, 1, 0);
        polling.entered(8, 1, 0);
        polling.entered(7, 1, 0);
        polling.turns_to_the_only_one();
        assert_eq!(polling.answered(7, |_| Call::Look), None);
    }

    #[test]
    fn who_is_put_aside_while_it_polls_goes_on_with_that() {
        let polling = pollers([7]);
        polling.entered(7, -1, 1_000);
        polling.entered(8, 1, 2_000);
        assert_eq!(polling.answered(8, |_| Call::Other), None);
        assert_eq!(polling.answered(7, |_| unreachable!()), Some(false));
        polling.entered(7, -1, 3_000 + COMPUTES_NS);
        assert_eq!(polling.answered(7, |_| unreachable!()), None, "it computes");
    }

    #[test]
    fn who_sleeps_in_its_call_begins_anew() {
        for nobody_else_runs in [Polling::idles, Polling::turns_to_the_only_one] {
            let polling = pollers([7]);
            polling.entered(7, 1, 0);
            nobody_else_runs(&polling);
            assert_eq!(polling.answered(7, |_| Call::Look), None);
            polling.entered(7, 1, 0);
            assert_eq!(polling.answered(7, |_| Call::Look), None);
        }
    }

    #[test]
    fn who_is_put_aside_at_the_end_of_its_call_polls_on() {
        let polling = pollers([7]);
        polling.entered(7, 1, 0);
        polling.entered(8, 1, 0);
        assert_eq!(polling.answered(8, |_| Call::Other), None);
        assert_eq!(polling.answered(7, |_| Call::Look), Some(false));
    }

    #[test]
    fn another_program_of_the_same_number_begins_anew() {
        let polling = pollers([7]);
        polling.ended(7);
        assert_eq!(polling.answered(7, |_| unreachable!()), None);
        polling.entered(7, 1, 0);
        assert_eq!(polling.polls_by(7), None);
    }
}
