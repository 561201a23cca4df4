//! The libc functions that a User-Mode Linux kernel calls for its time (arch/um/os-Linux/{time,signal}.c), in virtual
//! time. In a process that is not a guest kernel each one is the real function.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use crate::deadlines::{commands, timer};
use crate::host::{page, real, sys};
use crate::kernel::leavings::unseen;
use crate::kernel::masks;
use crate::nodes::shares;
use crate::occasions::handlers::Adopted;
use crate::occasions::{begins, idle, polling, reading, user_code};
use crate::programs::general;
use crate::time::{drive, present};

/// clock_gettime(2): CLOCK_MONOTONIC is virtual time on the guest's face, CLOCK_REALTIME the same since the run's date.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    let base_ns = match clock {
        libc::CLOCK_MONOTONIC => Some(0),
        libc::CLOCK_REALTIME => Some(reading::realtime_base_ns()),
        _ => None,
    };
    let Some(now_ns) = base_ns.and_then(|base_ns| Some(base_ns + reading::reading_ns()?)) else {
        // SAFETY: passed through.
        return unsafe { real::clock_gettime(clock, time) };
    };
    // SAFETY: the caller's structure.
    unsafe { *time = sys::timespec(now_ns) };
    0
}

/// gettimeofday(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, zone: *mut c_void) -> c_int {
    match reading::reading_ns() {
        Some(reading_ns) if !time.is_null() => {
            let ns = reading::realtime_base_ns() + reading_ns;
            // SAFETY: the caller's structure.
            unsafe {
                *time =
                    libc::timeval { tv_sec: (ns / 1_000_000_000) as i64, tv_usec: (ns % 1_000_000_000 / 1000) as i64 };
            }
            0
        }
        // SAFETY: passed through.
        _ => unsafe { real::gettimeofday(time, zone) },
    }
}

/// timer_create(2): the kernel makes one, its clock event device.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn timer_create(
    clock: libc::clockid_t,
    event: *mut libc::sigevent,
    timer: *mut libc::timer_t,
) -> c_int {
    // SAFETY: passed through; on success the timer is set.
    unsafe {
        let result = real::timer_create(clock, event, timer);
        if result == 0 && page::page().is_some() {
            timer::adopt(*timer);
        }
        result
    }
}

/// timer_settime(2), relative, as the kernel uses it.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn timer_settime(
    timer: libc::timer_t,
    flags: c_int,
    new: *const libc::itimerspec,
    old: *mut libc::itimerspec,
) -> c_int {
    let Some(page) = page::page() else {
        // SAFETY: passed through.
        return unsafe { real::timer_settime(timer, flags, new, old) };
    };
    // SAFETY: the caller's structure.
    let setting = unsafe { *new };
    timer::set(page, sys::nanoseconds(setting.it_value), sys::nanoseconds(setting.it_interval));
    0
}

/// timer_gettime(2). The kernel asks only before it idles, and does not sleep when the answer is zero. Whether and how long
/// to sleep is for [`sigsuspend`] to say; so the answer is one nanosecond.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn timer_gettime(timer: libc::timer_t, setting: *mut libc::itimerspec) -> c_int {
    if page::page().is_none() {
        // SAFETY: passed through.
        return unsafe { real::timer_gettime(timer, setting) };
    }
    // SAFETY: the caller's structure.
    unsafe {
        *setting = libc::itimerspec { it_interval: sys::timespec(0), it_value: sys::timespec(1) };
    }
    0
}

/// sigaction(2): the kernel's handlers of SIGALRM, SIGIO and SIGSEGV go behind ours.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: passed through, with a copy that differs in the handler.
    unsafe {
        let Some(adopted) = Adopted::of(signal).filter(|_| page::page().is_some()) else {
            return real::sigaction(signal, new, old);
        };
        // What is asked for first is answered first: `new` may be a changed copy of `old`.
        if !old.is_null() {
            real::sigaction(signal, null_mut(), old);
            (*old).sa_sigaction = adopted.seen_by_kernel((*old).sa_sigaction);
        }
        match new.as_ref() {
            Some(wanted) if wanted.sa_flags & libc::SA_SIGINFO != 0 => {
                let mut ours = *wanted;
                ours.sa_sigaction = adopted.install(wanted.sa_sigaction);
                let result = real::sigaction(signal, &ours, null_mut());
                if signal == libc::SIGALRM {
                    commands::listen();
                }
                result
            }
            Some(wanted) => real::sigaction(signal, wanted, null_mut()),
            None => 0,
        }
    }
}

/// sigprocmask(2). Around its idle sleep the kernel masks SIGALRM alone, and `masks` does that without the host. What tells
/// the kernel from its helpers, which share its memory, is where it keeps the mask from before; one that sleeps on a
/// signalfd keeps none, and has helpers that mask in another way.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn sigprocmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the caller's masks; or passed through.
    unsafe {
        let is_alarm_alone = !set.is_null() && *set.cast::<u64>() == sys::mask_of(libc::SIGALRM);
        if is_alarm_alone && page::page().is_some() {
            if how == libc::SIG_BLOCK && !old.is_null() {
                libc::sigemptyset(old);
                masks::mask(old as usize);
                return 0;
            }
            if how == libc::SIG_BLOCK && idle::sleeps_on_signals() {
                masks::mask(set as usize);
                return 0;
            }
            if how == libc::SIG_UNBLOCK && masks::is_masked() {
                masks::unmask();
                return 0;
            }
        }
        real::sigprocmask(how, set, old)
    }
}

/// sigsuspend(2): the kernel's idle loop, and helpers.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn sigsuspend(mask: *const libc::sigset_t) -> c_int {
    match page::page() {
        Some(page) if masks::is_masked_at(mask as usize) => {
            unseen(present::is_event, || idle::run(page));
            -1
        }
        // SAFETY: passed through.
        _ => unsafe { real::sigsuspend(mask) },
    }
}

/// signalfd(2): by the one for alarms the kernel is woken when it idles, on Linux 7.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn signalfd(fd: c_int, mask: *const libc::sigset_t, flags: c_int) -> c_int {
    // SAFETY: passed through, and the caller's mask.
    unsafe {
        let made = real::signalfd(fd, mask, flags);
        if page::page().is_some() && *mask.cast::<u64>() & sys::mask_of(libc::SIGALRM) != 0 {
            idle::will_sleep_on(made);
        }
        made
    }
}

/// poll(2): on that descriptor alone it is the kernel's idle loop.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn poll(asked: *mut libc::pollfd, count: libc::nfds_t, timeout_ms: c_int) -> c_int {
    // SAFETY: the caller's structures; or passed through.
    unsafe {
        match page::page() {
            Some(page) if count == 1 && idle::sleeps_on((*asked).fd) && masks::is_masked() => {
                unseen(present::is_event, || idle::run(page));
                sys::fail(libc::EINTR)
            }
            _ => real::poll(asked, count, timeout_ms),
        }
    }
}

/// kill(2): the kernel stops the stub of its present program, at its tick, and ends those that have no program any more.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn kill(pid: c_int, signal: c_int) -> c_int {
    if signal == libc::SIGALRM && page::page().is_some() && user_code::running() == 0 {
        user_code::keep_stop(pid);
        return 0;
    }
    if signal == libc::SIGKILL && page::page().is_some() {
        drive::read_unread();
        shares::ended(pid);
        polling::ended(pid);
        begins::ended(pid);
        general::forget(pid);
    }
    // SAFETY: passed through.
    unsafe { real::kill(pid, signal) }
}
