//! Duties toward the user processes of the guest, which the kernel runs as traced host processes ("stubs").
//!
//! - **Extended CPU state** is padded, and not restored where it is what it was (`programs/extended.rs`). What the kernel reads
//!   twice of what has stopped a process is read once.
//! - **Page faults** are told the kernel without asking the stub, where they speak for themselves (`programs/faults.rs`).
//! - **The time-stamp counter.** Reading it is carried out here, in virtual time (`programs/counter.rs`).
//! - **What guests lack** is noted when a program asks for it (`programs/lacks.rs`).
//! - **No orphans.** A stub whose kernel was killed would run on, with its system calls going to the host. So every
//!   tracee is killed with its tracer, and every child of the kernel dies with it.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr::null_mut;

use interrupts::{Count, Word};

use crate::host::page;
use crate::host::real::{self, Entry};
use crate::host::{guard, own_counter, sys};
use crate::nodes::shares;
use crate::occasions::{begins, contention, deaths, polling, user_code};
use crate::programs::{counter, cpuid, extended, faults, lacks, seccomp, stub, stubs};
use crate::sources::disks;
use crate::time::undisturbed;

const PTRACE_OLDSETOPTIONS: c_uint = 21;
/// From linux/ptrace.h (x86); not in every version of the libc crate.
const PTRACE_SYSEMU: c_uint = 31;
const PTRACE_SYSEMU_SINGLESTEP: c_uint = 32;

/// How a stub stops at a system call of its user code, which the kernel tells from a trap (PTRACE_O_TRACESYSGOOD).
const SYSTEM_CALL_STOP: c_int = libc::SIGTRAP | 0x80;

struct Tracing {
    /// How the kernel resumed a process last.
    last_resume: Word,
    /// The ring of births, and how many there were.
    births: [Birth; BIRTHS],
    births_count: Count,
}

static TRACING: Tracing = Tracing {
    last_resume: Word::new(0),
    births: [const { Birth { entry: Count::new(0), argument: Count::new(0) } }; BIRTHS],
    births_count: Count::new(0),
};

/// ptrace(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn ptrace(request: c_uint, pid: c_int, address: *mut c_void, mut data: *mut c_void) -> c_long {
    if stubs::are_there() {
        return sys::fail(libc::ESRCH).into(); // none is traced; a kernel asks when it ends one
    }
    if let Some(page) = page::page() {
        user_code::after_user(page);
    }
    match request {
        libc::PTRACE_GETREGSET if address as usize == extended::NT_X86_XSTATE => {
            // SAFETY: the kernel's iovec.
            let result = unsafe { extended::read(pid, data.cast()) };
            if let Some(page) = page::page() {
                shares::registers_read(page, pid);
                polling::registers_read(page, pid);
            }
            return result;
        }
        libc::PTRACE_GETSIGINFO => {
            if let Some(info) = stub::told(pid) {
                // SAFETY: the kernel's structure.
                unsafe { *data.cast::<libc::siginfo_t>() = *info };
                return 0;
            }
        }
        libc::PTRACE_SETREGS => {
            if let Some(page) = page::page() {
                // SAFETY: the kernel's buffer, with what the program goes on with.
                let answer = unsafe { (*data.cast::<libc::user_regs_struct>()).rax } as i64;
                polling::answered(page, pid, answer);
                lacks::answered(page, pid, answer);
            }
        }
        libc::PTRACE_SETREGSET if address as usize == extended::NT_X86_XSTATE => {
            // SAFETY: the kernel's iovec.
            return unsafe { extended::write(pid, data.cast()) };
        }
        PTRACE_OLDSETOPTIONS | libc::PTRACE_SETOPTIONS => {
            data = (data as usize | libc::PTRACE_O_EXITKILL as usize) as *mut c_void;
            if page::page().is_some() {
                cpuid::disable_in(pid);
            }
            shares::born(pid);
            begins::born(pid);
        }
        libc::PTRACE_CONT
        | libc::PTRACE_SYSCALL
        | libc::PTRACE_SINGLESTEP
        | PTRACE_SYSEMU
        | PTRACE_SYSEMU_SINGLESTEP => {
            TRACING.last_resume.set(request.into());
            // User code is never resumed so that its system calls go to the host.
            let is_for_kernel = request == libc::PTRACE_CONT;
            if is_for_kernel
                && data as c_int == libc::SIGSEGV
                && page::page().is_some_and(|page| faults::tell(page, pid))
            {
                return 0;
            }
            if data as c_int != libc::SIGSEGV {
                faults::forget();
            }
            if page::page().is_some_and(|page| !user_code::before_user(page, pid, is_for_kernel)) {
                return 0;
            }
        }
        _ => {}
    }
    extended::requested(request, pid, data as c_int);
    // SAFETY: passed through.
    let result = unsafe { stub::request(request, pid, address, data) };
    if request == libc::PTRACE_GETREGS && result == 0 {
        if let Some(page) = page::page() {
            // SAFETY: the kernel's buffer, which was just filled.
            let registers = unsafe { &*data.cast::<libc::user_regs_struct>() };
            faults::registers_read(pid, registers);
            shares::entered_by(pid, registers.orig_rax as i64);
            polling::entered(pid, registers.orig_rax as i64);
            begins::entered(page, pid, registers);
            lacks::note(page, pid, registers, &|address| stub::word_at(pid, address));
        }
    }
    result
}

