//! For whose sake the kernel's handler of input was called: for what comes in virtual time, or for the host's.
//!
//! The handler asks its epoll for what is ready. If it was called for what comes in virtual time, the host must not be asked:
//! on the event drive it may have something, which has to wait until the kernel rests. But the handler may run later than it
//! was called, and for both, when the kernel has only noted it; and one call may find what was reported for another.
//!
//! **What the kernel forgets.** With its interrupts off it notes that its handler was called. When it turns them on it clears
//! what it had noted (unblock_signals of arch/um/os-Linux/signal.c) two instructions after interrupts were off again, as
//! the compiler of Debian's has put them: a signal in between is forgotten. On a real device the next frame brings the
//! next signal; here it was reported, and nobody would read it; and what the host writes to a serial line it may write for
//! once. So a kernel that idles, with nothing noted, and has not asked its epoll since its handler was called, is told once
//! more.

use crate::Flag;

/// What the kernel was told, and has not asked for yet.
#[derive(Debug)]
pub struct Reports {
    /// Its handler has been called for what comes in virtual time.
    reported: Flag,
    /// It has been called for the host's sake since epoll asked the host last.
    host_expected: Flag,
    /// The host has sent something, of which the kernel is to be told when it rests.
    kept: Flag,
}

impl Reports {
    /// It was told nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { reported: Flag::new(false), host_expected: Flag::new(false), kept: Flag::new(false) }
    }

    /// The handler is called for what comes in virtual time.
    #[inline]
    pub fn report(&self) {
        self.reported.set(true);
    }

    /// The handler is about to be called for something of the host's, or there may be more of it.
    #[inline]
    pub fn expect_host(&self) {
        self.host_expected.set(true);
    }

    /// Keeps that the host has sent something until the kernel rests: on the event drive, and where the kernel has forgotten
    /// it.
    #[inline]
    pub fn keep(&self) {
        self.kept.set(true);
    }

    /// Whether the host had sent something; it is no longer kept.
    #[inline]
    pub fn take_kept(&self) -> bool {
        self.kept.take()
    }

    /// The kernel, which has nothing left to do, may have forgotten what it was told: of the host's it is told again when it
    /// rests. Returns whether that is to be done for what was reported, too.
    pub fn take_forgotten(&self) -> bool {
        if self.host_expected.take() {
            self.keep();
        }
        self.reported.take()
    }

    /// Epoll has found nothing of ours: whether it is to ask the host. `only_ours` where the host is asked only if it was
    /// expected, also after a report that another call has found.
    #[inline]
    pub fn asks_host(&self, only_ours: bool) -> bool {
        let reported = self.reported.take();
        self.host_expected.take() || !(reported || only_ours)
    }
}

#[cfg(test)]
mod tests {
    use super::Reports;

    #[test]
    fn a_handler_that_nobody_here_has_called_asks_the_host() {
        assert!(Reports::none().asks_host(false));
    }

    #[test]
    fn a_report_keeps_the_next_question_from_the_host_and_no_more() {
        let reports = Reports::none();
        reports.report();
        assert!(!reports.asks_host(false));
        assert!(reports.asks_host(false));
    }

    #[test]
    fn the_host_is_asked_when_it_was_expected_whatever_was_reported() {
        let reports = Reports::none();
        reports.report();
        reports.expect_host();
        assert!(reports.asks_host(true));
        assert!(!reports.asks_host(true), "it has been asked");
    }

    #[test]
    fn a_host_that_must_not_be_seen_is_asked_only_when_expected() {
        let reports = Reports::none();
        assert!(!reports.asks_host(true));
    }

    #[test]
    fn what_was_forgotten_is_told_again() {
        let reports = Reports::none();
        reports.report();
        reports.expect_host();
        assert!(reports.take_forgotten());
        assert!(reports.take_kept() && !reports.take_kept());
        assert!(!reports.take_forgotten(), "once");
    }

    #[test]
    fn what_was_asked_for_is_not_forgotten() {
        let reports = Reports::none();
        reports.report();
        reports.expect_host();
        reports.asks_host(false);
        assert!(!reports.take_forgotten());
        assert!(!reports.take_kept());
    }
}
