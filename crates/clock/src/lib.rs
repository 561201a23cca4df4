//! The clock of a guest: a library preloaded into a stock `linux.uml`.
//!
//! A User-Mode Linux kernel learns the time through few calls of libc (arch/um/os-Linux/time.c): `clock_gettime` is its
//! clock source, one POSIX timer its clock event device, and `sigsuspend` its idle loop. This library stands in front of
//! them. Everything in the guest follows: the clocks of its programs, TCP's timers, netem's queues.
//!
//! Each folder uses those below it, and so do the modules within one:
//!
//! ```text
//! interpose.rs       the libc functions that the kernel calls, in virtual time
//! files.rs           those on files
//! programs/          processes that the kernel traces
//!   tracee.rs          duties toward them: death with the kernel, and what follows
//!   extended.rs        their extended CPU state
//!   seccomp.rs         the same toward those that the kernel does not trace
//!   counter.rs         instructions that are carried out: the time-stamp counter, CPUID, the agent's requests
//!   cpuid.rs           what they are told of the processor
//!   general.rs         general registers, which are set more often than they change
//!   faults.rs          page faults, of which the kernel is told without asking them
//!   lacks.rs           what they ask for that guests cannot give
//!   stub.rs            what is asked of a stopped one
//!   memory.rs          a word of the memory of one that is not traced
//!   stubs.rs           which of those has which pages
//!   shared.rs          pages that the kernel shares with it
//!   threads.rs         those that the kernel itself makes
//! occasions/         when the clock acts
//!   handlers.rs        a signal of the host: alarm, input
//!   idle.rs            the kernel idles: it jumps or sleeps
//!   reading.rs         the kernel reads its clock
//!   polling.rs         a program asks, and is answered
//!   deaths.rs          a child of the kernel has ended
//!   contention.rs      a program is turned to: others may wait
//!   user_code.rs       the kernel lets user code run, and comes back from it
//!   serving.rs         something is due: the kernel's handler is called
//!   waiting.rs         the guest is at its bound, and waits for others
//! deadlines/         what is next
//!   commands.rs        commands of the host
//!   timer.rs           the guest's timer, and the host timer behind it
//!   bound.rs           how others bound the clock
//!   spinning.rs        looks at programs that may spin on the event drive
//! sources/           what comes from outside the kernel, in virtual time
//!   input.rs           what the kernel gets to read
//!   tap.rs             network devices on wires
//!   disks.rs           block devices that take the time of a model
//!   caches.rs          what of them is lost with their power
//!   faults.rs          what is wrong with them for a while
//!   io_thread.rs       the kernel's I/O thread as a routine
//!   guest.rs           this guest on the wire to the others of a run
//! nodes/             nodes that share the guest's CPU
//!   shares.rs          whose work it does, and the sleep of who has worked in advance
//!   calls.rs           whose stub is whose child
//! time/              what time it is
//!   standing.rs        interrupts at their exact instants
//!   aside.rs           what keeping to the others' time costs
//!   present.rs         the clock itself, which handlers may change under whoever reads it
//!   undisturbed.rs     whether the kernel's process has been on its core
//!   drive.rs           what drives the timeline: the host's clock, or the CPU time that the guest uses
//! kernel/            the guest's kernel as a program
//!   serial.rs          serial lines, read a block at a time
//!   rest.rs            whether it rests
//!   leavings.rs        what of ours is left on its stacks
//!   direct.rs          calls of its handlers without a signal
//!   hotplug.rs         the program that it would start for each device
//!   masks.rs           when signals have to wait
//! host/              what all this stands on
//!   guard.rs           the process whose end, with the kernel's, is that of everything
//!   interruption.rs    what an interruption costs on this host
//!   own_counter.rs     the time-stamp counter of the kernel itself, given up where that pays
//!   page.rs            shared memory with the host: commands in, timeline and counters out
//!   entropy.rs         random numbers from a seed
//!   sys.rs             system calls
//!   real.rs            the libc functions behind ours
//! ```
//!
//! What can be decided by numbers is decided in crates of their own, which are tested with numbers: `virtual_time`,
//! `interrupts`, `wire` and `disk`. Here is what feeds them from the host and carries out what they say.
//!
//! The kernel calls the library, and the library calls the kernel's handlers, which read the clock. That loop is the kernel's:
//! here it goes through addresses that the kernel has installed (`occasions/serving.rs`).
//!
//! All of it runs inside a kernel that has replaced malloc, switches stacks by itself and may be interrupted by its own
//! signal handlers at any instruction. Therefore: no `std`, no heap, no locks, no thread-local storage. The kernel is a
//! single thread; what a handler and the code that it interrupts share are atomics with relaxed order, and values wider
//! than a word are read again when a handler has changed them meanwhile.

#![no_std]

mod deadlines;
mod files;
mod host;
mod interpose;
mod kernel;
mod nodes;
mod occasions;
mod programs;
mod sources;
mod time;

use core::sync::atomic::Ordering::Relaxed;

use virtual_time::user_slack_ns;

use deadlines::{commands, timer};
use host::{entropy, guard, interruption, own_counter, page, real, set_id, sys};
use kernel::{hotplug, serial};
use sources::{disks, guest};
use time::{drive, present};

/// Says why and ends the process.
pub fn die(message: &[u8]) -> ! {
    // SAFETY: the message is readable for its length.
    unsafe {
        libc::syscall(libc::SYS_write, 2, message.as_ptr(), message.len());
        libc::_exit(78)
    }
}

/// Nothing in here is meant to panic; if it does, the guest ends at once instead of running with a wrong clock.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    die(b"dilaton clock: internal error\n")
}

#[used]
#[link_section = ".init_array"]
static ATTACH: extern "C" fn() = attach;

/// Runs when the library is loaded, before the kernel's `main`.
extern "C" fn attach() {
    real::look_up();
    if let Some(inherited) = page::inherited_fds() {
        set_id::refuse();
        guard::stay_behind();
        end_with_host(inherited.life);
        hotplug::leave_out();
        serial::start(inherited.lines);
        guest::start();
        disks::start();
        start(page::map(inherited.page), inherited.wake);
    }
}

/// Starts the clock of this page. The first command is there already; virtual time begins at 0.
fn start(page: &page::ClockPage, wake_fd: core::ffi::c_int) {
    // The default slack of 50 us would make every idle period that much too long.
    sys::prctl(libc::PR_SET_TIMERSLACK, 1);
    page.deadline_ns.store(timer::OFF, Relaxed);
    page.user_slack_ns.store(user_slack_ns(interruption::measured_ns()), Relaxed);
    own_counter::start(page);
    drive::start();
    entropy::start(page.seed.load(Relaxed));
    present::start(page);
    commands::start(page, wake_fd);
}

/// Lets the end of the host's process be that of the kernel: its end of the life line is closed then, by whatever death,
/// which the host's kernel tells by a signal that nothing here can mask or forget.
fn end_with_host(life: core::ffi::c_int) {
    sys::signal_on_input(life, libc::SIGKILL);
    if sys::is_readable(life) {
        // It was gone before.
        die(b"dilaton clock: nobody waits for this guest\n");
    }
}
