//! Whether the kernel is to be told of a descriptor that something can be read from it.
//!
//! The descriptor is never ready by itself. It is *reported* once, by a call of the kernel's handler of input, which asks its
//! epoll for what is *ready*; and not again until the kernel has found it empty. Where the kernel has not asked, it is taken
//! back, to be reported once more.

use crate::{Flag, Word};

/// A descriptor to which the kernel's epoll may listen.
#[derive(Debug)]
pub struct Readiness {
    /// What epoll is to say when it is ready, and whether it listens.
    token: Word,
    listens: Flag,
    /// It has been reported, and the kernel has not found it empty since.
    reported: Flag,
    /// Epoll is about to say so.
    ready: Flag,
}

impl Readiness {
    /// Nobody listens.
    #[must_use]
    pub const fn unheard() -> Self {
        Self { token: Word::new(0), listens: Flag::new(false), reported: Flag::new(false), ready: Flag::new(false) }
    }

    /// The kernel wants to know by `token` when it is ready, or no longer.
    pub fn listen(&self, token: Option<u64>) {
        self.token.set(token.unwrap_or(0));
        self.listens.set(token.is_some());
        self.reported.set(false);
    }

    /// Whether the kernel listens.
    #[inline]
    pub fn is_heard(&self) -> bool {
        self.listens.get()
    }

    /// Whether the kernel is to be told of what comes: it listens, and does not know yet that there is something.
    #[inline]
    pub fn awaits(&self) -> bool {
        self.listens.get() && !self.reported.get()
    }

    /// The kernel's handler is called for it.
    #[inline]
    pub fn report(&self) {
        self.reported.set(true);
        self.ready.set(true);
    }

    /// What epoll has to say of it, if anything. Only the first call says so.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        (self.ready.get() && self.ready.take()).then(|| self.token.get())
    }

    /// The kernel has found it empty.
    #[inline]
    pub fn found_empty(&self) {
        self.reported.set(false);
    }

    /// If the kernel's epoll has not asked since it was reported, that is to be done again; tells whether it is.
    pub fn take_back(&self) -> bool {
        let is_forgotten = self.ready.take();
        if is_forgotten {
            self.reported.set(false);
        }
        is_forgotten
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Readiness;

    #[test]
    fn one_that_nobody_listens_to_awaits_nothing() {
        let line = Readiness::unheard();
        assert!(!line.awaits());
        line.listen(Some(5));
        assert!(line.awaits());
        line.listen(None);
        assert!(!line.awaits());
    }

    #[test]
    fn it_is_reported_once_until_it_was_found_empty() {
        let line = Readiness::unheard();
        line.listen(Some(5));
        line.report();
        assert!(!line.awaits());
        assert_eq!(line.take(), Some(5));
        assert_eq!(line.take(), None);
        assert!(!line.awaits(), "the kernel has yet to read");
        line.found_empty();
        assert!(line.awaits());
    }

    #[test]
    fn what_epoll_was_not_asked_for_is_reported_again() {
        let line = Readiness::unheard();
        line.listen(Some(5));
        line.report();
        assert!(line.take_back() && line.awaits());
        line.report();
        line.take();
        assert!(!line.take_back(), "it was asked for");
        assert!(!line.awaits());
    }

    proptest! {
        /// A kernel that forgets calls of its handler, idles, and reads until it finds nothing.
        #[test]
        fn nothing_that_has_come_stays_unread(forgets in prop::collection::vec(any::<bool>(), 1..100)) {
            let line = Readiness::unheard();
            line.listen(Some(5));
            let mut waiting = 0;
            for forgets in forgets {
                waiting += 1;
                if line.awaits() {
                    line.report();
                }
                if !forgets && line.take().is_some() {
                    waiting = 0;
                    line.found_empty();
                }
                line.take_back();
                prop_assert!(waiting == 0 || line.awaits());
            }
        }
    }
}
