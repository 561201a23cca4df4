//! What programs ask for that guests cannot give, noted so that the host can say so when a command fails.
//!
//! It is seen here, at the entry of a system call, since the kernel's answer (ENOMEM, ENOENT, EINVAL) could have many
//! reasons. Nothing is refused here, and a program may well do without: the notes say what was asked for, not why
//! something failed. Only address space counts when it was not given, as kernels differ in how much they have.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Id, Word};

use crate::host::page::ClockPage;
use crate::time::present;

/// What three levels of page tables can address, which is what many kernels have.
const ADDRESS_SPACE_BYTES: u64 = 1 << 39;

/// Who has asked for that much or more last, and how much.
struct Asked {
    pid: Id,
    bytes: Word,
}

static ASKED: Asked = Asked { pid: Id::new(0), bytes: Word::new(0) };

/// From asm/prctl.h: asks for the use of a component of the extended CPU state; and the component of AMX's tiles.
const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
const XFEATURE_XTILE_DATA: u64 = 18;

/// The whole path but for its final zero, as the word that it is in memory.
const KVM: u64 = u64::from_le_bytes(*b"/dev/kvm");

/// Bits of `lacked` in the clock page.
const LACKED_KVM: u64 = 1;
const LACKED_CPU: u64 = 2;
const LACKED_AMX: u64 = 4;
const LACKED_CPU_TIMER: u64 = 8;

/// Notes what the stopped process `pid` asks for by the system call that it enters, if it enters one; `peek` reads a word of its
/// memory, or returns all ones where there is none.
pub fn note(page: &ClockPage, pid: c_int, registers: &libc::user_regs_struct, peek: &impl Fn(u64) -> u64) {
    let (first, second, third) = (registers.rdi, registers.rsi, registers.rdx);
    let lacked = match registers.orig_rax as i64 {
        libc::SYS_mmap if second >= ADDRESS_SPACE_BYTES => {
            ASKED.pid.set(pid);
            ASKED.bytes.set(second);
            return;
        }
        libc::SYS_open if is_kvm(first, peek) => LACKED_KVM,
        libc::SYS_openat if is_kvm(second, peek) => LACKED_KVM,
        // There is CPU 0 alone.
        libc::SYS_sched_setaffinity if second >= 8 && peek(third) & 1 == 0 => LACKED_CPU,
        // Computing takes no time there.
        libc::SYS_setitimer if present::is_event() && is_timer_of_cpu(first) => LACKED_CPU_TIMER,
        libc::SYS_timer_create if present::is_event() && is_cpu_clock(first) => LACKED_CPU_TIMER,
        libc::SYS_arch_prctl if first == ARCH_REQ_XCOMP_PERM && second == XFEATURE_XTILE_DATA => LACKED_AMX,
        _ => return,
    };
    page.lacked.fetch_or(lacked, Relaxed);
}

/// The process `pid` is given this answer to its system call.
pub fn answered(page: &ClockPage, pid: c_int, answer: i64) {
    if ASKED.pid.get() == pid {
        ASKED.pid.set(0);
        if answer == -i64::from(libc::ENOMEM) {
            page.address_space_lacked_bytes.fetch_max(ASKED.bytes.get(), Relaxed);
        }
    }
}

fn is_timer_of_cpu(which: u64) -> bool {
    matches!(which as c_int, libc::ITIMER_VIRTUAL | libc::ITIMER_PROF)
}

/// Whether a clock counts CPU time: of this process or thread, or of any, whose numbers are below 0.
fn is_cpu_clock(clock: u64) -> bool {
    matches!(clock as c_int, libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID | c_int::MIN..=-1)
}

fn is_kvm(path: u64, peek: &impl Fn(u64) -> u64) -> bool {
    peek(path) == KVM && peek(path + 8).to_le_bytes()[0] == 0
}
