//! What is asked of a stopped stub, and told it, without the kernel's knowing.

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use interrupts::Id;

use crate::host::page::{self, count};
use crate::host::{real, sys};
use crate::occasions::deaths;
use crate::programs::shared::Shared;
use crate::programs::{general, memory, stubs};

/// What has stopped a stub, as it was told last.
struct Told {
    /// The stub, which has not run since; 0: none.
    pid: Id,
    info: UnsafeCell<MaybeUninit<libc::siginfo_t>>,
}

// SAFETY: the kernel is one thread, and its signal handlers do not trace processes.
unsafe impl Sync for Told {}

static TOLD: Told = Told { pid: Id::new(0), info: UnsafeCell::new(MaybeUninit::zeroed()) };

/// The stub that has stopped last, where it is not traced, and its pages.
struct Turned {
    pid: Id,
    shared: Cell<Option<Shared>>,
}

// SAFETY: as of `Told`.
unsafe impl Sync for Turned {}

static TURNED: Turned = Turned { pid: Id::new(0), shared: Cell::new(None) };

/// The stub `pid`, which is not traced, has stopped.
pub fn turn_to(pid: c_int, shared: Shared) {
    TURNED.shared.set(Some(shared));
    TURNED.pid.set(pid);
}

/// One that is not traced is let run.
pub fn turn_away() {
    TURNED.pid.set(0);
}

/// The pages of the stub `pid`, if it is the one that has stopped, and is not traced.
fn shared(pid: c_int) -> Option<Shared> {
    TURNED.shared.get().filter(|_| pid != 0 && TURNED.pid.get() == pid)
}

/// Asks something of a process that the kernel traces: the host, by ptrace(2), where it is not known here.
///
/// # Safety
/// As of the libc function.
pub unsafe fn request(request: c_uint, pid: c_int, address: *mut c_void, data: *mut c_void) -> c_long {
    // SAFETY: as of the libc function; what is told the host is a structure as the request has it.
    unsafe {
        let tell = |request, pid, data| asked_of_host(request, pid, null_mut(), data);
        general::answer(request, pid, address, data, tell).unwrap_or_else(|| asked_of_host(request, pid, address, data))
    }
}

unsafe fn asked_of_host(request: c_uint, pid: c_int, address: *mut c_void, data: *mut c_void) -> c_long {
    if let Some(page) = page::page() {
        count(&page.stub_requests);
    }
    // SAFETY: passed through.
    let answer = unsafe { real::ptrace(request, pid, address, data) };
    // These two the kernel asks for of a stub that it has killed.
    if answer < 0 && !matches!(request, libc::PTRACE_KILL | libc::PTRACE_CONT) {
        let error = sys::error();
        if sys::was_killed(pid) {
            deaths::lost();
        }
        sys::fail(error);
    }
    answer
}

/// The signal that has stopped it: its code, which says why it was sent, and the address of the fault, if it is one; `None` if
/// it cannot be asked.
pub fn fault(pid: c_int) -> Option<(c_int, u64)> {
    forget();
    // SAFETY: see `Told`; the structure is that of the request, zeros are a value of it, and the address is a number in any case.
    unsafe {
        let info = TOLD.info.get();
        if request(libc::PTRACE_GETSIGINFO, pid, null_mut(), info.cast()) != 0 {
            return None;
        }
        TOLD.pid.set(pid);
        let info = (*info).assume_init_ref();
        Some((info.si_code, info.si_addr() as u64))
    }
}

/// What has stopped `pid`, where it is known and the host need not be asked again.
pub fn told(pid: c_int) -> Option<&'static libc::siginfo_t> {
    // SAFETY: see `Told`; it is known, and the caller keeps no reference.
    (pid != 0 && TOLD.pid.get() == pid).then(|| unsafe { (*TOLD.info.get()).assume_init_ref() })
}

/// A stub may run, or what has stopped it is changed.
pub fn forget() {
    TOLD.pid.set(0);
}

/// Its registers; `None` if it cannot be asked.
pub fn registers(pid: c_int) -> Option<libc::user_regs_struct> {
    if let Some(shared) = shared(pid) {
        return shared.registers();
    }
    traced_registers(pid)
}

fn traced_registers(pid: c_int) -> Option<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    // SAFETY: the structure is that of the request, and zeros are a value of it.
    unsafe {
        let failed = request(libc::PTRACE_GETREGS, pid, null_mut(), registers.as_mut_ptr().cast()) != 0;
        (!failed).then(|| registers.assume_init())
    }
}

