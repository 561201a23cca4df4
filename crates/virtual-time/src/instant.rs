//! Two clocks, two types: a host instant can never be mistaken for a virtual one.

/// An instant of the host's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostInstant(u64);

/// An instant of a guest's virtual clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualInstant(u64);

/// A span of virtual time, in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualDuration(u64);

impl HostInstant {
    /// The instant `ns` nanoseconds after the host clock's zero.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the host clock's zero.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The instant `ns` nanoseconds later; the end of time if there is none.
    #[must_use]
    pub const fn ns_later(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Nanoseconds of host time from `earlier` to this instant; 0 if it is not earlier.
    #[must_use]
    pub const fn ns_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl VirtualInstant {
    /// The instant `ns` nanoseconds after the virtual clock's zero.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the virtual clock's zero.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The instant `span` later; the end of time if there is none.
    #[must_use]
    pub const fn plus(self, span: VirtualDuration) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to this instant; zero if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> VirtualDuration {
        VirtualDuration(self.0.saturating_sub(earlier.0))
    }
}

impl VirtualDuration {
    /// A span of `ns` nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Its length in nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }
}
