//! Executing one program: fork, put everything in order, exec; the reason comes back if that fails.

use std::ffi::{c_char, CStr, CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::null;

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::signal::{signal, SigHandler, SigSet, SigmaskHow, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{dup2, pipe2, setgid, setgroups, setsid, setuid, write, Gid, Pid, Uid};

use crate::clock;
use crate::error::{Cause, Doing, Error, Result};
use crate::node::passwd::{self, User};
use crate::plan::interior::Cpu;
use crate::plan::Process;
use crate::priority::{self, Priority};

/// Where programs are looked for when the process has no PATH.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Open files that a program may have, soft and hard: what a Debian service gets.
const OPEN_FILES: (u64, u64) = (1024, 524_288);
/// The stack of a process until it is a program, in words of 16 bytes, by which a stack is aligned: 64 KiB.
const STACK_WORDS: usize = 1 << 12;
/// Exit status of shells for a program that does not exist.
const NOT_FOUND: i32 = 127;
/// Exit status of shells for a program that cannot be executed.
pub const NOT_EXECUTABLE: i32 = 126;

/// What has glibc's own functions do without AVX-512: programs that see it lose its registers to handlers of signals, and
/// memcpy(3) is in all of them. The words are those of glibc's manual, "Hardware Capability Tunables".
const WITHOUT_AVX512: &CStr = c"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD";

/// What is executed, and as whom.
#[derive(Debug)]
pub struct Program {
    /// Program and arguments.
    pub argv: Vec<CString>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: String,
    /// A user name or number.
    pub user: String,
}

impl Program {
    /// The program of a process of the plan.
    ///
    /// # Errors
    /// A word has a zero byte in it.
    pub fn of(process: &Process) -> Result<Self> {
        let program = &process.argv[0];
        let c_string =
            |text: String| CString::new(text).map_err(|_| Error::new(format!("exec {program}: zero byte in a word")));
        Ok(Self {
            argv: process.argv.iter().cloned().map(c_string).collect::<Result<_>>()?,
            env: process.env.iter().map(|(key, value)| c_string(format!("{key}={value}"))).collect::<Result<_>>()?,
            cwd: process.cwd.clone(),
            user: process.user.clone(),
        })
    }

    /// The program of a session, from the text that `PROTOCOL.md` calls a request.
    ///
    /// # Errors
    /// It is no such text.
    pub fn parse(request: &[u8]) -> Result<Self> {
        let wrong = || Error::new("a session's request is malformed");
        let mut words = request.split_inclusive(|&byte| byte == 0).map(CStr::from_bytes_with_nul);
        let mut next = || words.next()?.ok();
        let text = |word: Option<&CStr>| Some(word?.to_str().ok()?.to_owned());
        let user = text(next()).ok_or_else(wrong)?;
        let cwd = text(next()).ok_or_else(wrong)?;
        let count: usize = text(next()).and_then(|count| count.parse().ok()).ok_or_else(wrong)?;
        let mut rest = words.map(|word| word.map(CStr::to_owned)).collect::<std::result::Result<Vec<_>, _>>();
        match &mut rest {
            Ok(rest) if (1..=rest.len()).contains(&count) => {
                let env = rest.split_off(count);
                Ok(Self { argv: std::mem::take(rest), env, cwd, user })
            }
            _ => Err(wrong()),
        }
    }

    fn variable(&self, name: &str) -> Option<&CStr> {
        let start = format!("{name}=");
        self.env.iter().find_map(|entry| {
            let value = entry.to_bytes_with_nul().strip_prefix(start.as_bytes())?;
            CStr::from_bytes_with_nul(value).ok()
        })
    }
}

/// Where a program's standard input comes from.
#[derive(Debug)]
pub enum Stdin<'a> {
    /// A file, opened as the program's user.
    Path(&'a str),
    /// What is open already.
    Open(&'a OwnedFd),
    /// A terminal, which is to control the new session.
    Terminal(&'a OwnedFd),
}

/// A program that could not be executed.
#[derive(Debug)]
pub struct StartFailure {
    /// What was tried and why it failed.
    pub reason: String,
    /// 127: there is no such program; 126: anything else.
    pub status: i32,
}

impl From<Error> for StartFailure {
    fn from(error: Error) -> Self {
        Self { reason: error.to_string(), status: NOT_EXECUTABLE }
    }
}

/// Executes `program` on this CPU, with these standard streams, and returns its number once it is loaded. It still has the
/// priority [`Priority::Starting`], so it does nothing before the caller waits for something.
///
/// # Errors
/// The program cannot be executed.
pub fn spawn(
    program: &Program,
    cpu: Option<Cpu>,
    stdin: &Stdin<'_>,
    stdout: &OwnedFd,
    stderr: &OwnedFd,
) -> std::result::Result<Pid, StartFailure> {
    let user = passwd::find(&program.user)?;
    let image = Image::of(program)?;
    // The pipe closes by itself when the program is executed; until then it can carry a reason.
    let (reasons, report) = pipe2(OFlag::O_CLOEXEC).doing(|| "open a pipe".to_owned())?;
    let child = in_child(cpu.is_none(), || {
        let failure = match prepare(program, &user, stdin, stdout.as_raw_fd(), stderr.as_raw_fd()) {
            Ok(()) => {
                if let Some(cpu) = cpu {
                    clock::join_node(cpu.number, cpu.numerator, cpu.denominator);
                }
                image.execute()
            }
            Err(error) => error.into(),
        };
        // If even this fails there is nobody to tell; the exit status then says that something went wrong.
        let _ = write(&report, failure.reason.as_bytes());
        failure.status
    })
    .doing(|| "fork".to_owned())?;
    drop(report);
    let mut reason = String::new();
    File::from(reasons).read_to_string(&mut reason).doing(|| "wait for exec".to_owned())?;
    if reason.is_empty() {
        return Ok(child);
    }
    // Its end is awaited here, so that no stray number is left to the reaper.
    let status = match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, status)) => status,
        _ => NOT_EXECUTABLE,
    };
    Err(StartFailure { reason, status })
}

/// Runs `becoming` in a new process, which it makes a program, or else ends with its result; the caller waits for either.
///
/// In the memory of the caller, if `shares`, as of posix_spawn(3): each page that a process with its own memory touches on its
/// way to execve(2) is a fault of its own, and those were more than the whole rest of that way. It may not where the clock is
/// told of the process, since it knows programs by their memory.
fn in_child<F: FnOnce() -> i32>(shares: bool, becoming: F) -> nix::Result<Pid> {
    extern "C" fn run<F: FnOnce() -> i32>(becoming: *mut libc::c_void) -> i32 {
        // SAFETY: it is the variable of `in_child`, which waits, and is taken out of it once.
        let becoming = unsafe { &mut *becoming.cast::<Option<F>>() }.take();
        becoming.map_or(NOT_EXECUTABLE, |becoming| becoming())
    }
    let mut becoming = Some(becoming);
    let mut stack = Vec::<MaybeUninit<u128>>::with_capacity(STACK_WORDS);
    let memory = if shares { libc::CLONE_VM } else { 0 };
    let flags = memory | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: this program has one thread, and that is suspended until the child has memory of its own or is gone: nobody else
    // uses what the child does, which begins at the end of a stack that is as large as that takes.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK_WORDS);
        libc::clone(run::<F>, top.cast(), flags, std::ptr::from_mut(&mut becoming).cast())
    };
    Errno::result(pid).map(Pid::from_raw)
}

