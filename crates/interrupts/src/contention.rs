//! For how long programs waited for a CPU that another program had.
//!
//! A guest that is busy does not always keep somebody waiting. A program that computes alone is put aside by the kernel for
//! each one that something wakes up, which takes microseconds: the guest is busy for a second, and nobody has waited. So
//! beside busy periods (`ClockPage::record_idle`) those stretches of virtual time are told in which more than one program
//! wanted the CPU. Whoever waits does so within one of them, and so for as long as it takes at most.
//!
//! **The rule.** The kernel says, whenever it turns to a program, whether that is the only one that can run. If it is, nobody
//! waits, and a stretch that there was is over. If it is not, or it is another program than the one before, whoever waits may
//! have begun to since the kernel was last entered, or since the guest was last idle: what makes programs able to run happens
//! in the kernel. There a stretch begins, unless it goes on.
//!
//! **Who asks in vain** (`polling.rs`) lets others go first, but not before it has asked for a while. And where those who
//! are kept from the CPU only ask as well, nobody waits, and two of them may go on so for a round trip. Who waits for a program
//! that asks is known when the kernel turns to another one: if that asked, too, when it ran last, the stretch was over when
//! the asking began; otherwise it is the one that has waited.
//!
//! What a program is late with because it has much to do itself is in no stretch, however long others wait for its answer;
//! busy periods are the bound of that.

use crate::places::Places;
use crate::{Flag, Id, Word};

/// A stretch in which somebody waited: when, virtual nanoseconds, and how many interrupts there were in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Its length.
    pub ns: u64,
    /// The instant at which it was over.
    pub end_ns: u64,
    /// The interrupts.
    pub interrupts: u64,
}

/// Whether somebody waits, and since when.
#[derive(Debug)]
pub struct Contention {
    /// The stub whose program the kernel turned to last; 0: none since the guest was idle.
    stub: Id,
    /// When the kernel was entered last, or ceased to idle, virtual nanoseconds, and how many interrupts there had been.
    entered_ns: Word,
    entered_interrupts: Word,
    /// Whether a stretch goes on, and the same of its begin.
    goes_on: Flag,
    since_ns: Word,
    since_interrupts: Word,
    /// Whether the program that runs asks in vain meanwhile, and the same of when it began to.
    asks: Flag,
    asks_since_ns: Word,
    asks_since_interrupts: Word,
    /// The stubs whose programs did so when they ran last have places.
    askers: Places,
}

