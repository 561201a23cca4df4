//! Duties toward the user processes of the guest, which the kernel runs as traced host processes ("stubs").
//!
//! - **Extended CPU state.** The kernel saves and restores it with a buffer of 2,696 bytes (FP_SIZE); a host with AMX
//!   demands more (PTRACE_SETREGSET wants the full size), and the first user process would panic the kernel. The buffer is
//!   padded with zeros: the components beyond are in their initial state, and user code has never touched them.
//! - **Restores that change nothing.** The kernel restores before every return to user code what it saved at the last
//!   entry. Most are the same bytes to the same process: these are left out, after a look where it has run for the kernel
//!   since. What it reads twice of a stopped process, also of what has stopped it, is read once.
//! - **Page faults** are told the kernel without asking the stub, where they speak for themselves (`programs/faults.rs`).
//! - **The time-stamp counter.** Reading it is carried out here, in virtual time (`programs/counter.rs`).
//! - **What guests lack** is noted when a program asks for it (`programs/lacks.rs`).
//! - **No orphans.** A stub whose kernel was killed would run on, with its system calls going to the host. So every
//!   tracee is killed with its tracer, and every child of the kernel dies with it.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Count, Word};

use crate::host::page::{self, count};
use crate::host::real::{self, Entry};
use crate::host::{guard, own_counter, sys};
use crate::nodes::shares;
use crate::occasions::{begins, contention, deaths, polling, user_code};
use crate::programs::{counter, cpuid, faults, lacks, seccomp, stub, stubs};
use crate::sources::disks;
use crate::time::undisturbed;

const NT_X86_XSTATE: usize = 0x202;
const PTRACE_OLDSETOPTIONS: c_uint = 21;
/// From linux/ptrace.h (x86); not in every version of the libc crate.
const PTRACE_ARCH_PRCTL: c_uint = 30;
const PTRACE_SYSEMU: c_uint = 31;
const PTRACE_SYSEMU_SINGLESTEP: c_uint = 32;

/// How a stub stops at a system call of its user code, which the kernel tells from a trap (PTRACE_O_TRACESYSGOOD).
const SYSTEM_CALL_STOP: c_int = libc::SIGTRAP | 0x80;

/// Room for the largest extended state; AMX needs 11,008 bytes.
const STATE_BYTES_MAX: usize = 16 * 1024;

/// How many stopped processes have their registers remembered. Those of others are restored more often.
const SAVED_SLOTS: usize = 64;

#[repr(C, align(64))]
struct State([u8; STATE_BYTES_MAX]);

/// Registers as last read from a process.
struct Saved {
    pid: c_int,
    length: usize,
    /// Whether it has run since, for the kernel alone, so that they may have changed.
    has_run: bool,
    /// Linux 6.1 asks for 2,696 bytes, 7.2 for all that this host has.
    bytes: [u8; STATE_BYTES_MAX],
}

struct Registers {
    padded: UnsafeCell<State>,
    saved: UnsafeCell<[Saved; SAVED_SLOTS]>,
    /// What a process is asked for to be compared: the kernel's stacks have no room for it.
    asked: UnsafeCell<[u8; STATE_BYTES_MAX]>,
}

// SAFETY: the kernel is one thread, and its signal handlers do not trace processes.
unsafe impl Sync for Registers {}

static REGISTERS: Registers = Registers {
    padded: UnsafeCell::new(State([0; STATE_BYTES_MAX])),
    saved: UnsafeCell::new(
        [const { Saved { pid: 0, length: 0, has_run: false, bytes: [0; STATE_BYTES_MAX] } }; SAVED_SLOTS],
    ),
    asked: UnsafeCell::new([0; STATE_BYTES_MAX]),
};

struct Tracing {
    /// How the kernel resumed a process last.
    last_resume: Word,
    /// Size of the extended state that the host demands; 0: not asked yet.
    full_bytes: Count,
    /// The ring of births, and how many there were.
    births: [Birth; BIRTHS],
    births_count: Count,
}

static TRACING: Tracing = Tracing {
    last_resume: Word::new(0),
    full_bytes: Count::new(0),
    births: [const { Birth { entry: Count::new(0), argument: Count::new(0) } }; BIRTHS],
    births_count: Count::new(0),
};

