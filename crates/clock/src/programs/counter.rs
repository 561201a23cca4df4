//! Instructions of user code that are carried out here: RDTSC, RDTSCP and CPUID, which would speak with the hardware past
//! everything else, and HLT, by which the agent asks something of the clock.
//!
//! Stubs run with the counter disabled (`host/own_counter.rs`), so the instruction faults. The fault is told from others by
//! its code, SI_KERNEL, and by the instruction itself; the kernel never sees it. What the instruction returns is virtual
//! time in ticks of this host's counter: programs that know its frequency, from CPUID or by measuring it against a
//! clock, find it right. On the event drive a tick is a nanosecond, since every run measures that frequency anew, a few
//! parts in a million apart. CPUID faults in the same way, where the host can do that, and `programs/cpuid.rs` answers it.
//!
//! HLT faults in the same way in any program. If its registers hold a request (`crates/requests`), that is carried out.

use core::ffi::c_int;

use disk::Fault;
use requests::Request;

use crate::deadlines::commands;
use crate::host::page::{self, count, ClockPage};
use crate::nodes::shares;
use crate::occasions::{begins, reading};
use crate::programs::{cpuid, stub};
use crate::sources::disks;
use crate::time::{drive, present};

const SI_KERNEL: c_int = 0x80;
/// The longest instruction of the processor, in bytes.
const LENGTH_MAX: u64 = 15;

/// Carries out the instruction at which the process `pid` was stopped by a fault of this code, if it is one of these. The kernel
/// has turned to it.
pub fn emulate(pid: c_int, code: c_int) -> bool {
    if code != SI_KERNEL {
        return false;
    }
    let Some(mut registers) = stub::registers(pid) else { return false };
    let Some((instruction, bytes)) = Instruction::at(pid, registers.rip) else { return false };
    match instruction {
        Instruction::Rdtsc | Instruction::Rdtscp => {
            let Some(reading_ns) = reading::reading_ns() else { return false };
            let ticks = if present::is_event() { reading_ns } else { drive::ticks_of(reading_ns) };
            registers.rax = ticks & 0xFFFF_FFFF;
            registers.rdx = ticks >> 32;
            if let Instruction::Rdtscp = instruction {
                // The number of the processor, of which a guest has one.
                registers.rcx = 0;
            }
        }
        Instruction::Cpuid => {
            if let Some(page) = page::page() {
                count(&page.cpuids);
            }
            let answer = cpuid::shown(registers.rax as u32, registers.rcx as u32);
            registers.rax = answer.eax.into();
            registers.rbx = answer.ebx.into();
            registers.rcx = answer.ecx.into();
            registers.rdx = answer.edx.into();
        }
        Instruction::Hlt => {
            if registers.rax != requests::MAGIC {
                return false;
            }
            let words = [registers.rdi, registers.rsi, registers.rdx, registers.r10];
            let (Some(page), Some(request)) = (page::page(), Request::of(words)) else { return false };
            carry_out(pid, page, request);
        }
    }
    registers.rip += bytes;
    stub::set_registers(pid, &mut registers)
}

/// What the process `pid` asks for.
fn carry_out(pid: c_int, page: &ClockPage, request: Request) {
    match request {
        Request::WaitForHost(waits) => commands::wait_for_host(page, waits),
        Request::HandOver => commands::hand_over(page),
        Request::HurryDisks => disks::hurry(page),
        Request::JoinNode { node, host, guest } => shares::join(pid, node, (host, guest)),
        Request::SetSpeed { node, host, guest } => shares::set_speed(node, (host, guest)),
        Request::WatchBegin { process } => begins::watch(page, process),
        Request::PowerDisk { disk, power } => disks::power(page, disk as usize, power),
        Request::BreakDisk { disk, fault } => {
            let words = core::array::from_fn(|place| stub::word_at(pid, fault + 8 * place as u64));
            disks::break_down(page, disk as usize, Fault::of(words));
        }
    }
}

enum Instruction {
    Rdtsc,
    Rdtscp,
    Cpuid,
    Hlt,
}

impl Instruction {
    /// The instruction at `address` in process `pid`, if it is one of these, and its length in bytes.
    ///
    /// It is read as a debugger does. Where the kernel looks for memory to free it maps code so that it runs and cannot
    /// be read, to see whether it is still in use; process_vm_readv(2) heeds that. Whole words never reach into a page
    /// that is not there.
    ///
    /// Prefixes change nothing in these instructions, but who writes machine code may put them there.
    fn at(pid: c_int, address: u64) -> Option<(Self, u64)> {
        let mut read = (u64::MAX, 0);
        let mut byte = |n: u64| {
            let (word, within) = ((address + n) & !7, (address + n) % 8);
            if read.0 != word {
                read = (word, stub::word_at(pid, word));
            }
            read.1.to_le_bytes()[within as usize]
        };
        let is_prefix = |byte| matches!(byte, 0x40..=0x4F | 0x66 | 0x67 | 0xF2 | 0xF3);
        let prefixes = (0..LENGTH_MAX).take_while(|&n| is_prefix(byte(n))).count() as u64;
        let (instruction, bytes) = match [0, 1, 2].map(|n| byte(prefixes + n)) {
            [0x0F, 0x31, _] => (Self::Rdtsc, 2),
            [0x0F, 0xA2, _] => (Self::Cpuid, 2),
            [0x0F, 0x01, 0xF9] => (Self::Rdtscp, 3),
            [0xF4, ..] => (Self::Hlt, 1),
            _ => return None,
        };
        Some((instruction, prefixes + bytes))
    }
}
