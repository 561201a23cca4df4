//! What this library asks of the host: a few system calls, most of them made directly.

use core::ffi::{c_int, c_long, c_uint, c_void, CStr};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::AtomicU32;

use virtual_time::HostInstant;

use crate::host::real;

/// A clock as the host's kernel tells it, nanoseconds; `None` if there is none of that number.
pub fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system call fills the structure.
    let failed = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time) != 0 };
    (!failed).then_some(nanoseconds(time))
}

/// Registers or unregisters a restartable sequence of the calling thread, 32 bytes at `area`.
///
/// # Safety
/// The area must stay while it is registered.
pub unsafe fn rseq(area: *mut c_void, unregister: bool, signature: u32) {
    const AREA_BYTES: u32 = 32;
    // SAFETY: the caller vouches for the area. Where the host has no rseq, nothing ever writes to it.
    unsafe { libc::syscall(libc::SYS_rseq, area, AREA_BYTES, c_int::from(unregister), signature) };
}

/// Arms the host timer `timer` to fire once at `instant`.
pub fn arm_timer(timer: libc::timer_t, instant: HostInstant) {
    let setting = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: timespec(instant.as_ns().max(1)),
    };
    // SAFETY: the setting is readable.
    unsafe {
        real::timer_settime(timer, libc::TIMER_ABSTIME, &setting, null_mut());
    }
}

/// Switches the host timer `timer` off.
pub fn disarm_timer(timer: libc::timer_t) {
    let off = libc::itimerspec { it_interval: timespec(0), it_value: timespec(0) };
    // SAFETY: the setting is readable.
    unsafe {
        real::timer_settime(timer, 0, &off, null_mut());
    }
}

/// A signal as a mask of the host kernel's.
pub const fn mask_of(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Size of such a mask.
const MASK_BYTES: c_long = 8;

/// Sleeps under the signal mask `mask` until a signal handler has run (false) or `timeout_ns` is over (true). Without a
/// timeout it sleeps until a signal.
pub fn sleep(timeout_ns: Option<u64>, mask: u64) -> bool {
    let timeout = timespec(timeout_ns.unwrap_or(0));
    let timeout: *const libc::timespec = if timeout_ns.is_some() { &timeout } else { core::ptr::null() };
    // SAFETY: ppoll on no file descriptors reads the timeout and the mask only.
    unsafe { libc::syscall(libc::SYS_ppoll, null_mut::<c_void>(), 0_usize, timeout, &raw const mask, MASK_BYTES) == 0 }
}

/// Blocks the signals of `mask`, too; returns the mask from before.
pub fn block(mask: u64) -> u64 {
    change_mask(libc::SIG_BLOCK, mask)
}

/// Makes `mask` the signal mask of the calling thread.
pub fn set_mask(mask: u64) {
    change_mask(libc::SIG_SETMASK, mask);
}

/// Runs `f` under the signal mask `mask`, in place of the present one.
pub fn with_mask(mask: u64, f: impl FnOnce()) {
    let before = change_mask(libc::SIG_SETMASK, mask);
    f();
    set_mask(before);
}

fn change_mask(how: c_int, mask: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: both masks are ours.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const mask, &raw mut before, MASK_BYTES) };
    before
}

/// Asks for the signal stack of the calling thread.
///
/// # Safety
/// `stack` must be writable.
pub unsafe fn signal_stack(stack: *mut libc::stack_t) {
    // SAFETY: the caller's structure; nothing is changed.
    unsafe { libc::sigaltstack(null_mut(), stack) };
}

/// Makes the stub `pid` stop, as the kernel itself does at a tick (os_alarm_process).
pub fn stop(pid: c_int) {
    // SAFETY: plain system call.
    unsafe { libc::syscall(libc::SYS_kill, pid, libc::SIGALRM) };
}

/// Sleeps until `word` is woken, unless it is other than `seen`, or a signal comes.
pub fn futex_wait(word: &AtomicU32, seen: u32) {
    // SAFETY: a word that stays, and no timeout.
    unsafe {
        real::syscall(libc::SYS_futex, word.as_ptr() as usize, libc::FUTEX_WAIT as usize, seen as usize, 0, 0, 0)
    };
}

/// Wakes who sleeps on `word`; tells how many that were.
pub fn futex_wake(word: &AtomicU32) -> c_long {
    // SAFETY: a word that stays.
    unsafe { real::syscall(libc::SYS_futex, word.as_ptr() as usize, libc::FUTEX_WAKE as usize, 1, 0, 0, 0) }
}