fn saved(pid: c_int) -> &'static mut Saved {
    // SAFETY: see `Registers`; the reference does not outlive the call that asked for it.
    unsafe { &mut (*REGISTERS.saved.get())[pid as usize % SAVED_SLOTS] }
}

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
        libc::PTRACE_GETREGSET if address as usize == NT_X86_XSTATE => {
            // SAFETY: the kernel's iovec.
            let result = unsafe { read_state(pid, data.cast()) };
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
        libc::PTRACE_SETREGSET if address as usize == NT_X86_XSTATE => {
            // SAFETY: the kernel's iovec.
            return unsafe { write_state(pid, data.cast()) };
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
    // These leave a process where it is, and its extended state; after anything else it may have run, or be another one. By the
    // last the kernel tells it where its thread-local storage is, whenever it has turned to another one in between.
    if !matches!(
        request,
        libc::PTRACE_GETREGS
            | libc::PTRACE_GETREGSET
            | libc::PTRACE_SETREGS
            | libc::PTRACE_GETSIGINFO
            | PTRACE_ARCH_PRCTL
    ) {
        let entry = saved(pid);
        if request == libc::PTRACE_CONT && entry.pid == pid {
            entry.has_run = true;
        } else {
            entry.length = 0;
        }
        stub::forget();
    }
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

unsafe fn read_state(pid: c_int, buffer: *mut libc::iovec) -> c_long {
    // SAFETY: passed through; the buffer then holds `iov_len` bytes, or what is known of the process, if that fits.
    unsafe {
        let entry = saved(pid);
        if entry.pid == pid && entry.length > 0 && !entry.has_run && entry.length <= (*buffer).iov_len {
            core::ptr::copy_nonoverlapping(entry.bytes.as_ptr(), (*buffer).iov_base.cast::<u8>(), entry.length);
            (*buffer).iov_len = entry.length;
            return 0;
        }
        let result = stub::request(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, buffer.cast());
        let length = (*buffer).iov_len;
        if result == 0 && length <= STATE_BYTES_MAX {
            entry.pid = pid;
            entry.length = length;
            entry.has_run = false;
            core::ptr::copy_nonoverlapping((*buffer).iov_base.cast::<u8>(), entry.bytes.as_mut_ptr(), length);
        } else {
            entry.length = 0;
        }
        result
    }
}

unsafe fn write_state(pid: c_int, buffer: *mut libc::iovec) -> c_long {
    let Some(page) = page::page() else {
        // SAFETY: passed through.
        return unsafe { stub::request(libc::PTRACE_SETREGSET, pid, NT_X86_XSTATE as *mut c_void, buffer.cast()) };
    };
    count(&page.register_restores);
    // SAFETY: the kernel's buffer.
    let wanted = unsafe { core::slice::from_raw_parts((*buffer).iov_base.cast::<u8>(), (*buffer).iov_len) };
    let full = full_bytes(pid);
    let entry = saved(pid);
    // Of a buffer that is larger than this host's state its end means nothing.
    let state = &wanted[..wanted.len().min(full)];
    if entry.pid == pid
        && entry.length == state.len()
        && entry.bytes[..entry.length] == *state
        && (!entry.has_run || is_as_it_was(pid, entry))
    {
        count(&page.register_restores_skipped);
        return 0;
    }
    entry.length = 0;
    // SAFETY: either the kernel's buffer, or ours with room for `full` bytes of which only the head is ever written.
    unsafe {
        if full <= wanted.len() {
            (*buffer).iov_len = full;
            return stub::request(libc::PTRACE_SETREGSET, pid, NT_X86_XSTATE as *mut c_void, buffer.cast());
        }
        let padded = (*REGISTERS.padded.get()).0.as_mut_ptr();
        core::ptr::copy_nonoverlapping(wanted.as_ptr(), padded, wanted.len());
        let mut whole = libc::iovec { iov_base: padded.cast(), iov_len: full };
        stub::request(libc::PTRACE_SETREGSET, pid, NT_X86_XSTATE as *mut c_void, (&raw mut whole).cast())
    }
}

/// Whether the extended state of `pid`, which has run for the kernel, is what it was before: to ask takes half as long as to set
/// it. It is asked for as much as the kernel keeps; the header in that says whether more is in use.
fn is_as_it_was(pid: c_int, entry: &mut Saved) -> bool {
    let state = REGISTERS.asked.get();
    let mut known = libc::iovec { iov_base: state.cast(), iov_len: entry.length };
    // SAFETY: see `Registers`; the buffer is writable for its length.
    let is_same = unsafe {
        stub::request(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, (&raw mut known).cast()) == 0
            && (&(*state))[..known.iov_len] == entry.bytes[..entry.length]
    };
    entry.has_run = !is_same;
    is_same
}

/// The size of the extended state of process `pid`, which is that of every process on this host.
fn full_bytes(pid: c_int) -> usize {
    let known = TRACING.full_bytes.get();
    if known > 0 {
        return known;
    }
    // SAFETY: the buffer is writable for its length; it is cleared again, since it pads later states with zeros.
    let full = unsafe {
        let state = REGISTERS.padded.get();
        let mut whole = libc::iovec { iov_base: state.cast(), iov_len: STATE_BYTES_MAX };
        let failed =
            stub::request(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, (&raw mut whole).cast()) != 0;
        (*state).0.fill(0);
        if failed || whole.iov_len == STATE_BYTES_MAX {
            crate::die(b"dilaton clock: the size of this host's extended CPU state cannot be told\n");
        }
        whole.iov_len
    };
    TRACING.full_bytes.set(full);
    if let Some(page) = page::page() {
        page.extended_state_bytes.store(full as u64, Relaxed);
    }
    full
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
    if pid == 0 && page::page().is_some() {
        die_with_kernel();
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