/// waitpid(2): a stub that stopped because it read the time-stamp counter goes on with virtual time, and one that stopped at
/// the bound when others allow it; the kernel does not hear of it.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int {
    loop {
        let mut stopped = user_code::STOPPED;
        if user_code::take_stop(pid) {
            // SAFETY: the caller's word, or none.
            unsafe { status.as_mut().map(|status| *status = stopped) };
            return pid;
        }
        if faults::take_told(pid) {
            // SAFETY: as above.
            unsafe { status.as_mut().map(|status| *status = faults::TRAPPED) };
            return pid;
        }
        // SAFETY: the libc function; and resuming a process that it has just reported as stopped.
        unsafe {
            let found = real::waitpid(pid, &mut stopped, options);
            if found > 0
                && libc::WIFSTOPPED(stopped)
                && goes_on(found, libc::WSTOPSIG(stopped))
                && !has_stepped(found, &mut stopped)
                && ptrace(TRACING.last_resume.get() as c_uint, found, null_mut(), null_mut()) == 0
            {
                continue;
            }
            if let Some(page) = page::page().filter(|_| found > 0 && !libc::WIFSTOPPED(stopped)) {
                // The kernel resumes a stub to end it, and then makes no other request of it that would say that it has stopped.
                user_code::after_user(page);
            }
            if found > 0 && libc::WIFSTOPPED(stopped) && TRACING.last_resume.get() as c_uint == PTRACE_SYSEMU {
                contention::entered(libc::WSTOPSIG(stopped) != SYSTEM_CALL_STOP);
                match libc::WSTOPSIG(stopped) {
                    SYSTEM_CALL_STOP => shares::entered(found, false),
                    libc::SIGALRM => shares::entered(found, true),
                    _ => {}
                }
            }
            if found > 0 && stopped == faults::TRAPPED {
                faults::answered(found);
            }
            if !status.is_null() {
                deaths::told(stopped);
                *status = stopped;
            }
            return found;
        }
    }
}

/// Whether a stub that `signal` has stopped is to go on without the kernel.
fn goes_on(stub: c_int, signal: c_int) -> bool {
    match (signal, page::page()) {
        (libc::SIGSEGV, Some(page)) => {
            user_code::after_user(page);
            let Some((code, address)) = stub::fault(stub) else { return false };
            let goes_on = counter::emulate(stub, code);
            if !goes_on {
                faults::stopped(stub, code, address);
            }
            goes_on
        }
        (libc::SIGALRM, Some(page)) => user_code::goes_on(page, stub),
        _ => false,
    }
}

