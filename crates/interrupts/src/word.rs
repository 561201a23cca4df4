//! State that a signal handler shares with the code that it interrupts.
//!
//! Both are the same thread, so a word is never seen half written, and relaxed order is enough: each access is a plain load or
//! store. What is wider than a word may be seen half changed, and its owner has to say why that does no harm.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident($atomic:ident): $value:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($atomic);

        impl $name {
            /// A cell with its first value.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self($atomic::new(value))
            }

            /// Its value.
            #[inline]
            pub fn get(&self) -> $value {
                self.0.load(Relaxed)
            }

            /// Gives it another value.
            #[inline]
            pub fn set(&self, value: $value) {
                self.0.store(value, Relaxed);
            }

            /// Gives it another value, and returns the one before, with no handler in between.
            #[inline]
            pub fn swap(&self, value: $value) -> $value {
                self.0.swap(value, Relaxed)
            }
        }
    )*};
}

words! {
    /// A number, mostly nanoseconds.
    Word(AtomicU64): u64;
    /// A count, a place or an address.
    Count(AtomicUsize): usize;
    /// A number in a table that is to stay small.
    Small(AtomicU16): u16;
    /// The number of a process or a file descriptor.
    Id(AtomicI32): i32;
    /// Whether something is so.
    Flag(AtomicBool): bool;
}

impl Word {
    /// Adds to it; a handler in between may cost what it adds.
    #[inline]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }
}

impl Flag {
    /// Whether it is set; it no longer is.
    #[inline]
    pub fn take(&self) -> bool {
        self.swap(false)
    }
}
