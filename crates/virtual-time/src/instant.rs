//! Three clocks, three types: what drives virtual time, virtual time, and the host's own clock are never mistaken for each
//! other.

/// An instant of what drives a guest's virtual time, in nanoseconds: on the wall drive the host's monotonic clock, on the
/// work drive the CPU time that the guest has used, on the event drive the steps that it has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriveInstant(u64);

/// An instant of the host's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostInstant(u64);

/// An instant of a guest's virtual clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualInstant(u64);

/// A span of virtual time, in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualDuration(u64);

impl DriveInstant {
    /// The instant `ns` nanoseconds after the drive's zero.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the drive's zero.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to this instant; 0 if it is not earlier.
    #[must_use]
    pub const fn ns_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

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
}

impl VirtualInstant {
    /// Later than every instant that is reached.
    pub const NEVER: Self = Self(u64::MAX);

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
