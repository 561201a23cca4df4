//! Page faults of programs, of which the kernel is told without asking their stubs.
//!
//! Whether a program wanted to write is in the fault's error code, which the host's kernel gives to nobody but the program,
//! with its signal. So a stock kernel passes each SIGSEGV on to the stub, where a handler of its own writes the code, the
//! address and the number of the trap into a page that both share, and stops again (get_skas_faultinfo): one of the three
//! stops of a page fault, and the dearest, since a signal saves and clears all extended state. But the address is known from
//! the signal, and nearly every instruction tells what it does (`interrupts::access`). Then the three words are written into
//! that page for the stub, and the kernel hears that it has stopped, while it has not run at all.
//!
//! Where the page is, and that it is laid out so, is learnt from the first fault of which a stub is asked; if it is not,
//! all are asked. Of the error code the kernel uses one bit, whether the program wrote; whether the page was there is told as
//! the signal tells it. On the event drive what is left out counts as the entry that it would have been.

use core::cell::UnsafeCell;
use core::ffi::c_int;

use interrupts::{access, Access, Count, Flag, Id, Registers, Word};

use crate::host::page::{count, ClockPage};
use crate::programs::stub;
use crate::time::drive;

/// What waitpid(2) says of a stub whose handler has stopped it.
pub const TRAPPED: c_int = libc::SIGTRAP << 8 | 0x7F;

/// There is no page there, or none that allows it (asm-generic/siginfo.h); anything else is no page fault.
const SEGV_MAPERR: c_int = 1;
const SEGV_ACCERR: c_int = 2;
/// The number of a page fault, and bits of its error code (arch/x86/include/asm/trap_pf.h).
const PAGE_FAULT: u64 = 14;
const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const USER: u64 = 4;
const FETCH: u64 = 16;
/// Where addresses of programs end.
const PROGRAMS_END: u64 = 1 << 47;
const PAGE_BYTES: u64 = 4096;

struct Faults {
    /// The stub that a fault has stopped, and with which code and address; 0: none.
    stub: Id,
    code: Id,
    address: Word,
    /// Whether the kernel has read the registers, which are then here.
    has_registers: Flag,
    registers: UnsafeCell<Registers>,
    /// The stub that is being asked, and the one of which the kernel is yet to hear that it has stopped; 0: none.
    asked: Id,
    told: Id,
    /// Where in stubs the words are; 0: not known.
    words: Word,
    /// Once they are looked for: whether they were not where they should be.
    looked: Count,
}

// SAFETY: the kernel is one thread, and its signal handlers do not trace processes.
unsafe impl Sync for Faults {}

static FAULTS: Faults = Faults {
    stub: Id::new(0),
    code: Id::new(0),
    address: Word::new(0),
    has_registers: Flag::new(false),
    registers: UnsafeCell::new(Registers { general: [0; 16], rip: 0, segments: [0; 2] }),
    asked: Id::new(0),
    told: Id::new(0),
    words: Word::new(0),
    looked: Count::new(0),
};

/// A fault has stopped the stub `pid`, and the kernel is to see to it.
pub fn stopped(pid: c_int, code: c_int, address: u64) {
    FAULTS.stub.set(pid);
    FAULTS.code.set(code);
    FAULTS.address.set(address);
    FAULTS.has_registers.set(false);
}

/// The kernel has read the registers of the stub `pid`.
pub fn registers_read(pid: c_int, read: &libc::user_regs_struct) {
    if FAULTS.stub.get() != pid || pid == 0 {
        return;
    }
    let general = [
        read.rax, read.rcx, read.rdx, read.rbx, read.rsp, read.rbp, read.rsi, read.rdi, read.r8, read.r9, read.r10,
        read.r11, read.r12, read.r13, read.r14, read.r15,
    ];
    // SAFETY: see `Faults`; nothing else refers to it now.
    unsafe { *FAULTS.registers.get() = Registers { general, rip: read.rip, segments: [read.fs_base, read.gs_base] } };
    FAULTS.has_registers.set(true);
}

/// The stub of the last fault is resumed, or another one.
pub fn forget() {
    FAULTS.stub.set(0);
}

/// The kernel passes the fault on to the stub `pid`: whether that may be left out, since what it would write is there.
pub fn tell(page: &ClockPage, pid: c_int) -> bool {
    let Some(code) = error_code(pid).filter(|_| FAULTS.words.get() != 0) else {
        FAULTS.asked.set(pid);
        count(&page.faults_asked);
        return false;
    };
    if !stub::write(pid, FAULTS.words.get(), &[code, FAULTS.address.get(), PAGE_FAULT]) {
        FAULTS.asked.set(pid);
        count(&page.faults_asked);
        return false;
    }
    FAULTS.stub.set(0);
    FAULTS.told.set(pid);
    drive::step_entry();
    count(&page.faults_told);
    true
}

/// The error code of the fault of the stub `pid`, where it can be told.
fn error_code(pid: c_int) -> Option<u64> {
    let address = FAULTS.address.get();
    if FAULTS.stub.get() != pid || !FAULTS.has_registers.get() || address >= PROGRAMS_END {
        return None;
    }
    // SAFETY: see `Faults`; nothing changes it meanwhile.
    let registers = unsafe { &*FAULTS.registers.get() };
    let present = match FAULTS.code.get() {
        SEGV_MAPERR => 0,
        SEGV_ACCERR => PRESENT,
        _ => return None,
    };
    if address == registers.rip && present == 0 {
        // There was nothing to be fetched.
        return Some(USER | FETCH);
    }
    let mut read = (u64::MAX, 0);
    let code = |place| {
        let at = registers.rip.wrapping_add(place as u64);
        if read.0 != at & !7 {
            read = (at & !7, stub::word_at(pid, at & !7));
        }
        read.1.to_le_bytes()[(at % 8) as usize]
    };
    let write = match access(registers, address, code)? {
        Access::Read => 0,
        Access::Write => WRITE,
    };
    Some(USER | write | present)
}

/// Whether the stub `pid`, of which the kernel asks, was not asked itself. Only the first call says so.
pub fn take_told(pid: c_int) -> bool {
    pid != 0 && FAULTS.told.get() == pid && FAULTS.told.swap(0) == pid
}

/// The stub `pid` has stopped at a trap: if it was asked, where it has written is learnt.
pub fn answered(pid: c_int) {
    if FAULTS.asked.swap(0) != pid || FAULTS.stub.get() != pid || FAULTS.looked.get() > 0 {
        return;
    }
    FAULTS.looked.set(1);
    let Some(registers) = stub::registers(pid) else { return };
    // The page of the handler's stack begins with them, or since Linux 6.11 the one before (get_stub_data).
    let stack = registers.rsp & !(PAGE_BYTES - 1);
    let is_it = |page: &u64| {
        let [code, address, trap] = [0, 8, 16].map(|place| stub::word_at(pid, page + place));
        // The first and the last are of four bytes.
        address == FAULTS.address.get() && trap as u32 == PAGE_FAULT as u32 && code as u32 & USER as u32 != 0
    };
    FAULTS.words.set([stack, stack.wrapping_sub(PAGE_BYTES)].into_iter().find(is_it).unwrap_or(0));
}
