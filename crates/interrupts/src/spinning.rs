//! Programs that spin on the event drive.
//!
//! There the CPU is infinitely fast and nothing preempts a program, so one that waits in a loop for memory to change
//! would wait for ever: whoever is to change it never runs. Whether a loop waits or computes cannot be told, so the rule is:
//! a program that has used [`SPIN_NS`] of CPU time without entering the kernel *spins*. From then on it is preempted as
//! on a machine as fast as the host: whenever it has used [`AGAIN_NS`], a tick of the kernel, virtual time moves on to the
//! guest's next timer, and what the host has sent is let in.
//!
//! The host asks the agent for the program's name, and the agent has to find it at work. But a few ticks may be all that it
//! has been waiting for, and they are over before the host has even looked. So the first time it goes on for [`ASKED_NS`].
//!
//! Where in the program that happens is up to the host, so the run may not be repeatable any more. It is counted in the
//! clock page, and the host says so.
//!
//! Every host timer on that drive is a look whether the kernel has turned to the stub since the last one; nothing is added
//! to entries and clock readings.

use crate::{Id, Word};

/// CPU time after which a program that has not entered the kernel is taken to spin.
const SPIN_NS: u64 = 5_000_000_000;

/// CPU time that a program which was found spinning uses before time moves on for the first time: four of the host's looks.
const ASKED_NS: u64 = 1_000_000_000;

/// CPU time that it uses before time moves on again.
const AGAIN_NS: u64 = 10_000_000;

/// Host time between looks as long as nothing spins.
const LOOK_NS: u64 = 1_000_000_000;

/// What is seen at a look.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// The stub that runs; 0: none.
    pub stub: i32,
    /// The CPU time that it has used, nanoseconds.
    pub cpu_ns: u64,
    /// The steps that the guest has made, nanoseconds.
    pub steps_ns: u64,
}

/// What a look finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Nothing to do.
    Nothing,
    /// A program that was not known to spin does.
    Spins,
    /// Virtual time has to move on for one that was.
    MovesOn,
}

/// Which program spins.
#[derive(Debug)]
pub struct Spinning {
    /// The stub that was found spinning last, or 0, and the CPU time after which time moves on for it.
    spinner: Id,
    moves_after_ns: Word,
    /// What the last look saw.
    stub: Id,
    cpu_ns: Word,
    steps_ns: Word,
}

impl Spinning {
    /// None does.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            spinner: Id::new(0),
            moves_after_ns: Word::new(AGAIN_NS),
            stub: Id::new(0),
            cpu_ns: Word::new(0),
            steps_ns: Word::new(0),
        }
    }

    /// Judges what is seen at a look, beside the looks before.
    pub fn look(&self, seen: Look) -> Finding {
        if seen.stub == 0 || seen.stub != self.stub.get() || seen.steps_ns != self.steps_ns.get() {
            self.stub.set(seen.stub);
            self.cpu_ns.set(seen.cpu_ns);
            self.steps_ns.set(seen.steps_ns);
            return Finding::Nothing;
        }
        let known = self.spinner.get() == seen.stub;
        let used_ns = seen.cpu_ns.saturating_sub(self.cpu_ns.get());
        if used_ns < if known { self.moves_after_ns.get() } else { SPIN_NS } {
            return Finding::Nothing;
        }
        if !known {
            self.spinner.set(seen.stub);
            self.moves_after_ns.set(ASKED_NS);
            self.cpu_ns.set(seen.cpu_ns);
            return Finding::Spins;
        }
        self.moves_after_ns.set(AGAIN_NS);
        self.stub.set(0);
        Finding::MovesOn
    }

    /// How long after a look the next one is due, nanoseconds of host time.
    pub fn next_look_ns(&self) -> u64 {
        if self.spinner.get() != 0 {
            AGAIN_NS
        } else {
            LOOK_NS
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Finding, Look, Spinning, AGAIN_NS, ASKED_NS, LOOK_NS, SPIN_NS};

    fn look(spinning: &Spinning, stub: i32, cpu_ns: u64) -> Finding {
        spinning.look(Look { stub, cpu_ns, steps_ns: 0 })
    }

    #[test]
    fn a_program_spins_after_five_seconds_and_moves_time_after_one_more_and_then_every_tick() {
        let spinning = Spinning::none();
        assert_eq!(spinning.next_look_ns(), LOOK_NS);
        assert_eq!(look(&spinning, 7, 100), Finding::Nothing);
        assert_eq!(look(&spinning, 7, 100 + SPIN_NS - 1), Finding::Nothing);
        assert_eq!(look(&spinning, 7, 100 + SPIN_NS), Finding::Spins);
        assert_eq!(spinning.next_look_ns(), AGAIN_NS);
        assert_eq!(look(&spinning, 7, 100 + SPIN_NS + ASKED_NS - 1), Finding::Nothing);
        assert_eq!(look(&spinning, 7, 100 + SPIN_NS + ASKED_NS), Finding::MovesOn);
        let moved_ns = 100 + SPIN_NS + ASKED_NS;
        assert_eq!(look(&spinning, 7, moved_ns), Finding::Nothing);
        assert_eq!(look(&spinning, 7, moved_ns + AGAIN_NS - 1), Finding::Nothing);
        assert_eq!(look(&spinning, 7, moved_ns + AGAIN_NS), Finding::MovesOn);
    }

    #[test]
    fn a_program_that_enters_the_kernel_does_not_spin() {
        let spinning = Spinning::none();
        for steps_ns in 0..10 {
            let seen = Look { stub: 7, cpu_ns: steps_ns * SPIN_NS, steps_ns };
            assert_eq!(spinning.look(seen), Finding::Nothing);
        }
    }

    #[test]
    fn who_comes_next_is_not_taken_for_who_spun() {
        let spinning = Spinning::none();
        look(&spinning, 7, 0);
        assert_eq!(look(&spinning, 7, SPIN_NS), Finding::Spins);
        assert_eq!(look(&spinning, 8, 2 * SPIN_NS), Finding::Nothing);
        assert_eq!(look(&spinning, 8, 2 * SPIN_NS + ASKED_NS), Finding::Nothing);
        assert_eq!(look(&spinning, 8, 3 * SPIN_NS), Finding::Spins);
    }

    #[test]
    fn an_idle_guest_has_no_program_that_spins() {
        let spinning = Spinning::none();
        look(&spinning, 0, 0);
        assert_eq!(look(&spinning, 0, u64::MAX), Finding::Nothing);
    }

    proptest! {
        #[test]
        fn time_moves_on_only_for_the_program_that_was_found_spinning_last(
            looks in prop::collection::vec((0..3, 0_u64..2 * SPIN_NS, prop::bool::weighted(0.1)), 0..200)
        ) {
            let spinning = Spinning::none();
            let (mut steps_ns, mut cpu_ns) = (0, [0_u64; 3]);
            let mut found = None;
            for (stub, used_ns, steps) in looks {
                steps_ns += u64::from(steps);
                cpu_ns[stub as usize] += used_ns;
                match spinning.look(Look { stub, cpu_ns: cpu_ns[stub as usize], steps_ns }) {
                    Finding::Nothing => {}
                    Finding::Spins => { prop_assert!(stub != 0); found = Some(stub); }
                    Finding::MovesOn => prop_assert_eq!(found, Some(stub)),
                }
            }
        }
    }
}
