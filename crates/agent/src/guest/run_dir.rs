//! The run directory, through which everything is read and written even where its path is covered.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{openat, OFlag};
use nix::sys::stat::{mkdirat, Mode};
use nix::unistd::{unlinkat, UnlinkatFlags};
use serde::de::DeserializeOwned;

use crate::error::{Doing, Result};

/// A file of the host is read in pieces of this size.
const READ_BYTES: usize = 64 << 10;

/// The run directory, open.
pub struct RunDir(File);

impl RunDir {
    /// Opens the run directory at `path`.
    ///
    /// # Errors
    /// It does not exist.
    pub fn open(path: &str) -> Result<Self> {
        Ok(Self(File::open(path).doing(|| format!("open the run directory {path}"))?))
    }

    /// Opens a file by its path in the run directory.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn open_file(&self, path: &str, flags: OFlag) -> Result<OwnedFd> {
        let mode = Mode::from_bits_truncate(0o644);
        let raw = openat(Some(self.0.as_raw_fd()), path, flags | OFlag::O_CLOEXEC, mode)
            .doing(|| format!("open {path} in the run directory"))?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(raw) })
    }

    /// Makes a file, empty even if it was there before, and the directories that it is in. Everything is appended to
    /// it, so that it may be shared.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn create(&self, path: &str) -> Result<OwnedFd> {
        if let Some(parent) = Path::new(path).parent() {
            self.make_directory(parent)?;
        }
        self.open_file(path, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_APPEND)
    }

    /// Makes a directory, unless it is there, and those that it is in.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn make_directory(&self, path: &Path) -> Result<()> {
        let whole: Vec<&Path> = path.ancestors().filter(|path| *path != Path::new("")).collect();
        for each in whole.into_iter().rev() {
            match mkdirat(Some(self.0.as_raw_fd()), each, Mode::from_bits_truncate(0o755)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(cause) => return Err(cause).doing(|| format!("make {} in the run directory", each.display())),
            }
        }
        Ok(())
    }

    /// Opens an output that was made before, to go on at its end.
    ///
    /// # Errors
    /// It is gone.
    pub fn append(&self, path: &str) -> Result<OwnedFd> {
        self.open_file(path, OFlag::O_WRONLY | OFlag::O_APPEND)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// It is gone.
    pub fn remove(&self, path: &str) -> Result<()> {
        unlinkat(Some(self.0.as_raw_fd()), path, UnlinkatFlags::NoRemoveDir)
            .doing(|| format!("remove {path} from the run directory"))
    }

    /// The value that a JSON file holds, whose text is never in memory as a whole.
    ///
    /// # Errors
    /// There is none, or it is of another kind.
    pub fn parse<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let file = File::from(self.open_file(path, OFlag::O_RDONLY)?);
        serde_json::from_reader(BufReader::with_capacity(READ_BYTES, file)).doing(|| path.to_owned())
    }

    /// The text of a file.
    ///
    /// # Errors
    /// There is none, or it is not UTF-8.
    pub fn read(&self, path: &str) -> Result<String> {
        let mut text = String::new();
        File::from(self.open_file(path, OFlag::O_RDONLY)?)
            .read_to_string(&mut text)
            .doing(|| format!("read {path} in the run directory"))?;
        Ok(text)
    }
}