/// Sets its registers; whether it could be told.
pub fn set_registers(pid: c_int, registers: &mut libc::user_regs_struct) -> bool {
    if let Some(shared) = shared(pid) {
        return shared.set_registers(registers);
    }
    set_traced_registers(pid, registers)
}

fn set_traced_registers(pid: c_int, registers: &mut libc::user_regs_struct) -> bool {
    // SAFETY: the structure is that of the request.
    unsafe { request(libc::PTRACE_SETREGS, pid, null_mut(), core::ptr::from_mut(registers).cast()) == 0 }
}

/// Makes it look as if a single step had stopped it.
pub fn set_stepped(pid: c_int) {
    forget();
    // SAFETY: zeros are a valid structure, which is that of the request.
    unsafe {
        let mut info: libc::siginfo_t = core::mem::zeroed();
        info.si_signo = libc::SIGTRAP;
        info.si_code = libc::TRAP_TRACE;
        request(libc::PTRACE_SETSIGINFO, pid, null_mut(), (&raw mut info).cast());
    }
}

/// A word of its memory, whatever its own rights there; all ones where it has none.
pub fn word_at(pid: c_int, address: u64) -> u64 {
    if stubs::are_there() {
        return memory::word_at(pid, address).unwrap_or(u64::MAX);
    }
    // SAFETY: the other process is only read.
    unsafe { request(libc::PTRACE_PEEKDATA, pid, address as *mut c_void, null_mut()) as u64 }
}

/// Writes words into its memory, where it may do so itself; whether that was done.
pub fn write(pid: c_int, address: u64, words: &[u64; 3]) -> bool {
    let bytes = size_of_val(words);
    let ours = libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: bytes };
    let its = libc::iovec { iov_base: address as *mut c_void, iov_len: bytes };
    // SAFETY: the words are readable, and the other process's memory is not ours.
    let written = unsafe {
        libc::syscall(libc::SYS_process_vm_writev, pid, &raw const ours, 1_usize, &raw const its, 1_usize, 0_usize)
    };
    written == bytes as c_long
}

/// Lets it make a system call of the host, and be as it was afterwards; what the call returned, `None` where that did not
/// work. It has to have stopped itself by one (kill(2)): it makes this one by the same instruction.
pub fn call(pid: c_int, number: i64, arguments: [u64; 2]) -> Option<i64> {
    const SYSCALL: u64 = 0x050F;
    let before = traced_registers(pid)?;
    if word_at(pid, before.rip - 2) & 0xFFFF != SYSCALL {
        return None;
    }
    let mut calling = before;
    calling.rip -= 2;
    calling.rax = number as u64;
    calling.orig_rax = u64::MAX; // none is to be made again
    [calling.rdi, calling.rsi] = arguments;
    let mut status = 0;
    // SAFETY: plain requests, of a process that has stopped; `status` is ours.
    let has_stepped = unsafe {
        set_traced_registers(pid, &mut calling)
            && request(libc::PTRACE_SINGLESTEP, pid, null_mut(), null_mut()) == 0
            && real::waitpid(pid, &raw mut status, libc::__WALL) == pid
    };
    let after = traced_registers(pid).filter(|_| has_stepped && libc::WIFSTOPPED(status))?;
    let is_done = libc::WSTOPSIG(status) == libc::SIGTRAP && after.rip == before.rip;
    (is_done && set_traced_registers(pid, &mut { before })).then_some(after.rax as i64)
}

/// The same of a stub that is not traced and sleeps in a system call: it is traced meanwhile.
pub fn call_untraced(pid: c_int, number: i64, arguments: [u64; 2]) -> Option<i64> {
    let options = libc::PTRACE_O_EXITKILL as usize as *mut c_void;
    let mut status = 0;
    // SAFETY: plain requests of a child; `status` is ours.
    unsafe {
        if request(libc::PTRACE_SEIZE, pid, null_mut(), options) != 0 {
            return None;
        }
        let has_stopped = request(libc::PTRACE_INTERRUPT, pid, null_mut(), null_mut()) == 0
            && real::waitpid(pid, &raw mut status, libc::__WALL) == pid
            && libc::WIFSTOPPED(status);
        let answer = if has_stopped { call(pid, number, arguments) } else { None };
        request(libc::PTRACE_DETACH, pid, null_mut(), null_mut());
        answer
    }
}