/// Whether anybody sleeps on `word`: who does so is moved, to where it was.
pub fn futex_is_awaited(word: &AtomicU32) -> bool {
    let address = word.as_ptr() as usize;
    // SAFETY: a word that stays; none is woken, and one is moved.
    unsafe { real::syscall(libc::SYS_futex, address, libc::FUTEX_REQUEUE as usize, 0, 1, address, 0) == 1 }
}

/// Whether the child `pid` has ended, and is yet to be buried.
pub fn has_ended(pid: c_int) -> bool {
    end_of(pid).is_some()
}

/// Whether somebody has killed it.
pub fn was_killed(pid: c_int) -> bool {
    // SAFETY: what has ended has a status.
    end_of(pid).is_some_and(|end| end.si_code == libc::CLD_KILLED && unsafe { end.si_status() } == libc::SIGKILL)
}

fn end_of(pid: c_int) -> Option<libc::siginfo_t> {
    // SAFETY: a plain system call; the structure is ours, and zeros are a value of it.
    unsafe {
        let mut ended: libc::siginfo_t = core::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        let is_answered = libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut ended, options) == 0;
        (is_answered && ended.si_pid() == pid).then_some(ended)
    }
}

/// Gives the core to others that want it.
pub fn yield_core() {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// Sleeps for so long, or until a signal.
pub fn doze(ns: u64) {
    let time = timespec(ns);
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, null_mut::<c_void>()) };
}

/// Why the last libc function that failed has.
pub fn error() -> c_int {
    // SAFETY: the calling thread's errno.
    unsafe { *libc::__errno_location() }
}

/// What a libc function returns that failed with `error`.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: the calling thread's errno.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// What the host says by the environment variable `name`; `None` where there is none. At start, when nothing changes them.
pub fn variable(name: &CStr) -> Option<&'static str> {
    // SAFETY: getenv returns NULL or a NUL-terminated string, which stays unless the variable is set anew.
    let value = unsafe {
        let value = libc::getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value)
    };
    Some(value.to_str().unwrap_or_default())
}

/// The numbers in `text`, with commas between them; `None` if it is not so many.
pub fn numbers<const N: usize>(text: &str) -> Option<[c_int; N]> {
    let mut words = text.split(',');
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(numbers)
}

/// Sends a signal to the calling thread.
pub fn raise(signal: c_int) {
    // SAFETY: plain system calls on ourselves.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), c_long::from(signal));
    }
}

/// Asks that `signal` be sent to this process whenever `fd` becomes readable, and makes reading from it non-blocking.
pub fn signal_on_input(fd: c_int, signal: c_int) {
    // SAFETY: fcntl on an own file descriptor.
    unsafe {
        libc::fcntl(fd, libc::F_SETOWN, libc::getpid());
        libc::fcntl(fd, F_SETSIG, signal);
        libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK);
    }
}

/// From linux/fcntl.h; not in every version of the libc crate.
const F_SETSIG: c_int = 10;

/// Whether there is something to read from `fd`.
pub fn is_readable(fd: c_int) -> bool {
    let mut asked = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, which is ours.
    unsafe { libc::syscall(libc::SYS_poll, &raw mut asked, 1_usize, 0_usize) == 1 }
}

/// Waits until there is room to write to `fd`, or a signal handler has run, or nobody reads it any more.
pub fn wait_for_room(fd: c_int) {
    let mut asked = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one structure, which is ours.
    unsafe { libc::syscall(libc::SYS_poll, &raw mut asked, 1_usize, -1_isize) };
}

/// Takes everything that is in a non-blocking `fd` out of it.
pub fn drain(fd: c_int) {
    let mut bytes = [0_u8; 64];
    // SAFETY: the buffer is writable for its length.
    while unsafe { libc::syscall(libc::SYS_read, fd, bytes.as_mut_ptr(), bytes.len()) } == bytes.len() as c_long {}
}

/// prctl(2) with one argument.
pub fn prctl(option: c_int, argument: c_uint) {
    // SAFETY: only options that touch no memory are used.
    unsafe {
        libc::prctl(option, libc::c_ulong::from(argument), 0, 0, 0);
    }
}

/// Nanoseconds as a `timespec`.
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// A `timespec` as nanoseconds; negative parts count as zero.
pub fn nanoseconds(time: libc::timespec) -> u64 {
    (time.tv_sec.max(0) as u64) * 1_000_000_000 + time.tv_nsec.max(0) as u64
}

/// The handler address in a `sigaction` as a function.
///
/// # Safety
/// `address` must be a handler installed with `SA_SIGINFO`.
pub unsafe fn handler(address: usize) -> extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) {
    // SAFETY: the caller vouches for it.
    unsafe { transmute(address) }
}
