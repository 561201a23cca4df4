//! Instructions of user code that are carried out here: RDTSC, RDTSCP and CPUID, which would speak with the hardware past
//! everything else, and HLT, by which the agent asks something of the clock.
//!
//! Stubs run with the counter disabled (prctl(2), PR_SET_TSC), so the instruction faults. The fault is told from others by
//! its code, SI_KERNEL, and by the instruction itself; the kernel never sees it. What the instruction returns is virtual
//! time in ticks of this host's counter: programs that know its frequency, from CPUID or by measuring it against a
//! clock, find it right. On the event drive a tick is a nanosecond, since every run measures that frequency anew, a few
//! parts in a million apart. CPUID faults in the same way, where the host can do that, and `cpuid.rs` answers it.
//!
//! HLT faults in the same way in any program. With the page's magic number in RAX it is a request, RDI says which: 1, the
//! agent waits for the host, so virtual time has to stand still until 0, it no longer does. The host's answers thus cost
//! no virtual time, and the clock of a run that is over stops by itself. 2, the guest is about to power off: its disks take
//! no time any more. 3, the program that this process is about to execute is of a node with a CPU of its own: its number
//! in RSI, its speed in RDX over R10.

use core::ffi::{c_int, c_uint};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use crate::page::MAGIC;
use crate::tracee::{ptrace, word_at};
use crate::{cpuid, disks, drive, keeper, page, present, shares, sys};

const PR_SET_TSC: c_int = 26;
const PR_TSC_SIGSEGV: c_uint = 2;
const SI_KERNEL: c_int = 0x80;
const HURRY_DISKS: u64 = 2;
const JOIN_NODE: u64 = 3;

/// In a new stub: the counter is out of its reach, and of all that it forks.
pub fn disable() {
    sys::prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

/// Carries out the instruction at which the stopped process `pid` faulted, if it is one of these.
pub fn emulate(pid: c_int) -> bool {
    let Some(mut registers) = protection_fault(pid) else { return false };
    let Some(instruction) = Instruction::at(pid, registers.rip) else { return false };
    match instruction {
        Instruction::Rdtsc | Instruction::Rdtscp => {
            let Some(reading_ns) = keeper::reading_ns() else { return false };
            let ticks = if present::is_event() { reading_ns } else { drive::ticks_of(reading_ns) };
            registers.rax = ticks & 0xFFFF_FFFF;
            registers.rdx = ticks >> 32;
            if let Instruction::Rdtscp = instruction {
                // The number of the processor, of which a guest has one.
                registers.rcx = 0;
            }
        }
        Instruction::Cpuid => {
            let answer = cpuid::shown(registers.rax as u32, registers.rcx as u32);
            registers.rax = answer.eax.into();
            registers.rbx = answer.ebx.into();
            registers.rcx = answer.ecx.into();
            registers.rdx = answer.edx.into();
        }
        Instruction::Hlt => {
            let Some(page) = page::page().filter(|_| registers.rax == MAGIC) else { return false };
            match registers.rdi {
                HURRY_DISKS => disks::hurry(page),
                JOIN_NODE => shares::join(pid, registers.rsi, (registers.rdx, registers.r10)),
                waits => keeper::wait_for_host(page, waits != 0),
            }
        }
    }
    registers.rip += instruction.bytes();
    // SAFETY: the structure is that of the request.
    unsafe { ptrace(libc::PTRACE_SETREGS, pid, null_mut(), (&raw mut registers).cast()) == 0 }
}

/// The registers of a process that stopped for a general protection fault; `None` if it did for something else.
fn protection_fault(pid: c_int) -> Option<libc::user_regs_struct> {
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
    Cpuid,
    Hlt,
}

impl Instruction {
    /// The instruction at `address` in process `pid`, if it is one of these.
    ///
    /// It is read as a debugger does. Where the kernel looks for memory to free it maps code so that it runs and cannot be read,
    /// to see whether it is still in use; process_vm_readv(2) heeds that. Whole words never reach into a page that is not there.
    fn at(pid: c_int, address: u64) -> Option<Self> {
        let within = (address % 8) as usize;
        let word = |n: u64| word_at(pid, address - address % 8 + 8 * n).to_le_bytes();
        let mut code = [0_u8; 16];
        code[..8].copy_from_slice(&word(0));
        if within + 3 > 8 {
            code[8..].copy_from_slice(&word(1));
        }
        match code[within..within + 3] {
            [0x0F, 0x31, _] => Some(Self::Rdtsc),
            [0x0F, 0xA2, _] => Some(Self::Cpuid),
            [0x0F, 0x01, 0xF9] => Some(Self::Rdtscp),
            [0xF4, ..] => Some(Self::Hlt),
            _ => None,
        }
    }

    const fn bytes(&self) -> u64 {
        match self {
            Self::Hlt => 1,
            Self::Rdtsc | Self::Cpuid => 2,
            Self::Rdtscp => 3,
        }
    }
}
