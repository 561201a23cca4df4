//! What the kernel gets to read in virtual time, from whichever source (`sources.rs`).
//!
//! At a deadline of one the kernel's SIGIO handler is called, which asks its epoll for what is ready, and gets the answer from
//! here; none of these descriptors is ever ready by itself, so no signal comes from the host. One that was reported is not
//! reported again until the kernel has found it empty (`interrupts::Readiness`).
//!
//! The kernel's handler keeps what its epoll answers in one array, and may be called again while it goes through that, as
//! interrupts are on where it receives a frame. What the inner call writes would stand in place of what the outer one has yet
//! to look at, and a device forgotten like that would never be read. So **one is reported at a time**: the handler asks
//! until nothing is left.
//!
//! What the kernel forgets, it is told again (`interrupts::Reports`). Alarms are noted in the same way. Where another alarm
//! was noted, one that is forgotten does no harm, as the kernel then looks for all that is due; but it may have noted input
//! alone. So a kernel that idles, or lets user code run, and has not set its timer since, is told of its alarm once more
//! (`virtual-time/src/timer.rs`).

use core::ffi::c_int;

use interrupts::Reports;
use virtual_time::VirtualInstant;
use wire::NEVER;

use crate::host::page::ClockPage;
use crate::host::real;
use crate::kernel::masks;
use crate::sources::disks::{self, Disks};
use crate::sources::guest;
use crate::sources::tap::Taps;
use crate::sources::Source;
use crate::time::present;

static REPORTS: Reports = Reports::none();

/// When there is something of which the kernel does not know yet, on this guest's clock.
pub fn next_ns() -> u64 {
    Taps.next_ns().min(Disks.next_ns())
}

/// Whether something is due at `at` of which the kernel did not know; it is told by `tell`, which calls its SIGIO handler.
/// In a critical section.
pub fn report(page: &ClockPage, at: VirtualInstant, tell: impl FnOnce()) -> bool {
    let due_ns = next_ns();
    if due_ns == NEVER || at.as_ns() < due_ns {
        return false;
    }
    // Both, whatever the first has.
    let is_reported = Taps.report(at) | Disks.report(at);
    if is_reported {
        page.record_lateness(present::latest(page).as_ns() - due_ns);
        REPORTS.report();
        tell();
    }
    is_reported
}

/// Forgets what was reported in vain, so that it is reported again: the kernel, which has nothing left to do, has not asked.
pub fn report_again_if_forgotten() {
    if REPORTS.take_forgotten() {
        masks::exclusively(|| {
            Taps.take_back_ready();
            Disks.take_back_ready();
        });
    }
}

/// The kernel's SIGIO handler is about to be called for something of the host's.
pub fn expect_host() {
    REPORTS.expect_host();
}

/// Keeps that the host has sent something until the kernel rests.
pub fn keep() {
    REPORTS.keep();
}

/// Whether the host had sent something; it is no longer kept.
pub fn take_kept() -> bool {
    REPORTS.take_kept()
}

/// epoll_ctl(2): what to say when something is ready.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    // SAFETY: the caller's structure, which may be unaligned.
    let token = unsafe {
        (operation != libc::EPOLL_CTL_DEL && !event.is_null()).then(|| (&raw const (*event).u64).read_unaligned())
    };
    if Disks.listen(fd, token) || Taps.listen(fd, token) {
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
    if let Some(token) = Disks.take_ready().or_else(|| Taps.take_ready()) {
        let event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: the caller has room for `most` events.
        unsafe { events.write_unaligned(event) };
        return 1;
    }
    // On the event drive the host must not be asked for the sake of what was reported: it may have something.
    if !REPORTS.asks_host(present::is_event() && (guest::guest().is_some() || disks::are_there())) {
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
