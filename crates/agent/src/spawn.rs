//! Executing one program of the plan: fork, put everything in order, exec; the reason comes back if that fails.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::signal::{signal, SigHandler, SigSet, SigmaskHow, Signal};
use nix::unistd::{dup2, execve, fork, pipe2, setgid, setgroups, setsid, setuid, ForkResult, Gid, Pid, Uid};

use crate::error::{Cause, Doing, Error, Result};
use crate::passwd::{self, User};
use crate::plan::Process;
use crate::priority::{self, Priority};

/// Where programs are looked for when the process has no PATH.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Open files that a program may have, soft and hard: what a Debian service gets.
const OPEN_FILES: (u64, u64) = (1024, 524_288);

/// Executes `process` with these standard outputs and returns its number once the program is loaded. It still has the
/// priority [`Priority::Starting`], so it does nothing before the caller waits for something.
///
/// # Errors
/// The program cannot be executed: what was tried and why it failed.
pub fn spawn(process: &Process, stdout: &OwnedFd, stderr: &OwnedFd) -> Result<Pid> {
    let user = passwd::find(&process.user)?;
    // The pipe closes by itself when the program is executed; until then it can carry a reason.
    let (reasons, report) = pipe2(OFlag::O_CLOEXEC).doing(|| "open a pipe".to_owned())?;
    // SAFETY: this program has one thread, so the child may do whatever the parent may.
    match unsafe { fork() }.doing(|| "fork".to_owned())? {
        ForkResult::Child => {
            let Err(error) = execute(process, &user, stdout.as_raw_fd(), stderr.as_raw_fd());
            // If even this fails there is nobody to tell; the exit status then says that something went wrong.
            let _ = File::from(report).write_all(error.words().as_bytes());
            // SAFETY: ends the process at once, which is always allowed.
            unsafe { libc::_exit(127) }
        }
        ForkResult::Parent { child } => {
            drop(report);
            let mut reason = String::new();
            File::from(reasons).read_to_string(&mut reason).doing(|| "wait for exec".to_owned())?;
            if reason.is_empty() {
                Ok(child)
            } else {
                // Its end is awaited here, so that no stray number is left to the reaper.
                let _ = nix::sys::wait::waitpid(child, None);
                Err(Error::new(reason))
            }
        }
    }
}

/// Becomes the program; returns only if that is impossible.
fn execute(process: &Process, user: &User, stdout: RawFd, stderr: RawFd) -> Result<std::convert::Infallible> {
    let preparing = "prepare the process".to_owned();
    priority::set(Pid::from_raw(0), Priority::Starting).doing(|| preparing.clone())?;
    setsid().doing(|| preparing.clone())?;
    reset_signals().doing(|| preparing.clone())?;
    setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES.0, OPEN_FILES.1).doing(|| preparing.clone())?;
    std::fs::write("/proc/self/oom_score_adj", "0").doing(|| preparing.clone())?;
    become_user(user).doing(|| format!("become user {}", process.user))?;
    std::env::set_current_dir(&process.cwd).doing(|| format!("cwd {}", process.cwd))?;
    let stdin = File::open(&process.stdin).doing(|| format!("stdin {}", process.stdin))?;
    for (from, to) in [(stdin.as_raw_fd(), 0), (stdout, 1), (stderr, 2)] {
        dup2(from, to).doing(|| preparing.clone())?;
    }
    search_and_exec(process)
}

/// Nothing blocked and nothing ignored: what the init of the node changed for itself is undone.
fn reset_signals() -> nix::Result<()> {
    for number in Signal::iterator().filter(|number| !matches!(number, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: the default action runs none of our code.
        unsafe { signal(number, SigHandler::SigDfl) }?;
    }
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

fn become_user(user: &User) -> nix::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
    setgroups(&groups)?;
    setgid(Gid::from_raw(user.gid))?;
    setuid(Uid::from_raw(user.uid))
}

/// Tries the program in every directory of PATH, as `execvp` does, but with the environment of the plan.
fn search_and_exec(process: &Process) -> Result<std::convert::Infallible> {
    let program = &process.argv[0];
    let c_string =
        |text: &str| CString::new(text).map_err(|_| Error::new(format!("exec {program}: zero byte in {text:?}")));
    let argv = process.argv.iter().map(|text| c_string(text)).collect::<Result<Vec<_>>>()?;
    let env = process.env.iter().map(|(key, value)| c_string(&format!("{key}={value}"))).collect::<Result<Vec<_>>>()?;
    let path = process.env.get("PATH").map_or(PATH_DEFAULT, String::as_str);
    let directories: Vec<&str> = if program.contains('/') { vec![""] } else { path.split(':').collect() };
    let mut failure = Errno::ENOENT;
    for directory in directories {
        let file = std::path::Path::new(directory).join(program);
        let file = CString::new(file.as_os_str().as_bytes()).map_err(|_| Error::new("exec: zero byte in PATH"))?;
        let Err(errno) = execve(&file, &argv, &env);
        // A file that is there but cannot be executed says more than all the places where there is none.
        if !matches!(errno, Errno::ENOENT | Errno::ENOTDIR) {
            failure = errno;
        }
    }
    Err(Error::new(format!("exec {program}: {}", failure.words())))
}
