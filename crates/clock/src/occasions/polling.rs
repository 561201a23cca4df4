//! A program asks something of the kernel, and is answered: `interrupts::Polling` tells those that wait without a pause.
//!
//! They keep the CPU from those that have something to do. Linux 6.1 turns to whom something wakes up at once, and back after a
//! tick; since 6.6 it lets the program that runs have its slice, and looks whether that is over with the next tick, after up
//! to 10 ms. It is virtual time, so no TDF helps, and where the two are of two nodes nobody would wait. So who polls lets all
//! others go first that can run: it sleeps, just longer than it takes to turn to one of them, where those sleep whose node has
//! a CPU of its own.

use core::ffi::c_int;

use interrupts::{Call, Polling};

use crate::host::page::ClockPage;
use crate::nodes::shares;
use crate::occasions::contention;
use crate::time::{drive, present};

static POLLING: Polling = Polling::none();

/// The program of stub `pid` has entered the kernel, by that system call if by any.
pub fn entered(pid: c_int, system_call: i64) {
    POLLING.entered(pid, i32::try_from(system_call).unwrap_or(i32::MAX), drive::stubs_ns());
}

/// All registers of stub `pid` have been read, which may just have entered the kernel.
pub fn registers_read(page: &ClockPage, pid: c_int) {
    let Some(call) = POLLING.polls_by(pid) else { return };
    if contention::is_alone(page) == Some(false) {
        shares::give_way(page);
        // It has come only now, and asks on.
        POLLING.entered(pid, call, drive::stubs_ns());
    }
}

/// The kernel lets the stub `pid` go on, with this result where it has asked for something.
pub fn answered(page: &ClockPage, pid: c_int, result: i64) {
    if result == -i64::from(libc::ENOSYS) {
        return; // It is no answer: the kernel has turned to a program in the middle of its call, and tells where its thread's storage is.
    }
    if let Some(does_nothing_else) = POLLING.answered(pid, |call| kind(call.into(), result)) {
        page.record_polling(present::latest(page), does_nothing_else);
        contention::asks(page, pid);
    } else {
        contention::works(page, pid);
    }
}

/// The kernel is about to turn to the only program that can run.
pub fn turns_to_the_only_one() {
    POLLING.turns_to_the_only_one();
}

/// The kernel ends the stub `pid`.
pub fn ended(pid: c_int) {
    POLLING.ended(pid);
    contention::ended(pid);
}

/// The guest has idled.
pub fn idled() {
    POLLING.idles();
}

/// What a system call with this result says of its program.
fn kind(call: i64, result: i64) -> Call {
    match call {
        libc::SYS_clock_gettime | libc::SYS_gettimeofday | libc::SYS_time => Call::Time,
        libc::SYS_select
        | libc::SYS_pselect6
        | libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_sched_yield => Call::Look,
        _ if result == -i64::from(libc::EAGAIN) => Call::Look,
        _ => Call::Other,
    }
}
