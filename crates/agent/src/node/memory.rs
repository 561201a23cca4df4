//! How much memory the programs of a node may have, and how it is taken from them.
//!
//! **Problem.** A limit of a control group is one file. But whoever writes less into it than is in use comes back only when
//! so much was freed, and until then the kernel asks again and again whether those that it has killed are gone. On the event
//! drive, where the CPU takes no time, no slice of who asks is ever over, so that the killed ones never run, and the run would
//! stand still.
//!
//! **Rule.** So the node's init does what the kernel would do, and waits as programs do. First what can be read again is
//! dropped. Then, while more is in use than is left, the largest program is killed and its end awaited. When little enough is
//! in use the limit is written at once: nobody runs between the look and that, as the init is before all programs on the only
//! CPU. From then on the kernel keeps the limit, in the time of who wants more.

use std::fs::{read_dir, read_to_string, File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use crate::error::{Doing, Result};

/// What no shortage of memory ends (proc_pid_oom_score_adj(5)).
const NEVER_ENDED: &str = "-1000";

/// The memory of a node's programs, by the files of their control group.
pub struct Memory {
    limit: File,
    used: File,
    reclaim: File,
    /// What they may have at other times; `None`: all that there is.
    usual_bytes: Option<u64>,
    taking: Option<Taking>,
}

/// Memory that is being taken.
struct Taking {
    leave_bytes: u64,
    has_dropped: bool,
    /// Who was killed last, and has not ended yet.
    dying: Option<OwnedFd>,
}

impl Memory {
    /// That of a control group, which may be new.
    ///
    /// # Errors
    /// The kernel has no such files.
    pub fn open(group: &str, usual_bytes: Option<u64>) -> Result<Self> {
        let open = |name: &str, writes: bool| {
            let path = format!("{group}/memory.{name}");
            OpenOptions::new().read(!writes).write(writes).open(&path).doing(|| format!("open {path}"))
        };
        Ok(Self {
            limit: open("max", true)?,
            used: open("current", false)?,
            reclaim: open("reclaim", true)?,
            usual_bytes,
            taking: None,
        })
    }

    /// The descriptors that it takes.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        [&self.limit, &self.used, &self.reclaim].into_iter().map(AsRawFd::as_raw_fd)
    }

    /// Lets them have what they may have at other times.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn give_back(&mut self) -> Result<()> {
        self.taking = None;
        self.set_limit(self.usual_bytes)
    }

    /// Leaves them so much, from when others have ended on if they have more.
    ///
    /// # Errors
    /// As of [`Self::go_on`].
    pub fn take(&mut self, leave_bytes: u64) -> Result<()> {
        self.taking = Some(Taking { leave_bytes, has_dropped: false, dying: None });
        self.go_on()
    }

    /// What is ready to be read when [`Self::go_on`] has something to do.
    pub fn awaited(&self) -> Option<BorrowedFd<'_>> {
        self.taking.as_ref()?.dying.as_ref().map(AsFd::as_fd)
    }

    /// Goes on with what is being taken, if anything is.
    ///
    /// # Errors
    /// The kernel refuses something.
    pub fn go_on(&mut self) -> Result<()> {
        while let Some(mut taking) = self.taking.take() {
            let excess = self.used_bytes()?.saturating_sub(taking.leave_bytes);
            if excess > 0 && !taking.has_dropped {
                self.drop_what_can_be_read_again(excess)?;
                taking.has_dropped = true;
                self.taking = Some(taking);
                continue;
            }
            // Where only files are left, the kernel finds nobody to kill either, and takes the limit.
            let Some(victim) = (if excess > 0 { largest()? } else { None }) else {
                return self.set_limit(Some(taking.leave_bytes));
            };
            taking.dying = end(victim)?;
            let waits = taking.dying.is_some();
            self.taking = Some(taking);
            if waits {
                return Ok(());
            }
        }
        Ok(())
    }

    fn used_bytes(&self) -> Result<u64> {
        let doing = || "look how much memory a node has in use".to_owned();
        let mut text = [0; 32];
        let length = self.used.read_at(&mut text, 0).doing(doing)?;
        Ok(String::from_utf8_lossy(&text[..length]).trim_end().parse().unwrap_or(u64::MAX))
    }

    fn drop_what_can_be_read_again(&mut self, bytes: u64) -> Result<()> {
        match self.reclaim.write_all(bytes.to_string().as_bytes()) {
            // There was less of it.
            Err(cause) if cause.raw_os_error() == Some(libc::EAGAIN) => Ok(()),
            result => result.doing(|| "take memory from a node".to_owned()),
        }
    }

    fn set_limit(&mut self, bytes: Option<u64>) -> Result<()> {
        let text = bytes.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
        self.limit.write_all(text.as_bytes()).doing(|| "limit the memory of a node".to_owned())
    }
}

/// The program of the node that has most of its memory; `None`: none that may be ended has any.
fn largest() -> Result<Option<Pid>> {
    let doing = || "look at the programs of a node".to_owned();
    let mut found = None;
    for entry in read_dir("/proc").doing(doing)? {
        let name = entry.doing(doing)?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let read = |file: &str| read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let pages = read("statm").split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
        // Process 1 is this one; one that has ended meanwhile has nothing.
        if pid != 1 && pages > 0 && found < Some((pages, pid)) && read("oom_score_adj").trim_end() != NEVER_ENDED {
            found = Some((pages, pid));
        }
    }
    Ok(found.map(|(_, pid)| Pid::from_raw(pid)))
}

/// Kills a process; what says when it has ended, `None` if it has.
fn end(pid: Pid) -> Result<Option<OwnedFd>> {
    let doing = || format!("end process {pid}, as memory is short");
    // SAFETY: the call takes two numbers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    match Errno::result(raw) {
        Err(Errno::ESRCH) => Ok(None),
        raw => {
            let raw = i32::try_from(raw.doing(doing)?).expect("a descriptor");
            // SAFETY: it was just made and has no other owner.
            let ended = unsafe { OwnedFd::from_raw_fd(raw) };
            kill(pid, Signal::SIGKILL).doing(doing)?;
            Ok(Some(ended))
        }
    }
}