/// Whether a stub that would go on was to take a single step. The instruction that was carried out here is that step, and the
/// kernel is told what the processor says after one.
///
/// # Safety
/// `stub` is a stopped tracee.
unsafe fn has_stepped(stub: c_int, status: &mut c_int) -> bool {
    if libc::WSTOPSIG(*status) != libc::SIGSEGV
        || !matches!(TRACING.last_resume.get() as c_uint, libc::PTRACE_SINGLESTEP | PTRACE_SYSEMU_SINGLESTEP)
    {
        return false;
    }
    stub::set_stepped(stub);
    *status = libc::SIGTRAP << 8 | 0x7F;
    true
}

/// A number that no process has, since it is greater than any. The kernel may kill it when it ends.
const NO_PROCESS: c_int = c_int::MAX;

/// What a child of the kernel is to run. A helper thread shares our memory and may start late, so there is a ring of them.
struct Birth {
    entry: Count,
    argument: Count,
}

/// How many births are remembered.
const BIRTHS: usize = 64;

/// clone(2) of glibc.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn clone(
    entry: Entry,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_tid: *mut c_void,
    tls: *mut c_void,
    child_tid: *mut c_void,
) -> c_int {
    // SAFETY: the libc function; unused trailing arguments are passed on unread.
    unsafe {
        if page::page().is_none() {
            return real::clone(entry, stack, flags, argument, parent_tid, tls, child_tid);
        }
        let shares_memory = flags & libc::CLONE_VM != 0;
        // A stub of Linux 7 is a program of its own, and its kernel waits until it is that one.
        let is_stub = !shares_memory || flags & libc::CLONE_VFORK != 0;
        if !is_stub && disks::awaits_thread() {
            disks::adopt_thread(entry as *const (), argument);
            return NO_PROCESS;
        }
        if is_stub {
            cpuid::disable(shares_memory);
        }
        let number = TRACING.births_count.get();
        TRACING.births_count.set(number.wrapping_add(1));
        let birth = &TRACING.births[number % BIRTHS];
        birth.entry.set(entry as usize);
        birth.argument.set(argument as usize);
        let birth = core::ptr::from_ref(birth).cast_mut().cast();
        let first: Entry = match (is_stub, shares_memory) {
            (true, false) => born_apart,
            (true, true) => born_to_execute,
            (false, _) => born_beside,
        };
        let pid = real::clone(first, stack, flags, birth, parent_tid, tls, child_tid);
        seccomp::made(pid, if is_stub && shares_memory { argument } else { null_mut() })
    }
}

/// fork(2), by which a kernel that starts makes children to try out on how to trace.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn fork() -> libc::pid_t {
    // SAFETY: passed through.
    let pid = unsafe { real::fork() };
    if pid == 0 {
        guard::is_another();
        if page::page().is_some() {
            die_with_kernel();
        }
    }
    pid
}

/// The caller, a child of the kernel, dies with it from now on.
fn die_with_kernel() {
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_uint);
    if !guard::is_child_of_kernel() {
        // It died before the line above, whose signal will therefore never come.
        crate::die(b"");
    }
}

/// The first function of a child with its own memory, mostly a stub, which has no clock of ours.
extern "C" fn born_apart(birth: *mut c_void) -> c_int {
    page::forget();
    guard::is_another();
    undisturbed::detach();
    own_counter::disable();
    born(birth)
}

/// The first function of a stub that has the kernel's memory until it executes a program: nothing in here may change what is
/// ours. The counter stays out of its reach beyond that, what CPUID tells does not (`cpuid::disable_in`).
extern "C" fn born_to_execute(birth: *mut c_void) -> c_int {
    own_counter::disable();
    born(birth)
}

/// The first function of a child with the kernel's memory: a helper, or one that becomes another program. It may read the
/// host's counter.
extern "C" fn born_beside(birth: *mut c_void) -> c_int {
    own_counter::enable();
    born(birth)
}

/// What all children do first: they see to it that they die with their kernel.
extern "C" fn born(birth: *mut c_void) -> c_int {
    die_with_kernel();
    // SAFETY: `birth` is a slot of the ring, filled by `clone` above with a function of this type.
    unsafe {
        let birth = &*birth.cast::<Birth>();
        let entry: Entry = core::mem::transmute(birth.entry.get());
        entry(birth.argument.get() as *mut c_void)
    }
}
