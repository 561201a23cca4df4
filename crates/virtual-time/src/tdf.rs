//! The time dilation factor.

use core::fmt;

/// Time dilation factor: host seconds per virtual second, as an exact ratio.
///
/// The direction is that of *To Infinity and Beyond* (NSDI'06, section 2): at 10 a guest second takes ten host seconds
/// and the network outside looks ten times faster. Below 1 the guest runs ahead of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tdf {
    host: u64,
    guest: u64,
}

/// Why two numbers are not a dilation factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TdfError {
    /// Numerator or denominator is zero.
    Zero,
    /// Numerator or denominator exceeds [`Tdf::TERM_MAX`], beyond which the mapping's arithmetic would not be exact.
    Term,
}

impl fmt::Display for TdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("a time dilation factor is a ratio of two numbers above zero"),
            Self::Term => write!(f, "the terms of a time dilation factor are at most {}", Tdf::TERM_MAX),
        }
    }
}

impl Tdf {
    /// Largest numerator and denominator: with it, every product in [`crate::Timeline`] fits 128 bits.
    pub const TERM_MAX: u64 = 1 << 40;

    /// No dilation.
    pub const ONE: Self = Self { host: 1, guest: 1 };

    /// `host` seconds for `guest` virtual seconds.
    ///
    /// # Errors
    /// When a term is zero or above [`Tdf::TERM_MAX`].
    pub const fn new(host: u64, guest: u64) -> Result<Self, TdfError> {
        if host == 0 || guest == 0 {
            return Err(TdfError::Zero);
        }
        if host > Self::TERM_MAX || guest > Self::TERM_MAX {
            return Err(TdfError::Term);
        }
        Ok(Self { host, guest })
    }

    /// The numerator: host time.
    #[must_use]
    pub const fn host(self) -> u64 {
        self.host
    }

    /// The denominator: virtual time.
    #[must_use]
    pub const fn guest(self) -> u64 {
        self.guest
    }
}