impl Contention {
    /// Nobody waits.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            stub: Id::new(0),
            entered_ns: Word::new(0),
            entered_interrupts: Word::new(0),
            goes_on: Flag::new(false),
            since_ns: Word::new(0),
            since_interrupts: Word::new(0),
            asks: Flag::new(false),
            asks_since_ns: Word::new(0),
            asks_since_interrupts: Word::new(0),
            askers: Places::none(),
        }
    }

    /// The program that ran entered the kernel at that instant, after so many interrupts; or the guest ceased to idle.
    #[inline]
    pub fn entered(&self, ns: u64, interrupts: u64) {
        if ns > self.entered_ns.get() {
            self.entered_ns.set(ns);
            self.entered_interrupts.set(interrupts);
        }
    }

    /// The kernel turns to the program of `stub` at that instant, after so many interrupts; `is_alone`: no other can run.
    /// Returns the stretch that this ends.
    #[inline]
    pub fn turns_to(&self, stub: i32, is_alone: bool, ns: u64, interrupts: u64) -> Option<Stretch> {
        let is_other = self.stub.swap(stub) != stub;
        let over = if is_other && !self.is_asker(stub) {
            // It is the one that has waited, whatever the one before did.
            self.asks.set(false);
            None
        } else if self.asks.get() && (is_other || is_alone) {
            self.end_where_asking_began()
        } else {
            None
        };
        if (is_other || !is_alone) && over.is_none() && !self.goes_on.get() {
            self.since_ns.set(self.entered_ns.get());
            self.since_interrupts.set(self.entered_interrupts.get());
            self.goes_on.set(true);
        }
        if is_alone {
            over.or_else(|| self.end(ns, interrupts))
        } else {
            over
        }
    }

    /// The guest idles at that instant, after so many interrupts: nobody waits. Returns the stretch that this ends.
    #[inline]
    pub fn idles(&self, ns: u64, interrupts: u64) -> Option<Stretch> {
        self.stub.set(0);
        if self.asks.get() {
            self.end_where_asking_began()
        } else {
            self.end(ns, interrupts)
        }
    }

    /// The program of `stub`, which runs or which the kernel is about to turn to, asks whether something has come, again and
    /// again, and nothing has (`polling.rs`).
    #[inline]
    pub fn asks(&self, stub: i32, ns: u64, interrupts: u64) {
        self.askers.take(stub);
        if self.stub.get() != stub {
            return;
        }
        self.entered(ns, interrupts);
        if self.goes_on.get() && !self.asks.swap(true) {
            self.asks_since_ns.set(ns);
            self.asks_since_interrupts.set(interrupts);
        }
    }

    /// The program of `stub`, which runs or which the kernel is about to turn to, does something else, or has ended.
    #[inline]
    pub fn works(&self, stub: i32) {
        self.askers.free(stub);
    }

    /// Since when whoever the kernel turns to next may have waited, virtual nanoseconds.
    #[inline]
    pub fn since_ns(&self) -> u64 {
        if self.goes_on.get() {
            self.since_ns.get()
        } else {
            self.entered_ns.get()
        }
    }

    fn is_asker(&self, stub: i32) -> bool {
        self.askers.find(stub).is_some()
    }

    fn end_where_asking_began(&self) -> Option<Stretch> {
        self.asks.set(false);
        self.end(self.asks_since_ns.get(), self.asks_since_interrupts.get())
    }

    fn end(&self, ns: u64, interrupts: u64) -> Option<Stretch> {
        self.goes_on.take().then(|| Stretch {
            ns: ns.saturating_sub(self.since_ns.get()),
            end_ns: ns,
            interrupts: interrupts.saturating_sub(self.since_interrupts.get()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Contention, Stretch};

    fn stretch(since_ns: u64, end_ns: u64, interrupts: u64) -> Stretch {
        Stretch { ns: end_ns - since_ns, end_ns, interrupts }
    }

    /// One program, 7, computes alone since instant 10.
    fn computing() -> Contention {
        let contention = Contention::none();
        contention.entered(5, 0);
        assert_eq!(
            contention.turns_to(7, true, 10, 1),
            Some(stretch(5, 10, 1)),
            "it waited for what woke it up at most"
        );
        contention
    }

    #[test]
    fn a_program_that_computes_alone_keeps_nobody_waiting_however_often_it_is_interrupted() {
        let contention = computing();
        for ns in (1_000..9_000).step_by(1_000) {
            contention.entered(ns, ns / 100);
            assert_eq!(contention.turns_to(7, true, ns + 20, ns / 100 + 1), None);
        }
        assert_eq!(contention.idles(20_000, 99), None);
    }

    #[test]
    fn who_is_put_aside_waits_until_it_is_alone_again() {
        let contention = computing();
        contention.entered(1_000, 4);
        assert_eq!(contention.turns_to(8, false, 1_020, 5), None);
        contention.entered(1_500, 5);
        assert_eq!(contention.turns_to(7, true, 1_510, 6), Some(stretch(1_000, 1_510, 2)));
    }

    #[test]
    fn programs_that_take_turns_wait_for_each_other_without_a_pause() {
        let contention = computing();
        for turn in 1..50 {
            contention.entered(turn * 1_000, turn);
            assert_eq!(contention.turns_to(7 + (turn % 2) as i32, false, turn * 1_000 + 10, turn), None);
        }
        assert_eq!(contention.idles(60_000, 60), Some(stretch(1_000, 60_000, 59)));
    }

    #[test]
    fn who_runs_next_may_have_waited_for_what_the_kernel_did_for_another() {
        let contention = computing();
        contention.entered(1_000, 4);
        // 7 has written for 3,000 ns, and sleeps.
        assert_eq!(contention.turns_to(8, true, 4_000, 8), Some(stretch(1_000, 4_000, 4)));
        // What it does for itself is its own work.
        contention.entered(5_000, 8);
        assert_eq!(contention.turns_to(8, true, 9_000, 8), None);
    }

    #[test]
    fn programs_that_ask_in_turns_keep_nobody_waiting() {
        let contention = computing();
        contention.asks(7, 900, 4);
        contention.entered(1_000, 4);
        assert_eq!(contention.turns_to(8, false, 1_020, 4), None);
        contention.asks(8, 1_100, 4);
        contention.asks(8, 9_000, 5);
        assert_eq!(
            contention.turns_to(7, false, 9_010, 6),
            Some(stretch(1_000, 1_100, 0)),
            "8 was turned to for the first time"
        );
        contention.asks(7, 9_020, 6);
        contention.asks(7, 18_990, 6);
        assert_eq!(contention.turns_to(8, false, 19_000, 6), None, "since then they only ask");
        contention.asks(8, 19_020, 6);
        contention.asks(8, 28_990, 6);
        assert_eq!(contention.idles(29_000, 7), Some(stretch(18_990, 19_020, 0)), "the switch from one to the other");
    }

    #[test]
    fn programs_that_ask_and_let_each_other_go_first_keep_nobody_waiting() {
        let contention = computing();
        contention.asks(7, 900, 4);
        contention.entered(1_000, 4);
        contention.turns_to(8, false, 1_020, 4);
        contention.asks(8, 1_100, 4);
        let mut stretches = 0;
        for turn in 2..50 {
            let (now_ns, runs, next) = (turn * 1_000, 8 - (turn % 2) as i32, 7 + (turn % 2) as i32);
            contention.asks(runs, now_ns - 500, turn);
            contention.entered(now_ns, turn);
            // It has slept in its call, and is told that nothing has come.
            contention.asks(next, now_ns + 5, turn);
            if let Some(over) = contention.turns_to(next, false, now_ns + 10, turn) {
                assert!(over.ns <= 500 && over.interrupts <= 1, "{over:?}");
                stretches += 1;
            }
        }
        assert_eq!(stretches, 24, "every other turn ends one");
    }

    #[test]
    fn who_has_asked_and_then_does_something_waits_for_one_that_asks() {
        let contention = computing();
        contention.asks(7, 900, 4);
        contention.entered(1_000, 4);
        contention.turns_to(8, false, 1_020, 4);
        contention.asks(8, 1_100, 4);
        contention.works(7);
        assert_eq!(contention.turns_to(7, true, 9_000, 5), Some(stretch(1_000, 9_000, 1)));
    }

    #[test]
    fn who_does_something_waits_for_one_that_asks() {
        let contention = computing();
        contention.asks(7, 900, 4);
        contention.entered(1_000, 4);
        assert_eq!(contention.turns_to(7, false, 1_020, 5), None, "an interrupt has woken 8 up, and 7 goes on");
        contention.asks(7, 1_100, 5);
        contention.asks(7, 9_000, 5);
        assert_eq!(contention.turns_to(8, false, 10_000, 6), None);
        assert_eq!(contention.idles(10_500, 6), Some(stretch(1_000, 10_500, 2)));
    }

    #[test]
    fn who_has_asked_and_then_does_something_waits_as_others_do() {
        let contention = computing();
        contention.entered(1_000, 4);
        assert_eq!(contention.turns_to(8, false, 1_020, 4), None);
        contention.asks(8, 1_100, 4);
        contention.works(8);
        contention.entered(1_200, 4);
        assert_eq!(contention.turns_to(7, true, 1_300, 5), Some(stretch(1_000, 1_300, 1)));
        contention.asks(7, 2_000, 5);
        contention.entered(3_000, 5);
        assert_eq!(contention.turns_to(8, true, 4_000, 6), Some(stretch(3_000, 4_000, 1)));
    }

    #[test]
    fn an_idle_guest_keeps_nobody_waiting() {
        let contention = computing();
        contention.entered(1_000, 4);
        assert_eq!(contention.turns_to(8, false, 1_020, 4), None);
        assert_eq!(contention.idles(2_000, 5), Some(stretch(1_000, 2_000, 1)));
        contention.entered(50_000, 6);
        assert_eq!(contention.turns_to(8, true, 50_010, 6), Some(stretch(50_000, 50_010, 0)));
    }
}
