//! RDTSC and RDTSCP in user code, which would read the host's counter past everything else.
//!
//! Stubs run with the counter disabled (prctl(2), PR_SET_TSC), so the instruction faults. The fault is told from others by
//! its code, SI_KERNEL, and by the instruction itself; the kernel never sees it. What the instruction returns is virtual
//! time in ticks of this host's counter: programs that know its frequency, from CPUID or by measuring it against a
//! clock, find it right.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use crate::tracee::ptrace;
use crate::{drive, keeper, sys};

const PR_SET_TSC: c_int = 26;
const PR_TSC_SIGSEGV: c_uint = 2;
const SI_KERNEL: c_int = 0x80;

/// In a new stub: its counter, and that of all that it forks, is out of reach.
pub fn disable() {
    sys::prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

/// Carries out the instruction at which the stopped process `pid` faulted, if it is one that reads the counter.
pub fn emulate(pid: c_int) -> bool {
    let Some(mut registers) = counter_fault(pid) else { return false };
    let Some(instruction) = Instruction::at(pid, registers.rip) else { return false };
    let Some(now) = keeper::now() else { return false };
    let ticks = drive::ticks_of(now);
    registers.rax = ticks & 0xFFFF_FFFF;
    registers.rdx = ticks >> 32;
    if let Instruction::Rdtscp = instruction {
        // The number of the processor, of which a guest has one.
        registers.rcx = 0;
    }
    registers.rip += instruction.bytes();
    // SAFETY: the structure is that of the request.
    unsafe { ptrace(libc::PTRACE_SETREGS, pid, null_mut(), (&raw mut registers).cast()) == 0 }
}

/// The registers of a process that stopped for a general protection fault; `None` if it did for something else.
fn counter_fault(pid: c_int) -> Option<libc::user_regs_struct> {
    // SAFETY: the structures are those of the requests.
    unsafe {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        if ptrace(libc::PTRACE_GETSIGINFO, pid, null_mut(), info.as_mut_ptr().cast()) != 0
            || info.assume_init().si_code != SI_KERNEL
        {
            return None;
        }
        let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
        let failed = ptrace(libc::PTRACE_GETREGS, pid, null_mut(), registers.as_mut_ptr().cast()) != 0;
        (!failed).then_some(registers.assume_init())
    }
}

enum Instruction {
    Rdtsc,
    Rdtscp,
}

impl Instruction {
    /// The instruction at `address` in process `pid`, if it reads the counter.
    fn at(pid: c_int, address: u64) -> Option<Self> {
        let mut code = [0_u8; 3];
        let ours = libc::iovec { iov_base: code.as_mut_ptr().cast(), iov_len: code.len() };
        let theirs = libc::iovec { iov_base: address as *mut c_void, iov_len: code.len() };
        // SAFETY: our buffer is writable for its length; the other process is only read.
        let read = unsafe { libc::process_vm_readv(pid, &ours, 1, &theirs, 1, 0) };
        match code {
            [0x0F, 0x31, _] if read >= 2 => Some(Self::Rdtsc),
            [0x0F, 0x01, 0xF9] if read == 3 => Some(Self::Rdtscp),
            _ => None,
        }
    }

    const fn bytes(&self) -> u64 {
        match self {
            Self::Rdtsc => 2,
            Self::Rdtscp => 3,
        }
    }
}
