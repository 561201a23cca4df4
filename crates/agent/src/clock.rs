//! The one place where the agent touches clocks: the guest's CLOCK_MONOTONIC, which is virtual time on the guest's face, its
//! date, and what the agent asks of the library that is behind both.
//!
//! Everything that the agent does and tells is in virtual time. What it asks of the kernel, timers and delays, is on the
//! guest's own clock, which may run apart from it.

use std::arch::asm;
use std::sync::OnceLock;

use disk::Fault;
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, clock_settime, ClockId};
pub use requests::Power;
use requests::Request;
use virtual_time::{Face, VirtualInstant};

use crate::error::{Doing, Result};

/// Nanoseconds in a second.
pub const SECOND_NS: i64 = 1_000_000_000;

static FACE: OnceLock<Face> = OnceLock::new();

/// How the guest's clock reads, from the plan; before that it is taken for virtual time itself.
pub fn set_face(face: Face) {
    // Set once, when the guest is built.
    let _ = FACE.set(face);
}

/// How the guest's clock reads.
pub fn face() -> Face {
    FACE.get().copied().unwrap_or(Face::PLAIN)
}

/// Virtual now, by the guest's CLOCK_MONOTONIC, in nanoseconds.
pub fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every kernel has CLOCK_MONOTONIC");
    let reading_ns = now.tv_sec() * SECOND_NS + now.tv_nsec();
    face().instant(reading_ns.unsigned_abs()).as_ns() as i64
}

/// What the guest's CLOCK_MONOTONIC reads at a virtual instant, and not before. Of one before its kernel began, what it would have
/// read: only kernels that boot in the middle of a run ask, whose clocks are virtual time itself.
pub fn reading_ns(instant_ns: i64) -> i64 {
    if instant_ns < 0 && face() == Face::PLAIN {
        return instant_ns;
    }
    face().reading_from_ns(VirtualInstant::from_ns(instant_ns.max(0).unsigned_abs())) as i64
}

/// The same, for a timer.
pub fn reading(instant_ns: i64) -> TimeSpec {
    let reading_ns = reading_ns(instant_ns);
    TimeSpec::new(reading_ns / SECOND_NS, reading_ns % SECOND_NS)
}

/// The guest's CLOCK_REALTIME.
pub fn date() -> TimeSpec {
    clock_gettime(ClockId::CLOCK_REALTIME).expect("every kernel has CLOCK_REALTIME")
}

/// Sets the guest's CLOCK_REALTIME, in nanoseconds since 1970.
///
/// # Errors
/// The kernel refuses it.
pub fn set_date_ns(ns: i64) -> Result<()> {
    clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::new(ns / SECOND_NS, ns % SECOND_NS))
        .doing(|| "set the date".to_owned())
}

/// Moves the guest's CLOCK_REALTIME by exactly so much, whatever it is and however long that takes.
///
/// # Errors
/// The kernel refuses it, as where the date would be before 1970.
pub fn move_date(by_ns: i64) -> Result<()> {
    // linux/timex.h. With the second of these, what is called tv_usec is nanoseconds.
    const ADJ_SETOFFSET: libc::c_uint = 0x0100;
    const ADJ_NANO: libc::c_uint = 0x2000;
    // SAFETY: zeros are a valid value of this structure of numbers.
    let mut change: libc::timex = unsafe { std::mem::zeroed() };
    change.modes = ADJ_SETOFFSET | ADJ_NANO;
    change.time.tv_sec = by_ns.div_euclid(SECOND_NS);
    change.time.tv_usec = by_ns.rem_euclid(SECOND_NS);
    // SAFETY: the structure is valid, and outlives the call.
    let state = unsafe { libc::adjtimex(&mut change) };
    Errno::result(state).map(drop).doing(|| format!("move the date by {by_ns} ns"))
}

/// Tells the clock that the agent waits for the host from now on, or no longer does. Virtual time stands still meanwhile:
/// what the host takes to answer is not the guest's.
pub fn wait_for_host(waits: bool) {
    ask(Request::WaitForHost(waits));
}

/// Another kernel goes on with the run in this guest's place, from now on. Virtual time stands still for this one, and for the
/// other guests once they have come as far as they may.
pub fn hand_over() {
    ask(Request::HandOver);
}

/// Lets the disks take no time from now on: virtual time is over, and what is on its way to them is still to be kept.
pub fn hurry_disks() {
    ask(Request::HurryDisks);
}

/// Switches the power of a disk of this guest. One without power forgets what is on its way to it, and takes what comes then
/// without keeping it.
pub fn power_disk(number: u32, power: Power) {
    ask(Request::PowerDisk { disk: u64::from(number), power });
}

/// Makes this wrong with a disk of this guest from now on, in place of what was.
pub fn break_disk(number: u32, fault: &Fault) {
    let words = fault.words();
    ask(Request::BreakDisk { disk: u64::from(number), fault: words.as_ptr() as u64 });
}

/// The program that this process is about to execute is of a node with a CPU of its own, whose speed is
/// `host` / `guest` cores of the host.
pub fn join_node(number: u64, host: u64, guest: u64) {
    ask(Request::JoinNode { node: number, host, guest });
}

/// The program that this process has executed last, and which has done nothing yet, is this process of the plan: the clock is to
/// note when it begins to talk.
pub fn watch_begin(process: usize) {
    ask(Request::WatchBegin { process: process as u64 });
}

/// The CPU of a node has another speed from now on, `host` / `guest` cores of the host.
pub fn set_speed(number: u64, host: u64, guest: u64) {
    ask(Request::SetSpeed { node: number, host, guest });
}

fn ask(request: Request) {
    let [what, first, second, third] = request.registers();
    // SAFETY: the clock carries the instruction out (crates/clock/src/programs/counter.rs), and changes no register.
    unsafe {
        asm!(
            "hlt",
            in("rax") requests::MAGIC,
            in("rdi") what,
            in("rsi") first,
            in("rdx") second,
            in("r10") third,
            // It may read memory.
            options(readonly, nostack, preserves_flags),
        );
    }
}