fn prepare(program: &Program, user: &User, stdin: &Stdin<'_>, stdout: RawFd, stderr: RawFd) -> Result<()> {
    let preparing = || "prepare the process".to_owned();
    priority::set(Pid::from_raw(0), Priority::Starting).doing(preparing)?;
    setsid().doing(preparing)?;
    reset_signals().doing(preparing)?;
    setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES.0, OPEN_FILES.1).doing(preparing)?;
    std::fs::write("/proc/self/oom_score_adj", "0").doing(preparing)?;
    if let Stdin::Terminal(terminal) = stdin {
        // SAFETY: the descriptor is open; the argument 0 takes no terminal away from another session.
        Errno::result(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }).doing(preparing)?;
    }
    become_user(user).doing(|| format!("become user {}", program.user))?;
    std::env::set_current_dir(&program.cwd).doing(|| format!("cwd {}", program.cwd))?;
    let file;
    let stdin = match stdin {
        Stdin::Path(path) => {
            file = open_input(path)?;
            file.as_raw_fd()
        }
        Stdin::Open(descriptor) | Stdin::Terminal(descriptor) => descriptor.as_raw_fd(),
    };
    [(stdin, 0), (stdout, 1), (stderr, 2)]
        .into_iter()
        .try_for_each(|(from, to)| dup2(from, to).map(drop))
        .doing(preparing)
}

