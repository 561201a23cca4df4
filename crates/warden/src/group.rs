//! The control group of a jail, as its warden sees it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Between tries to remove a group whose last processes are on their way out.
const RETRY: Duration = Duration::from_millis(2);

/// Five seconds of tries: a process that is dead has left its group when it has given back its memory.
const TRIES: u32 = 2500;

/// A group that was made for this jail.
pub struct Group(PathBuf);

impl Group {
    /// The group with that directory.
    pub fn at(directory: &str) -> Self {
        Self(PathBuf::from(directory))
    }

    /// The file into which a process writes 0 to become a member.
    pub fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Ends what is left in it, and removes it.
    pub fn remove(&self) {
        // Kernels before 5.14 have no such file; then all that was started in it has been ended by its parents.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        for _ in 0..TRIES {
            match fs::remove_dir(&self.0) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => sleep(RETRY),
                _ => return,
            }
        }
    }

    /// What its members were refused, in words; None when they had all that they asked for.
    pub fn what_was_refused(&self) -> Option<String> {
        if count(&self.0.join("memory.events"), "oom_kill") > 0 {
            let limit = fs::read_to_string(self.0.join("memory.max")).unwrap_or_default();
            return Some(format!(
                "the guest was ended, since it took the {} bytes of the host's memory that it may have",
                limit.trim()
            ));
        }
        (count(&self.0.join("pids.events"), "max") > 0).then(|| {
            let limit = fs::read_to_string(self.0.join("pids.max")).unwrap_or_default();
            format!("the guest was refused more than the {} processes of the host that it may have", limit.trim())
        })
    }
}

/// The number behind `name` in a file of lines `name number`; 0 where there is none.
fn count(file: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name).and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}
