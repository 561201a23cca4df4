//! Programs that their kernel does not trace: seccomp mode (`seccomp=on`, Linux 6.16 and later; arch/um/os-Linux/skas/process.c).
//!
//! Here a stub has a filter of system calls of its own, which sends it a signal for each that its program makes. A handler in
//! it (arch/um/kernel/skas/stub.c) then leaves the registers in pages that it shares with its kernel (`programs/shared.rs`),
//! gives the kernel the turn, wakes it, and waits for its own turn on the same word; so it does at a fault and at an alarm.
//! The kernel changes the registers in the frame of the signal, queues mappings for the stub to make, gives it the turn
//! and waits. Nobody asks the host about another process: what are nine calls of ptrace(2) and wait4(2) for a system call
//! of a program is two of futex(2) on either side.
//!
//! **How a stop is seen.** Both calls of the kernel come through libc's `syscall`. To wake on the word of a stub that it has made
//! is to let it run, to wait on it is to ask whether it has stopped: [`resume`] and [`wait`] do there what `programs/tracee.rs`
//! does at ptrace(2) and waitpid(2). All that follows is the same: when interrupts are served, how an alarm stops a stub
//! (by a signal, as the kernel's own tick does), which steps count on the event drive, whose share of a CPU it is.
//!
//! **The stub sleeps** before the kernel hears of its stop. It gives the turn before it does, and the host may let the kernel run
//! in between. Such a stub would go on as soon as the kernel writes that it is its turn, which is before anything is known
//! here: its program would run ahead of interrupts that are due before, or although a stop is to be made without letting it
//! run at all (`interrupts::Stops`). Runs on the event drive then differed once in a hundred thousand stops. So it is looked
//! whether somebody sleeps on the word, and the core given up until somebody does; mostly that is so at the first look. From
//! there on the stub sleeps until it is woken here, and its CPU time, read then, is all that it has used.
//!
//! **A stop that is made** must not lose the mappings that are queued, which the kernel takes for made after any stop. Where
//! there are some, the stub makes them first, and comes back at once, as it does for the kernel's own purposes. One that ends
//! meanwhile (its program has closed the line by which it gets the memory to map) has stopped as well for the kernel, which
//! learns of the end when it lets the stub run the next time.
//!
//! **Whose core.** Waking a stub mostly lets it run at once, in place of the kernel, which comes back when the stub sleeps and
//! finds that it need not wait. So there are two switches for a system call and one sleeper. To make the kernel wait for its
//! core (SCHED_BATCH) was tried: then both sleep, and a call costs a tenth more.
//!
//! **Instructions** that are carried out here (`programs/counter.rs`) fault as in a traced process: that the counter is out of
//! reach is kept over execve(2), so a stub has it from its first instruction. The fault is in the frame, where the
//! instruction's result is put before the stub goes on; two calls of the host. CPUID faulting is lost by execve(2), and the
//! stub cannot ask for it itself, so the kernel's process traces a new stub for that one call (`stub::call_untraced`).
//!
//! **What programs could do** in a traced process and not here, and the other way, is in docs/security.md: the pages are theirs
//! to write, and so is the turn. That harms their own guest alone, but all of it.

use core::ffi::{c_int, c_long, c_void};

use interrupts::{Flag, Id};

use crate::host::page::{self, count, ClockPage};
use crate::host::{guard, real, sys};
use crate::kernel::leavings::unseen;
use crate::nodes::shares;
use crate::occasions::serving::KERNEL;
use crate::occasions::{begins, contention, deaths, polling, user_code};
use crate::programs::shared::{Cause, Shared, STUBS_TURN};
use crate::programs::stubs::{self, Stub};
use crate::programs::{counter, cpuid, lacks, stub};
use crate::time::present;

/// How often the core is given to a stub that is to come to sleep, before it is waited for; and how long then each time.
const YIELDS: u32 = 8;
const DOZE_NS: u64 = 50_000;

struct Turn {
    /// Whether the stub that was let run is to come back as soon as it has carried out what is queued.
    is_for_kernel: Flag,
    /// A stub that did not sleep when it was woken, and so may have ended; 0: none.
    suspect: Id,
}

static TURN: Turn = Turn { is_for_kernel: Flag::new(false), suspect: Id::new(0) };

/// syscall(2): a kernel in seccomp mode lets a stub run by it, and waits for it. One of Linux 6.1 asks for its own number by it
/// whenever it turns to another task, which is known.
///
/// # Safety
/// As of the libc function. The calling convention passes arguments of a function of any number as it does those of others.
#[no_mangle]
pub unsafe extern "C" fn syscall(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    if number == libc::SYS_futex && stubs::are_there() {
        if let (Some(page), Some(stub)) = (page::page(), stubs::at(first)) {
            match second as c_int {
                libc::FUTEX_WAKE => unseen(present::is_event, || resume(page, stub)),
                libc::FUTEX_WAIT => unseen(present::is_event, || wait(page, stub)),
                _ => crate::die(b"dilaton clock: this kernel asks of its stubs' futexes what is not known here\n"),
            }
            return 0;
        }
    }
    if number == libc::SYS_getpid {
        if let Some(pid) = guard::own() {
            return pid.into();
        }
    }
    // SAFETY: passed through.
    unsafe { real::syscall(number, first, second, third, fourth, fifth, sixth) }
}

