//! The warden: the process between Dilaton and a jail, which sees to it that the end of either leaves nothing.
//!
//! ```text
//! dilaton-warden LIFE_FD GROUP COMMAND…
//! ```
//!
//! bubblewrap forks the first process of the jail, which waits until bubblewrap has set up its user namespace, and does
//! not die with it: a bubblewrap that is killed before leaves it waiting for ever. Dilaton could adopt and end it, but
//! may be busy with something else, and be killed too. So whoever starts bubblewrap has nothing else to do. The warden
//! adopts what bubblewrap leaves (PR_SET_CHILD_SUBREAPER), and waits for bubblewrap's end and for that of Dilaton, who
//! holds the other end of the life line, a pipe into which nobody writes. Whichever comes first, it ends all that is
//! below it; with the first process of the jail goes everything in its PID namespace.
//!
//! GROUP is the directory of a control group (cgroup v2) made for this jail, or `-`. The command is started in it, and
//! the warden, which is not, removes it.
//!
//! No signal but SIGKILL and SIGSTOP reaches the warden. If it is killed, bubblewrap goes on as if there were none:
//! Dilaton adopts it (`python/dilaton/host/here/jail/orphans.py`), and takes the guest for ended.

mod group;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{exit, Command};

use crate::group::Group;

/// The exit status of a shell for a command that could not be started.
const NOT_STARTED: i32 = 127;

/// Where the life line is put, so that all descriptors behind it can be closed.
const LIFE: RawFd = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, life, group, program, rest @ ..] = &arguments[..] else { give_up("LIFE_FD GROUP COMMAND… is wanted") };
    let Ok(life) = life.parse() else { give_up("LIFE_FD is no number") };
    let group = (group != "-").then(|| Group::at(group));
    adopt_and_block_signals();
    let jail = match start(program, rest, group.as_ref()) {
        Ok(pid) => pid,
        Err(error) => {
            group.as_ref().map(Group::remove);
            give_up(&format!("{program}: {error}"));
        }
    };
    keep_only(life);
    wait_for_an_end(jail);
    let status = end_all(jail);
    if let Some(group) = &group {
        if let Some(told) = group.what_was_refused() {
            eprintln!("dilaton warden: {told}");
        }
        group.remove();
    }
    exit(if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) });
}

fn give_up(why: &str) -> ! {
    eprintln!("dilaton warden: {why}");
    exit(NOT_STARTED)
}

fn adopt_and_block_signals() {
    // SAFETY: plain system calls; `all` is ours.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Starts the command in the group, without the blocked signals; returns its process.
fn start(program: &str, arguments: &[String], group: Option<&Group>) -> std::io::Result<libc::pid_t> {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(group) = group {
        let mut members: File = OpenOptions::new().write(true).open(group.members())?;
        // SAFETY: a single write of a constant.
        unsafe { command.pre_exec(move || members.write_all(b"0")) };
    }
    // SAFETY: plain system calls; `none` is the closure's.
    unsafe {
        command.pre_exec(|| {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            Ok(())
        });
    }
    Ok(command.spawn()?.id() as libc::pid_t)
}

/// Closes all but the console and the life line: whoever waits for the end of one of the guest's lines would wait for us.
fn keep_only(life: RawFd) {
    // SAFETY: nothing here uses a descriptor behind the life line.
    unsafe {
        if life != LIFE {
            libc::dup2(life, LIFE);
        }
        libc::syscall(libc::SYS_close_range, LIFE + 1, u32::MAX, 0);
    }
}

/// Waits for the end of the jail's outer process, or of Dilaton.
fn wait_for_an_end(jail: libc::pid_t) {
    // SAFETY: plain system calls; `ends` is ours.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, jail, 0) as RawFd;
        // Without a descriptor for the process poll(2) ignores the entry, and would wait for Dilaton's end alone.
        assert!(process >= 0, "no pidfd");
        let mut ends = [LIFE, process].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        while libc::poll(ends.as_mut_ptr(), ends.len() as libc::nfds_t, -1) < 0 {}
    }
}

/// Ends everything below this process; returns the status of `jail`.
fn end_all(jail: libc::pid_t) -> i32 {
    let mut jail_status = 0;
    // SAFETY: our child, dead or alive, has this number until we have waited for it; so below.
    unsafe { libc::kill(jail, libc::SIGKILL) };
    loop {
        for child in children() {
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        let mut status = 0;
        // What a child leaves is our child before it itself can be waited for. SAFETY: `status` is ours.
        match unsafe { libc::waitpid(-1, &mut status, libc::__WALL) } {
            -1 => return jail_status,
            pid if pid == jail => jail_status = status,
            _ => {}
        }
    }
}

fn children() -> Vec<libc::pid_t> {
    let listed = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
