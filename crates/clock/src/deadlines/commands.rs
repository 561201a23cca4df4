//! The commands of the host, which are on the clock page, and what the agent asks of the clock.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Id, Word};
use virtual_time::Drive;

use crate::deadlines::{bound, timer};
use crate::host::page::ClockPage;
use crate::host::sys;
use crate::kernel::rest;
use crate::time::{drive, present};

struct Commands {
    /// The pipe by which the host wakes the clock.
    wake_fd: Id,
    /// The number of the command that was taken over last.
    applied: Word,
}

static COMMANDS: Commands = Commands { wake_fd: Id::new(-1), applied: Word::new(0) };

/// Takes over the first command, which is there already.
pub fn start(page: &ClockPage, wake_fd: c_int) {
    COMMANDS.wake_fd.set(wake_fd);
    take_over(page);
}

/// Lets the wake pipe raise SIGALRM; not earlier than its handler is there, for without one it ends the process.
pub fn listen() {
    sys::signal_on_input(COMMANDS.wake_fd.get(), libc::SIGALRM);
}

/// Whether there is a command that has not been taken over.
pub fn are_there(page: &ClockPage) -> bool {
    page.command_sequence.load(Relaxed) != COMMANDS.applied.get()
}

/// Takes over a command that the host has announced through the wake pipe, if there is one.
pub fn heed(page: &ClockPage) {
    if are_there(page) {
        sys::drain(COMMANDS.wake_fd.get());
        take_over(page);
    }
}

/// Takes over a command of the host: time goes on from the present instant as it says.
pub fn take_over(page: &ClockPage) {
    let Some(command) = page.command().filter(|command| command.sequence != COMMANDS.applied.get()) else { return };
    if present::is_changing() {
        return; // a handler, in the middle of a change: the next reading takes the command over
    }
    if command.orders.drive == Drive::Work {
        drive::meter_work();
    }
    if rest::is_resting() {
        timer::skip_idle_time(page); // which a ceiling may have kept behind the host's clock
    }
    present::change(page, |clock| {
        let now = drive::both(clock.drive());
        let then = if command.orders.drive == clock.drive() { now.drive } else { drive::now(command.orders.drive) };
        page.virtual_now_ns.store(clock.virtual_at(now.drive).as_ns(), Relaxed);
        clock.obey(now, then, command.orders)
    });
    bound::obey(page);
    COMMANDS.applied.set(command.sequence);
    page.applied_sequence.store(command.sequence, Relaxed);
    // The host timer was armed for the old pace; its alarm has it armed for the new one.
    if timer::is_adopted() {
        sys::raise(libc::SIGALRM);
    }
}

/// The kernel ends here, and another one goes on from this instant: virtual time stands still.
pub fn hand_over(page: &ClockPage) {
    present::change(page, |clock| clock.wait_for_host(drive::now(clock.drive()), true));
    bound::hand_over(page, present::look(page));
}

/// The agent waits for the host from now on, and virtual time stands still; or it no longer does.
pub fn wait_for_host(page: &ClockPage, waits: bool) {
    present::change(page, |clock| clock.wait_for_host(drive::now(clock.drive()), waits));
    present::look(page);
    if waits {
        bound::leave(page);
    }
}
