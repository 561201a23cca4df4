//! Stops of user code that the kernel asks for while none runs.
//!
//! At each interrupt of its timer the kernel has the stub of the present program stopped (os_alarm_process), so that it
//! gets to what the interrupt has left to do, as the turn of another program, before this one goes on. When user code was
//! interrupted there is no other way. But a busy kernel is mostly interrupted where it works on a system call of the
//! program, and then the host would resume the stub for it to stop again at once: a signal and two switches between
//! processes, ten microseconds, of which the program's part is charged to its node.
//!
//! So a stop that is asked for while no user code runs is *kept*, and made when the kernel resumes the stub, by not doing
//! so: the kernel is told that it has stopped. If another stub is resumed first, this one's program has been at the
//! scheduler since, and the stop is forgotten.

use crate::Id;

/// Which stops are kept, and which are made. Stubs are numbers of processes, above 0.
#[derive(Debug)]
pub struct Stops {
    /// The stub that is to stop; 0: none.
    kept: Id,
    /// The stub that has stopped so, of which the kernel is yet to be told; 0: none.
    made: Id,
}

impl Stops {
    /// None is.
    #[must_use]
    pub const fn none() -> Self {
        Self { kept: Id::new(0), made: Id::new(0) }
    }

    /// Keeps that `stub` is to stop.
    #[inline]
    pub fn keep(&self, stub: i32) {
        self.kept.set(stub);
    }

    /// The kernel resumes `stub`: makes the stop that is kept, if it is of that one; tells whether it did.
    #[inline]
    pub fn make(&self, stub: i32) -> bool {
        let is_wanted = self.kept.swap(0) == stub;
        if is_wanted {
            self.made.set(stub);
        }
        is_wanted
    }

    /// Whether `stub`, of which the kernel asks, has stopped so. Only the first call says so.
    #[inline]
    pub fn take(&self, stub: i32) -> bool {
        self.made.get() == stub && stub != 0 && self.made.swap(0) == stub
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Stops;

    #[test]
    fn a_kept_stop_is_made_when_the_stub_is_resumed_and_told_once() {
        let stops = Stops::none();
        stops.keep(7);
        assert!(!stops.take(7), "it has not been resumed");
        assert!(stops.make(7));
        assert!(stops.take(7));
        assert!(!stops.take(7) && !stops.make(7));
    }

    #[test]
    fn a_stop_is_forgotten_when_another_stub_is_resumed_first() {
        let stops = Stops::none();
        stops.keep(7);
        assert!(!stops.make(8));
        assert!(!stops.make(7));
    }

    #[test]
    fn nobody_is_told_of_any_process_or_of_another() {
        let stops = Stops::none();
        assert!(!stops.take(0));
        stops.keep(7);
        stops.make(7);
        assert!(!stops.take(8) && !stops.take(0));
        assert!(stops.take(7));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Keep(i32),
        Make(i32),
        Take(i32),
    }

    proptest! {
        #[test]
        fn only_the_last_stop_asked_for_is_made(
            steps in prop::collection::vec(
                prop_oneof![
                    (1..4).prop_map(Step::Keep),
                    (1..4).prop_map(Step::Make),
                    (1..4).prop_map(Step::Take)
                ],
                0..100,
            )
        ) {
            let stops = Stops::none();
            let (mut asked, mut made) = (None, None);
            for step in steps {
                match step {
                    Step::Keep(stub) => { stops.keep(stub); asked = Some(stub); }
                    Step::Make(stub) => {
                        let wanted = asked.take() == Some(stub);
                        prop_assert_eq!(stops.make(stub), wanted);
                        if wanted { made = Some(stub); }
                    }
                    Step::Take(stub) => {
                        prop_assert_eq!(stops.take(stub), made == Some(stub));
                        if made == Some(stub) { made = None; }
                    }
                }
            }
        }
    }
}
