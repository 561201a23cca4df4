//! The process that sees to it that a kernel's end is the end of everything that the kernel has made.
//!
//! Every child of the kernel dies with it by a signal that it has asked for, and every tracee by an option of its
//! tracer (`programs/tracee.rs`). One moment is covered by neither. A kernel of Linux 6.1 makes most of its stubs by
//! letting another stub clone itself (arch/um/kernel/skas/clone.c): the new one is the kernel's child, has inherited no
//! such signal, and is given the option only when it has stopped and the kernel gets to see that. If the kernel is
//! killed in between, which on a busy host may be long, the new stub makes its next parent its tracer, stops, and stays
//! for ever; and with it the jail, whose first process waits for all others.
//!
//! So the process that becomes a kernel forks first. The child is the kernel. The parent, the *guard*, waits for its end,
//! kills what is left of its process group, and ends with its status. In a jail the guard is process 1, with whose end
//! the host kills everything in that PID namespace, whatever group it is in. Without a jail it is also who gets the
//! kernel's orphans. It holds no file of the kernel's, and no signal but SIGKILL and SIGSTOP reaches it: a kernel that
//! panics sends SIGTERM to its whole group (os_dump_core).
//!
//! If the guard itself is killed, the kernel dies by the signal that it asks for here, or with the namespace.

use core::ffi::{c_int, c_long, CStr};
use core::ptr::null_mut;

use interrupts::Id;

use crate::host::{real, sys};

/// The descriptors that the guard keeps: nothing, and the console twice.
const KEPT_FDS: c_long = 3;

/// The environment variable that says how many processes there may be, of this guest alone: it is given where Linux counts
/// those of a user namespace by themselves.
const PROCESSES: &CStr = c"DILATON_PROCESSES";

/// The kernel's process.
static KERNEL: Id = Id::new(0);

/// This process, where it is the kernel's or has its memory; 0 in others, and until that is known.
static OWN: Id = Id::new(0);

/// The number of the kernel's process, where this is it.
pub fn own() -> Option<c_int> {
    Some(OWN.get()).filter(|&pid| pid != 0)
}

/// This process was forked from the kernel's, and has a memory of its own.
pub fn is_another() {
    OWN.set(0);
}

/// Whether the caller's parent is the kernel, which is therefore alive.
pub fn is_child_of_kernel() -> bool {
    // SAFETY: plain system call.
    unsafe { libc::getppid() == KERNEL.get() }
}

/// Forks, and returns in the child, which is to be the kernel.
pub fn stay_behind() {
    limit_processes();
    let mask = sys::block(u64::MAX);
    sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    // SAFETY: plain system calls. When a library is loaded, its process is a single thread.
    unsafe {
        let guard = libc::getpid();
        let kernel = real::fork();
        if kernel < 0 {
            crate::die(b"dilaton clock: the host has no process for this guest\n");
        }
        // Both do, since either may be first.
        libc::setpgid(kernel, 0);
        if kernel > 0 {
            watch(kernel);
        }
        sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u32);
        KERNEL.set(libc::getpid());
        OWN.set(KERNEL.get());
        if libc::getppid() != guard {
            // The guard ended before the line above, whose signal will therefore never come.
            crate::die(b"");
        }
    }
    sys::set_mask(mask);
}

fn limit_processes() {
    let Some(text) = sys::variable(PROCESSES) else { return };
    let Some([count]) = sys::numbers(text) else { crate::die(b"dilaton clock: DILATON_PROCESSES is no number\n") };
    let limit = libc::rlimit { rlim_cur: count as libc::rlim_t, rlim_max: count as libc::rlim_t };
    // A lower limit that the user has set stays. SAFETY: a plain system call; `limit` is ours.
    unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &limit) };
}

/// The life of the guard.
fn watch(kernel: c_int) -> ! {
    // SAFETY: plain system calls; `status` and `ended` are ours.
    unsafe {
        libc::syscall(libc::SYS_close_range, KEPT_FDS, c_long::from(u32::MAX), 0);
        // What is dead has to be buried while the kernel lives, too; it itself is not yet, so that its number stays its.
        let mut ended: libc::siginfo_t = core::mem::zeroed();
        loop {
            let found = libc::waitid(libc::P_ALL, 0, &mut ended, libc::WEXITED | libc::WNOWAIT | libc::__WALL);
            if found != 0 || ended.si_pid() == kernel {
                break;
            }
            real::waitpid(ended.si_pid(), null_mut(), libc::__WALL);
        }
        libc::syscall(libc::SYS_kill, -kernel, libc::SIGKILL);
        let mut status = 0;
        real::waitpid(kernel, &mut status, libc::__WALL);
        while real::waitpid(-kernel, null_mut(), libc::__WALL) > 0 {}
        libc::_exit(if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) })
    }
}
