//! Whether the kernel rests, and what it has noted.
//!
//! With its interrupts off the kernel does not block signals, it *notes* them. At idle this is a trap: the kernel enters its
//! idle loop with interrupts off, and what it has noted but not handled must keep it from sleeping. (The stock code relies on
//! the host timer being off then, and on the next tick for input.) So a signal since the last idle makes idle return at once:
//! the kernel enables interrupts, handles what it had noted, and comes back.

use crate::Flag;

/// The kernel between its work and its sleep.
#[derive(Debug)]
pub struct Rest {
    /// It sleeps, or is about to, with nothing left to do.
    rests: Flag,
    /// A signal went to it since it idled last.
    noted: Flag,
    /// An alarm was served while it rests. Its deadline is gone, and the next one is not known before the kernel has woken up
    /// and set it: until then nothing may be jumped over.
    served: Flag,
}

impl Rest {
    /// It works, and nothing is noted.
    #[must_use]
    pub const fn at_work() -> Self {
        Self { rests: Flag::new(false), noted: Flag::new(false), served: Flag::new(false) }
    }

    /// A signal goes to the kernel.
    #[inline]
    pub fn note(&self) {
        self.noted.set(true);
    }

    /// An alarm, or an arrival, goes to the kernel.
    #[inline]
    pub fn note_alarm(&self) {
        self.note();
        self.served.set(self.rests.get());
    }

    /// Whether a signal went to the kernel since it idled last.
    #[inline]
    pub fn has_noted(&self) -> bool {
        self.noted.get()
    }

    /// The kernel handles now what it had noted.
    #[inline]
    pub fn clear_noted(&self) {
        self.noted.set(false);
    }

    /// The kernel has nothing left to do.
    #[inline]
    pub fn begin(&self) {
        self.served.set(false);
        self.rests.set(true);
    }

    /// It goes back to work.
    #[inline]
    pub fn end(&self) {
        self.rests.set(false);
    }

    /// Whether the kernel has nothing left to do.
    #[inline]
    pub fn is_resting(&self) -> bool {
        self.rests.get()
    }

    /// Whether the kernel rests and has yet to set its next deadline.
    #[inline]
    pub fn has_served(&self) -> bool {
        self.rests.get() && self.served.get()
    }
}

#[cfg(test)]
mod tests {
    use super::Rest;

    #[test]
    fn what_is_noted_stays_until_it_is_handled() {
        let rest = Rest::at_work();
        assert!(!rest.has_noted());
        rest.note();
        assert!(rest.has_noted());
        rest.begin();
        assert!(rest.has_noted());
        rest.clear_noted();
        assert!(!rest.has_noted());
    }

    #[test]
    fn an_alarm_at_work_leaves_a_deadline_to_jump_to() {
        let rest = Rest::at_work();
        rest.note_alarm();
        assert!(!rest.has_served());
        rest.begin();
        assert!(!rest.has_served());
    }

    #[test]
    fn after_an_alarm_at_rest_nothing_may_be_jumped_over_until_the_next_rest() {
        let rest = Rest::at_work();
        rest.begin();
        rest.note();
        assert!(!rest.has_served(), "input leaves the deadline as it is");
        rest.note_alarm();
        assert!(rest.has_served());
        rest.end();
        assert!(!rest.has_served());
        rest.begin();
        assert!(!rest.has_served());
    }
}
