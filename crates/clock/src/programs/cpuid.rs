//! What user code is told of the processor by the CPUID instruction.
//!
//! Where the host has *CPUID faulting* (arch_prctl(2), ARCH_SET_CPUID), stubs run with it, and the instruction is carried
//! out here. Hidden is what would make runs differ (random numbers of the hardware, which core the guest is on), and what
//! a guest cannot do: waiting by the time-stamp counter and AMD's RDPRU, which fault as it does; AMX, for which the kernel
//! cannot ask its host, memory protection keys, of which it knows nothing, and AVX-512, since the frame of a signal has no
//! room for its registers there: a program that a handler interrupts would lose them. The sizes of the extended state (leaf
//! 0xD) stay, since XGETBV, which nothing can trap, tells of the same components. On the event drive, where the time-stamp
//! counter has a frequency of its own, the leaves that tell the host's are empty.
//!
//! **Cost.** Whether the instruction faults is a model-specific register, which the host writes when it switches between
//! two processes that differ in it. In a virtual machine that takes microseconds, and a guest switches between kernel and
//! stubs at every system call of its programs: fork and exec were half as slow again. So the kernel's own process has it
//! too, and what the processor answers is remembered, since asking takes the register there and back.

use core::arch::x86_64::{__cpuid_count, CpuidResult};
use core::ffi::{c_int, c_ulong};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use interrupts::Flag;

use crate::host::page::{self, count};
use crate::programs::stub;
use crate::time::present;

const ARCH_SET_CPUID: c_int = 0x1012;

/// Whether the host can do so, and stubs lose it by executing a program.
static IS_LOST: Flag = Flag::new(false);

/// Makes the instruction fault, where the host can do so. The kernel's process calls it before it makes its stubs, which
/// inherit it, and lose it again where they are programs of their own.
pub fn disable(is_lost: bool) {
    IS_LOST.set(set(false) && is_lost);
}

/// Makes it fault in the new stub `pid`, which has stopped itself, if it has lost that.
pub fn disable_in(pid: c_int) {
    if IS_LOST.get() && stub::call(pid, libc::SYS_arch_prctl, [ARCH_SET_CPUID as u64, 0]) != Some(0) {
        crate::die(b"dilaton clock: a new process of this kernel cannot be kept from CPUID\n");
    }
}

/// Makes it fault in the new stub `pid`, which nobody traces and which sleeps, if it has lost that.
pub fn disable_in_untraced(pid: c_int) {
    if IS_LOST.get() && stub::call_untraced(pid, libc::SYS_arch_prctl, [ARCH_SET_CPUID as u64, 0]) != Some(0) {
        crate::die(b"dilaton clock: a new process of this kernel cannot be kept from CPUID\n");
    }
}

/// Whether that worked.
fn set(enabled: bool) -> bool {
    // SAFETY: changes a flag of the calling thread.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_CPUID, c_ulong::from(enabled)) == 0 }
}

/// An answer of the processor.
struct Known {
    /// One more than the leaf and the subleaf beside each other; 0: none.
    question: AtomicU64,
    eax: AtomicU32,
    ebx: AtomicU32,
    ecx: AtomicU32,
    edx: AtomicU32,
}

static KNOWN: [Known; 256] = [const {
    Known {
        question: AtomicU64::new(0),
        eax: AtomicU32::new(0),
        ebx: AtomicU32::new(0),
        ecx: AtomicU32::new(0),
        edx: AtomicU32::new(0),
    }
}; 256];

/// Whether the answer to a leaf is the same whatever the subleaf, in the manuals. Programs leave there what they had last, so that
/// each of their questions seemed to be a new one.
fn is_whole(leaf: u32) -> bool {
    matches!(leaf, 0..=3 | 5 | 6 | 9 | 0xA | 0x15 | 0x16 | 0x19 | 0x8000_0000..=0x8000_000A)
}

