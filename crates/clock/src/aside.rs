//! What keeping to the others' time costs is not the guest's work (`bound.rs`).
//!
//! Work is the CPU time of the kernel's process and of its stubs (`drive.rs`). On the shortest links a guest agrees with
//! others every few microseconds: were that charged, its CPU would be the slower the shorter its links are. What happens
//! between two readings of the clock is taken back at the second ([`take_back_work`]). But while user code runs, the
//! host timer interrupts the kernel's sleep for it, and most of what that costs, the switches between the two processes and
//! the signal, is before the first line of the handler and after its last. So from the entry of such a handler on all that
//! the kernel's own process uses is put *aside*, until it is interrupted again or turns to the stub. One switch too few and
//! one too many are left out that way.
//!
//! A handler that finds something for the kernel to do is work, as it would be without others. What the interruption costs
//! the stub is charged.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{drive, sys};

/// The CPU time of the kernel's process from which on it is aside; 0: it is work.
static SINCE_NS: AtomicU64 = AtomicU64::new(0);

/// CPU time of the kernel's process.
fn cpu_ns() -> u64 {
    sys::cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// From here on what the kernel's process uses is aside.
pub fn begin() {
    let now_ns = cpu_ns();
    settle(SINCE_NS.swap(now_ns, Relaxed), now_ns);
}

/// The kernel turns to the stub: what was aside is left out of work.
pub fn end() {
    let since_ns = SINCE_NS.swap(0, Relaxed);
    if since_ns != 0 {
        settle(since_ns, cpu_ns());
    }
}

/// The kernel has something to do: what is aside is work.
pub fn give_back() {
    SINCE_NS.store(0, Relaxed);
}

/// Where the work of the kernel's own process is, for [`take_back_work`].
pub fn own_work_ns() -> u64 {
    if drive::is_metered() {
        drive::own_ns()
    } else {
        u64::MAX
    }
}

/// What the kernel's own process has worked since `begin_ns` was not for the guest: others were told or waited for, or data
/// were moved for a disk.
pub fn take_back_work(begin_ns: u64) {
    if drive::is_metered() {
        let ns = drive::own_ns().saturating_sub(begin_ns);
        drive::take_back(ns);
        let since_ns = SINCE_NS.load(Relaxed);
        if since_ns != 0 {
            // It is left out already.
            SINCE_NS.store(since_ns + ns, Relaxed);
        }
    }
}

fn settle(since_ns: u64, now_ns: u64) {
    if since_ns != 0 {
        drive::leave_out(now_ns.saturating_sub(since_ns));
    }
}
