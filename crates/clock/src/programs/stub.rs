//! What is asked of a stopped stub, and told it, without the kernel's knowing.

use core::ffi::{c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use crate::host::real;

/// The signal that has stopped it: its code, which says why it was sent, and the address of the fault, if it is one; `None` if
/// it cannot be asked.
pub fn fault(pid: c_int) -> Option<(c_int, u64)> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the structure is that of the request, and zeros are a value of it; the address is a number in any case.
    unsafe {
        let failed = real::ptrace(libc::PTRACE_GETSIGINFO, pid, null_mut(), info.as_mut_ptr().cast()) != 0;
        (!failed).then(|| (info.assume_init().si_code, info.assume_init().si_addr() as u64))
    }
}

/// Its registers; `None` if it cannot be asked.
pub fn registers(pid: c_int) -> Option<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    // SAFETY: the structure is that of the request, and zeros are a value of it.
    unsafe {
        let failed = real::ptrace(libc::PTRACE_GETREGS, pid, null_mut(), registers.as_mut_ptr().cast()) != 0;
        (!failed).then(|| registers.assume_init())
    }
}

/// Sets its registers; whether it could be told.
pub fn set_registers(pid: c_int, registers: &mut libc::user_regs_struct) -> bool {
    // SAFETY: the structure is that of the request.
    unsafe { real::ptrace(libc::PTRACE_SETREGS, pid, null_mut(), core::ptr::from_mut(registers).cast()) == 0 }
}

/// Makes it look as if a single step had stopped it.
pub fn set_stepped(pid: c_int) {
    // SAFETY: zeros are a valid structure, which is that of the request.
    unsafe {
        let mut info: libc::siginfo_t = core::mem::zeroed();
        info.si_signo = libc::SIGTRAP;
        info.si_code = libc::TRAP_TRACE;
        real::ptrace(libc::PTRACE_SETSIGINFO, pid, null_mut(), (&raw mut info).cast());
    }
}

/// A word of its memory, whatever its own rights there; all ones where it has none.
pub fn word_at(pid: c_int, address: u64) -> u64 {
    // SAFETY: the other process is only read.
    unsafe { real::ptrace(libc::PTRACE_PEEKDATA, pid, address as *mut c_void, null_mut()) as u64 }
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
    let before = registers(pid)?;
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
        set_registers(pid, &mut calling)
            && real::ptrace(libc::PTRACE_SINGLESTEP, pid, null_mut(), null_mut()) == 0
            && real::waitpid(pid, &raw mut status, libc::__WALL) == pid
    };
    let after = registers(pid).filter(|_| has_stepped && libc::WIFSTOPPED(status))?;
    let is_done = libc::WSTOPSIG(status) == libc::SIGTRAP && after.rip == before.rip;
    (is_done && set_registers(pid, &mut { before })).then_some(after.rax as i64)
}
