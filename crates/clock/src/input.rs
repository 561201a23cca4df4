//! What the kernel gets to read in virtual time: frames of wires, and word of what its disks have done.
//!
//! Both are **deadlines** of the clock as timers are. At one, the kernel's SIGIO handler is called, which asks its epoll for
//! what is ready, and gets the answer from here; none of these descriptors is ever ready by itself, so no signal comes from
//! the host. One that was reported is not reported again until the kernel has found it empty.
//!
//! The kernel's handler keeps what its epoll answers in one array, and may be called again while it goes through that, as
//! interrupts are on where it receives a frame. What the inner call writes would stand in place of what the outer one has yet
//! to look at, and a device forgotten like that would never be read. So **one is reported at a time**: the handler asks
//! until nothing is left.
//!
//! **What the kernel forgets.** With its interrupts off it notes that its handler was called. When it turns them on it clears
//! what it had noted (unblock_signals of arch/um/os-Linux/signal.c) two instructions after interrupts were off again, as
//! the compiler of Debian's has put them: a signal in between is forgotten. On a real device the next frame brings the
//! next signal; here it was reported, and nobody would read it; and what the host writes to a serial line it may write for
//! once. So a kernel that idles, with nothing noted, and has not asked its epoll since its handler was called, is told once
//! more. Alarms are noted in the same way. Where another alarm was noted, one that is forgotten does no harm, as the kernel
//! then looks for all that is due; but it may have noted input alone. So a kernel that idles, or lets user code run, and has
//! not set its timer since, is told of its alarm once more (`virtual-time/src/timer.rs`).

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use virtual_time::VirtualInstant;
use wire::NEVER;

use crate::page::ClockPage;
use crate::{disks, guest, masks, present, real, tap};

/// The kernel's SIGIO handler has been called from here, and is to find nothing of the host's.
static REPORTED: AtomicBool = AtomicBool::new(false);
/// It has been called for the host's sake since it asked the host last.
static HOST_EXPECTED: AtomicBool = AtomicBool::new(false);
/// The host has sent something, of which the kernel is to be told when it rests.
static KEPT: AtomicBool = AtomicBool::new(false);

/// When there is something of which the kernel does not know yet, on this guest's clock.
pub fn next_ns() -> u64 {
    tap::arrival_ns().min(disks::next_ns())
}

/// Whether something is due at `at` of which the kernel did not know; it is told by `tell`, which calls its SIGIO handler.
/// In a critical section.
pub fn report(page: &ClockPage, at: VirtualInstant, tell: impl FnOnce()) -> bool {
    let due_ns = next_ns();
    if due_ns == NEVER || at.as_ns() < due_ns {
        return false;
    }
    let is_frame = tap::mark_ready(at);
    let is_ready = disks::mark_ready(at) || is_frame;
    if is_ready {
        page.record_lateness(present::latest(page).as_ns() - due_ns);
        REPORTED.store(true, Relaxed);
        tell();
    }
    is_ready
}

/// Forgets what was reported in vain, so that it is reported again: the kernel, which has nothing left to do, has not asked.
pub fn report_again_if_forgotten() {
    if HOST_EXPECTED.swap(false, Relaxed) {
        keep();
    }
    if REPORTED.swap(false, Relaxed) {
        masks::exclusively(|| {
            tap::take_back_ready();
            disks::take_back_ready();
        });
    }
}

/// The kernel's SIGIO handler is about to be called for something of the host's.
pub fn expect_host() {
    HOST_EXPECTED.store(true, Relaxed);
}

/// Keeps that the host has sent something until the kernel rests: on the event drive, and where the kernel has forgotten it.
pub fn keep() {
    KEPT.store(true, Relaxed);
}

/// Whether the host had sent something; it is no longer kept.
pub fn take_kept() -> bool {
    KEPT.swap(false, Relaxed)
}

/// epoll_ctl(2): what to say when something is ready.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    // SAFETY: the caller's structure, which may be unaligned.
    let token = || unsafe { (operation != libc::EPOLL_CTL_DEL).then(|| (&raw const (*event).u64).read_unaligned()) };
    if disks::is_line(fd) {
        disks::listen(token());
        return 0;
    }
    if tap::is_device(fd) {
        tap::listen(fd, token());
        return 0;
    }
    // SAFETY: passed through.
    unsafe { real::epoll_ctl(epoll, operation, fd, event) }
}

/// epoll_wait(2): says what is ready, when it was we who called the kernel's handler.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    if let Some(token) = disks::take_ready().or_else(tap::take_ready) {
        let event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: the caller has room for `most` events.
        unsafe { events.write_unaligned(event) };
        return 1;
    }
    // The handler may be called later, and for both, when the kernel has only noted that it was called; and one call may
    // find what was reported for another. On the event drive the host must not be asked then: it may have something.
    let asks_host = || {
        let reported = REPORTED.swap(false, Relaxed);
        let may_be_reported = guest::guest().is_some() || disks::are_there();
        HOST_EXPECTED.swap(false, Relaxed) || !(reported || present::is_event() && may_be_reported)
    };
    if !asks_host() {
        return 0;
    }
    // SAFETY: passed through.
    let count = unsafe { real::epoll_wait(epoll, events, most.min(1), timeout) };
    if count > 0 {
        // There may be more.
        expect_host();
    }
    count
}
