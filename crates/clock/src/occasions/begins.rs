//! When the programs that a lab starts begin to talk, and for how long they wait from then on (`interrupts::Talkers`): what starts
//! them takes the CPU before, and they do, each beside the others (`python/dilaton/measure/waiting/begins.py`).
//!
//! Which stub has which of them the agent tells, by saying so when it has executed one: no stub was made after that of its program,
//! as the agent goes before all others, and a program that is executed does nothing before the agent waits for something. One that
//! looks which address it has, by connecting a socket of UDP, is seen then, some calls before it sends.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Id, Talkers};

use crate::host::page::ClockPage;
use crate::programs::stub;
use crate::time::present;

static TALKERS: Talkers = Talkers::none();
/// The stub that was made last.
static LATEST: Id = Id::new(0);

/// The stub `pid` is new.
pub fn born(pid: c_int) {
    LATEST.set(pid);
}

/// The program that was executed last is this process of the plan, by its place there.
pub fn watch(page: &ClockPage, process: u64) {
    if let Some(place) = TALKERS.watch(LATEST.get()) {
        page.begins_process[place].store(process + 1, Relaxed);
    }
}

/// The stub `pid` has entered the kernel with these registers.
pub fn entered(page: &ClockPage, pid: c_int, registers: &libc::user_regs_struct) {
    let call = registers.orig_rax as i64;
    let address = match call {
        libc::SYS_sendto => registers.r8,
        libc::SYS_connect | libc::SYS_sendmsg | libc::SYS_sendmmsg => registers.rsi,
        libc::SYS_accept | libc::SYS_accept4 => 0,
        libc::SYS_clone
        | libc::SYS_clone3
        | libc::SYS_fork
        | libc::SYS_vfork
        | libc::SYS_execve
        | libc::SYS_execveat => {
            leave_out(page, pid);
            return;
        }
        _ => return,
    };
    let Some(place) = TALKERS.place_of(pid) else { return };
    if page.begins_ns[place].load(Relaxed) == 0 && is_to_others(pid, call, address) {
        TALKERS.talks(place);
        page.begins_ns[place].store(present::look(page).as_ns(), Relaxed);
    }
}

/// Of the program of the stub `pid`, if it is watched, nothing is known any more.
fn leave_out(page: &ClockPage, pid: c_int) {
    if let Some(place) = TALKERS.place_of(pid) {
        TALKERS.leave(place);
        page.begins_process[place].store(0, Relaxed);
    }
}

/// The kernel turns to the program of the stub `pid`, as `Talkers::turns_to` has it.
pub fn turns_to(page: &ClockPage, pid: c_int, since_ns: u64, entered_ns: u64, now_ns: u64) {
    if let Some(wait) = TALKERS.turns_to(pid, since_ns, entered_ns, now_ns) {
        page.record_wait(wait);
    }
}

/// The kernel ends the stub `pid`.
pub fn ended(pid: c_int) {
    if let Some(place) = TALKERS.place_of(pid) {
        TALKERS.leave(place);
    }
}

/// Whether this call may reach another node: who accepts may, and who names an address of such a family.
fn is_to_others(pid: c_int, call: i64, address: u64) -> bool {
    let family_at = match call {
        libc::SYS_accept | libc::SYS_accept4 => return true,
        // Both begin with where the address is.
        libc::SYS_sendmsg | libc::SYS_sendmmsg => stub::word_at(pid, address),
        _ => address,
    };
    let family = || i32::from(stub::word_at(pid, family_at) as u16);
    family_at != 0 && matches!(family(), libc::AF_INET | libc::AF_INET6 | libc::AF_PACKET)
}
