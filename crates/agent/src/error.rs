//! One error type: what was being done, on what, and why it failed.

use std::fmt;

use nix::errno::Errno;

/// The result of anything in the agent that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure as a sentence for the user, as `netem on a:eth0: Invalid argument`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// An error that is complete in itself.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Something that can be the cause of an [`Error`].
pub trait Cause {
    /// The cause in words, without error numbers.
    fn words(&self) -> String;
}

impl Cause for Error {
    fn words(&self) -> String {
        self.0.clone()
    }
}

impl Cause for Errno {
    fn words(&self) -> String {
        self.desc().to_owned()
    }
}

impl Cause for std::io::Error {
    fn words(&self) -> String {
        self.raw_os_error().map_or_else(|| self.to_string(), |number| Errno::from_raw(number).words())
    }
}

impl Cause for serde_json::Error {
    fn words(&self) -> String {
        self.to_string()
    }
}

impl Cause for regex_lite::Error {
    fn words(&self) -> String {
        self.to_string()
    }
}

/// Adds to a failure what was being done.
pub trait Doing<T> {
    /// Turns the cause into `what: cause`.
    ///
    /// # Errors
    /// The failure of `self`, with `what` before it.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Cause> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error(format!("{}: {}", what(), cause.words())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_was_done_and_why_it_failed() {
        let failure: std::result::Result<(), Errno> = Err(Errno::EINVAL);
        let error = failure.doing(|| "netem on a:eth0".to_owned()).unwrap_err();
        assert_eq!(error.to_string(), "netem on a:eth0: Invalid argument");
    }
}
