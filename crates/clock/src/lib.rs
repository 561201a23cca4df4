//! The clock of a guest: a library preloaded into a stock `linux.uml`.
//!
//! A User-Mode Linux kernel learns the time through few calls of libc (arch/um/os-Linux/time.c): `clock_gettime` is its
//! clock source, one POSIX timer its clock event device, and `sigsuspend` its idle loop. This library stands in front of
//! them. Everything in the guest follows: the clocks of its programs, TCP's timers, netem's queues.
//!
//! ```text
//! interpose.rs   the libc functions that the kernel calls, in virtual time
//! keeper.rs      the one clock behind them: readings, timer, commands of the host
//! present.rs     the clock itself, which handlers may change under whoever reads it
//! delivery.rs    how alarm and input reach the kernel
//! masks.rs       when signals have to wait
//! direct.rs      calls of the kernel's handlers without a signal
//! rest.rs        the kernel's idle loop: jumps and sleeps
//! drive.rs       what drives the timeline: the host's clock, or the CPU time that the guest uses
//! guest.rs       this guest on the wire to the other guests of a run
//! bound.rs       how they bound the clock
//! aside.rs       what that costs, which is not the guest's work
//! tap.rs         the network devices on that wire
//! disks.rs       block devices that take the time of a model
//! io_thread.rs   the kernel's I/O thread as a routine
//! input.rs       what the kernel gets to read in virtual time
//! serial.rs      serial lines, read a block at a time
//! files.rs       the libc functions on files that lead to these
//! page.rs        shared memory with the host: commands in, timeline and counters out
//! tracee.rs      duties toward user processes: extended CPU state, death with the kernel
//! counter.rs     instructions of user code that are carried out: the time-stamp counter, CPUID, the agent's requests
//! cpuid.rs       what user code is told of the processor
//! lacks.rs       what programs ask for that guests cannot give
//! shares.rs      nodes that share the guest's CPU
//! stops.rs       stops of user code without a signal, where none runs
//! interruption.rs what an interruption costs on this host
//! standing.rs    interrupts at their exact instants
//! spin.rs        programs that spin on the event drive
//! entropy.rs     random numbers from a seed
//! real.rs        the libc functions behind ours
//! sys.rs         system calls
//! ```
//!
//! Modules use each other one way, but for four that are one loop by their nature: a reading of the clock (`keeper`) may
//! wait for other guests (`bound`) or find an alarm, whose handler (`delivery`) the kernel runs, which reads the clock; and
//! so may its idle loop (`rest`).
//!
//! All of it runs inside a kernel that has replaced malloc, switches stacks by itself and may be interrupted by its own
//! signal handlers at any instruction. Therefore: no `std`, no heap, no locks, no thread-local storage. The kernel is a
//! single thread; what a handler and the code that it interrupts share are atomics with relaxed order, and values wider
//! than a word are read again when a handler has changed them meanwhile.

#![no_std]

mod aside;
mod bound;
mod counter;
mod cpuid;
mod delivery;
mod direct;
mod disks;
mod drive;
mod entropy;
mod files;
mod guest;
mod input;
mod interpose;
mod interruption;
mod io_thread;
mod keeper;
mod lacks;
mod masks;
mod page;
mod present;
mod real;
mod rest;
mod serial;
mod shares;
mod spin;
mod standing;
mod stops;
mod sys;
mod tap;
mod tracee;

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
        end_with_host(inherited.life);
        rest::start(inherited.lines);
        guest::start();
        disks::start();
        keeper::start(page::map(inherited.page), inherited.wake);
    }
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
