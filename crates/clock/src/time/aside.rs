//! What keeping to the others' time costs is not the guest's work (`interrupts::Aside`, `drive.rs`).

use interrupts::Aside;

use crate::time::drive;

static ASIDE: Aside = Aside::none();

/// Takes what the kernel's process uses from here on as aside.
pub fn begin() {
    if let Some(ns) = ASIDE.begin(drive::kernel_cpu_ns()) {
        drive::leave_out(ns);
    }
}

/// The kernel turns to the stub: what was aside is left out of work.
pub fn end() {
    if let Some(ns) = ASIDE.end(drive::kernel_cpu_ns) {
        drive::leave_out(ns);
    }
}

/// The kernel has something to do: what is aside is work.
pub fn give_back() {
    ASIDE.give_back();
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
        ASIDE.took_back(ns);
    }
}