/// What the processor answers.
fn answer_of_host(leaf: u32, subleaf: u32) -> CpuidResult {
    let subleaf = if is_whole(leaf) { 0 } else { subleaf };
    let question = (u64::from(leaf) << 32 | u64::from(subleaf)).wrapping_add(1);
    // Of leaves that processors have now no two share a place.
    let known = &KNOWN[(leaf.wrapping_mul(49) ^ leaf >> 28 ^ subleaf) as usize % KNOWN.len()];
    if known.question.load(Relaxed) == question {
        return CpuidResult {
            eax: known.eax.load(Relaxed),
            ebx: known.ebx.load(Relaxed),
            ecx: known.ecx.load(Relaxed),
            edx: known.edx.load(Relaxed),
        };
    }
    if let Some(page) = page::page() {
        count(&page.cpuids_asked);
    }
    set(true);
    #[allow(unused_unsafe)] // newer compilers know that every processor has the instruction
    // SAFETY: every x86-64 processor has it, and here it does not fault now.
    let answer = unsafe { __cpuid_count(leaf, subleaf) };
    set(false);
    known.question.store(question, Relaxed);
    known.eax.store(answer.eax, Relaxed);
    known.ebx.store(answer.ebx, Relaxed);
    known.ecx.store(answer.ecx, Relaxed);
    known.edx.store(answer.edx, Relaxed);
    answer
}

/// What the instruction answers in a guest.
pub fn shown(leaf: u32, subleaf: u32) -> CpuidResult {
    if present::is_event() && COUNTER_FREQUENCY.contains(&leaf) {
        return CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
    }
    let mut answer = answer_of_host(leaf, subleaf);
    for hidden in HIDDEN.iter().filter(|hidden| hidden.leaf == leaf && hidden.subleaf.unwrap_or(subleaf) == subleaf) {
        answer.eax &= !hidden.eax;
        answer.ebx &= !hidden.ebx;
        answer.ecx &= !hidden.ecx;
        answer.edx &= !hidden.edx;
    }
    answer
}

/// Bits that are cleared in the answer to one leaf, and subleaf where there are some.
struct Hidden {
    leaf: u32,
    subleaf: Option<u32>,
    eax: u32,
    ebx: u32,
    ecx: u32,
    edx: u32,
}

impl Hidden {
    const fn of(leaf: u32, subleaf: Option<u32>) -> Self {
        Self { leaf, subleaf, eax: 0, ebx: 0, ecx: 0, edx: 0 }
    }
}

/// The leaves that tell how fast the time-stamp counter is: of processors, and of hypervisors.
const COUNTER_FREQUENCY: [u32; 3] = [0x15, 0x16, 0x4000_0010];

/// What is hidden, by leaf, in the manuals' names.
const HIDDEN: [Hidden; 9] = [
    // The initial APIC ID, which is of the core; RDRAND.
    Hidden { ebx: 0xFF00_0000, ecx: 1 << 30, ..Hidden::of(0x1, None) },
    // RDSEED; PKU, OSPKE, WAITPKG, RDPID; UINTR, AMX-BF16, AMX-TILE, AMX-INT8.
    Hidden {
        ebx: 1 << 18,
        ecx: 1 << 3 | 1 << 4 | 1 << 5 | 1 << 22,
        edx: 1 << 5 | 1 << 22 | 1 << 24 | 1 << 25,
        ..Hidden::of(0x7, Some(0))
    },
    // AVX-512: F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT, FP16.
    Hidden {
        ebx: 1 << 16 | 1 << 17 | 1 << 21 | 1 << 26 | 1 << 27 | 1 << 28 | 1 << 30 | 1 << 31,
        ecx: 1 << 1 | 1 << 6 | 1 << 11 | 1 << 12 | 1 << 14,
        edx: 1 << 2 | 1 << 3 | 1 << 8 | 1 << 23,
        ..Hidden::of(0x7, Some(0))
    },
    // AVX512-BF16, AMX-FP16; AMX-COMPLEX, AVX10.
    Hidden { eax: 1 << 5 | 1 << 21, edx: 1 << 8 | 1 << 19, ..Hidden::of(0x7, Some(1)) },
    // What AVX10 there is.
    Hidden { eax: u32::MAX, ebx: u32::MAX, ecx: u32::MAX, edx: u32::MAX, ..Hidden::of(0x24, None) },
    // The x2APIC ID, twice.
    Hidden { edx: u32::MAX, ..Hidden::of(0xB, None) },
    Hidden { edx: u32::MAX, ..Hidden::of(0x1F, None) },
    // RDPRU (AMD).
    Hidden { ebx: 1 << 4, ..Hidden::of(0x8000_0008, None) },
    // The extended APIC ID (AMD).
    Hidden { eax: u32::MAX, ..Hidden::of(0x8000_001E, None) },
];