/// Opens a file to read. A named pipe is refused: opening it waits for who writes, and the node's init would wait for that.
fn open_input(path: &str) -> Result<File> {
    let doing = || format!("stdin {path}");
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).doing(doing)?;
    if file.metadata().doing(doing)?.file_type().is_fifo() {
        return Err(Error::new(format!(
            "stdin {path}: a named pipe, which a shell can wait for: sh -c 'PROGRAM < {path}'"
        )));
    }
    fcntl(file.as_raw_fd(), FcntlArg::F_SETFL(OFlag::empty())).doing(doing)?;
    Ok(file)
}

/// Nothing blocked and nothing ignored: what the init of the node, and Rust before it, changed for themselves is undone.
fn reset_signals() -> nix::Result<()> {
    // SAFETY: the default action runs none of our code.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }?;
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

fn become_user(user: &User) -> nix::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
    setgroups(&groups)?;
    setgid(Gid::from_raw(user.gid))?;
    setuid(Uid::from_raw(user.uid))
}

/// What execve(2) takes, made before there is a process that becomes it, so that this leaves nothing behind in memory.
struct Image<'a> {
    name: &'a [u8],
    /// Where the program may be: in every directory of PATH, as of execvp(3), but with the environment that it is given.
    files: Vec<CString>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
}

impl<'a> Image<'a> {
    fn of(program: &'a Program) -> Result<Self> {
        let name = program.argv[0].as_bytes();
        let path = program.variable("PATH").map_or(PATH_DEFAULT.as_bytes(), CStr::to_bytes);
        let directories: Vec<&[u8]> =
            if name.contains(&b'/') { vec![b""] } else { path.split(|&byte| byte == b':').collect() };
        let file_in = |directory| {
            let file = Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(name));
            CString::new(file.into_os_string().into_vec()).map_err(|_| Error::new("exec: zero byte in PATH"))
        };
        let sees_avx512 = std::is_x86_feature_detected!("avx512f");
        let tunables = (sees_avx512 && program.variable("GLIBC_TUNABLES").is_none()).then_some(WITHOUT_AVX512);
        let pointers = |words: &'a [CString]| words.iter().map(|word| word.as_ptr());
        Ok(Self {
            name,
            files: directories.into_iter().map(file_in).collect::<Result<_>>()?,
            argv: pointers(&program.argv).chain([null()]).collect(),
            env: pointers(&program.env).chain(tunables.map(CStr::as_ptr)).chain([null()]).collect(),
        })
    }

    /// Becomes the program; returns only if that is impossible.
    fn execute(&self) -> StartFailure {
        let mut failure = Errno::ENOENT;
        for file in &self.files {
            // SAFETY: these are strings and lists of them, with the ends that the call takes, and outlive it.
            unsafe { libc::execve(file.as_ptr(), self.argv.as_ptr(), self.env.as_ptr()) };
            // A file that is there but cannot be executed says more than all the places where there is none.
            failure = match Errno::last() {
                Errno::ENOENT | Errno::ENOTDIR => failure,
                errno => errno,
            };
        }
        let status = if failure == Errno::ENOENT { NOT_FOUND } else { NOT_EXECUTABLE };
        let reason = format!("exec {}: {}", String::from_utf8_lossy(self.name), failure.words());
        StartFailure { reason, status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_user_directory_arguments_and_environment() {
        let program = Program::parse(b"root\0/tmp\x002\0echo\0a b\xff\0PATH=/bin\0X=\0").unwrap();
        assert_eq!((program.user.as_str(), program.cwd.as_str()), ("root", "/tmp"));
        assert_eq!(program.argv, [c"echo".to_owned(), CString::new(b"a b\xff").unwrap()]);
        assert_eq!(program.env, [c"PATH=/bin".to_owned(), c"X=".to_owned()]);
        assert_eq!(program.variable("PATH"), Some(c"/bin"));
    }

    #[test]
    fn a_named_pipe_is_refused_as_input_and_not_waited_for() {
        let path = std::env::temp_dir().join(format!("dilaton-pipe-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let refused = open_input(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(refused.unwrap_err().to_string().contains("a named pipe"));
        assert!(open_input("/dev/null").is_ok());
    }

    #[test]
    fn a_request_with_fewer_words_than_it_says_is_refused() {
        for request in [&b"root\0/\x000\0"[..], b"root\0/\x002\0true\0", b"root\0/\x001\0true", b""] {
            assert!(Program::parse(request).is_err());
        }
    }
}