/// A stub was made: the process `pid`, which is returned. What it begins with has the address of its pages first (struct
/// tramp_data).
///
/// # Safety
/// `argument` is null, or what the kernel has given clone(2).
pub unsafe fn made(pid: c_int, argument: *const c_void) -> c_int {
    if KERNEL.child.get() == 0 || argument.is_null() || pid <= 0 {
        return pid; // one that is traced, an attempt, or no stub
    }
    // SAFETY: the caller vouches for it.
    let address = unsafe { *argument.cast::<usize>() };
    let Some(shared) = Shared::at(address) else { not_understood() };
    stubs::made(pid, shared);
    shares::born(pid);
    begins::born(pid);
    pid
}

fn not_understood() -> ! {
    crate::die(b"dilaton clock: this kernel shares other pages with its stubs in seccomp mode than the clock knows\n")
}

/// The kernel has given `stub` the turn and wakes it.
fn resume(page: &ClockPage, stub: Stub) {
    let Stub { pid, shared, .. } = stub;
    if !shared.hold() {
        crate::die(b"dilaton clock: a program has run that was to wait\n");
    }
    let is_for_kernel = shared.returns_at_once();
    if !is_for_kernel {
        if let Some(registers) = shared.registers() {
            polling::answered(page, pid, registers.rax as i64);
            lacks::answered(page, pid, registers.rax as i64);
        }
    }
    if !go(page, stub, is_for_kernel) {
        if shared.has_queue() {
            shared.set_returns_at_once(true);
            go(page, stub, true);
            host_wait(stub);
            user_code::after_user(page);
            // One that has ended in doing so has left it set, which the kernel takes for a fault of its own.
            shared.set_returns_at_once(false);
        }
        shared.set_signal(if shared.has_failed() { libc::SIGTRAP } else { libc::SIGALRM });
    }
}

/// Lets `stub` run, unless it is to stop at once; tells whether it runs.
fn go(page: &ClockPage, Stub { pid, shared, .. }: Stub, is_for_kernel: bool) -> bool {
    let runs = user_code::before_user(page, pid, is_for_kernel);
    if runs {
        stub::turn_away();
        TURN.is_for_kernel.set(is_for_kernel);
        shared.give();
        let slept = sys::futex_wake(shared.turn()) > 0;
        TURN.suspect.set(if slept { 0 } else { pid });
    }
    runs
}

/// The stub gives the kernel the turn before it sleeps itself: it gets the core until it does.
fn wait_until_it_sleeps(pid: c_int, shared: Shared) {
    let mut looks = 0_u32;
    while !sys::futex_is_awaited(shared.turn()) {
        if looks < YIELDS {
            sys::yield_core();
        } else if sys::has_ended(pid) {
            return;
        } else {
            sys::doze(DOZE_NS);
        }
        looks += 1;
    }
}

/// The kernel asks whether `stub` has stopped, and waits until it has.
fn wait(page: &ClockPage, stub: Stub) {
    let Stub { pid, shared, is_new } = stub;
    loop {
        if user_code::take_stop(pid) {
            told(page, pid, shared, Cause { signal: libc::SIGALRM, code: 0, system_call: -1 });
            return;
        }
        let has_ended = host_wait(stub);
        user_code::after_user(page);
        if has_ended {
            deaths::tell();
            return;
        }
        if is_new {
            begin(pid, shared);
            return;
        }
        if TURN.is_for_kernel.get() {
            return;
        }
        stub::turn_to(pid, shared);
        let Some(cause) = shared.cause() else { return };
        match cause.signal {
            libc::SIGSEGV if counter::emulate(pid, cause.code) => {
                if shared.steps() {
                    shared.set_stepped();
                    return;
                }
            }
            libc::SIGALRM if user_code::goes_on(page, pid) => {}
            libc::SIGSYS if shared.has_failed() => {
                // It could not make a mapping. The kernel takes that for a system call where it is told so.
                shared.set_signal(libc::SIGTRAP);
                return;
            }
            _ => {
                contention::entered(cause.signal != libc::SIGSYS);
                if cause.signal == libc::SIGSYS {
                    shares::entered(pid, false);
                } else if cause.signal == libc::SIGALRM {
                    shares::entered(pid, true);
                }
                told(page, pid, shared, cause);
                return;
            }
        }
        if !go(page, stub, false) {
            shared.set_signal(libc::SIGALRM);
        }
    }
}

/// The kernel is told of a stop.
fn told(page: &ClockPage, pid: c_int, shared: Shared, cause: Cause) {
    if cause.signal == libc::SIGSEGV {
        count(&page.faults_told);
    }
    shares::entered_by(pid, cause.system_call);
    polling::entered(pid, cause.system_call);
    if let Some(registers) = shared.registers().filter(|_| cause.system_call >= 0) {
        begins::entered(page, pid, &registers);
        lacks::note(page, pid, &registers, &|address| stub::word_at(pid, address));
    }
    shares::registers_read(page, pid);
    polling::registers_read(page, pid);
}

/// Waits until it is the kernel's turn; tells whether that is because the stub has ended.
fn host_wait(Stub { pid, shared, is_new }: Stub) -> bool {
    deaths::while_awaited(pid, shared.turn(), is_new || TURN.suspect.get() == pid, || {
        while shared.is_stubs_turn() {
            sys::futex_wait(shared.turn(), STUBS_TURN);
        }
        wait_until_it_sleeps(pid, shared);
    })
}

/// The stub has stopped for the first time.
fn begin(pid: c_int, shared: Shared) {
    if !shared.is_as_known() {
        not_understood();
    }
    cpuid::disable_in_untraced(pid);
    stubs::is_no_longer_new(shared);
}
