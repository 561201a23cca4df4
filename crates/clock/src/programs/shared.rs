//! The pages that a kernel shares with a stub in seccomp mode: struct stub_data of
//! arch/um/include/shared/skas/stub-data.h, and in it the frame of the signal that has stopped the stub.
//!
//! The layout is the kernel's own affair. Where the word is on which both wait is seen at each call, the rest is looked at
//! when the first stub stops, whose stop is known (`check`). A program can write to these pages too: all that is read
//! here may be anything, and no place is taken from them that is not within them.

use core::ffi::c_int;
use core::mem::size_of;
use core::sync::atomic::{AtomicI16, AtomicI32, AtomicI64, AtomicU16, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

/// Both pages: what is asked and answered, and the stack of the handler.
const PAGE_BYTES: usize = 4096;
pub const PAGES_BYTES: usize = 2 * PAGE_BYTES;

/// Where the fields are.
const ERROR: usize = 0;
const QUEUE_LENGTH: usize = 8;
const RETURNS: usize = 3976;
const TURN: usize = 3980;
const SIGNAL: usize = 3984;
const INFO: usize = 3988;
const CONTEXT: usize = 3990;

/// Whose turn it is, in the word on which both wait.
pub const STUBS_TURN: u32 = 0;
const KERNELS_TURN: u32 = 1;

/// struct sigcontext has so many words, and struct siginfo of the kernel so many bytes.
const CONTEXT_WORDS: usize = 32;
const INFO_BYTES: usize = 128;
/// From the one to the other in the frame of a signal (struct rt_sigframe of arch/x86/include/asm/sigframe.h).
const CONTEXT_TO_INFO: usize = 264;

/// A filter of system calls has sent it (asm-generic/siginfo.h).
const SYS_SECCOMP: c_int = 1;
const SINGLE_STEP: u64 = 0x100;

/// Words of struct sigcontext, in the order of libc's REG_R8 and so on.
type Context = [u64; CONTEXT_WORDS];

/// The pages of one stub.
#[derive(Clone, Copy)]
pub struct Shared {
    address: usize,
}

/// What a stub was stopped by.
#[derive(Clone, Copy)]
pub struct Cause {
    pub signal: c_int,
    /// Why it was sent.
    pub code: c_int,
    /// The system call, where it was one; -1 otherwise.
    pub system_call: i64,
}

impl Shared {
    /// Those at `address`, with which a stub is made.
    pub fn at(address: usize) -> Option<Self> {
        (address != 0 && address % PAGES_BYTES == 0).then_some(Self { address })
    }

    /// Those in which `address` is the word that both wait on.
    pub fn of_turn(address: usize) -> Option<Self> {
        Self::at(address.wrapping_sub(TURN))
    }

    /// A number that no other pages have.
    pub fn number(self) -> usize {
        self.address / PAGES_BYTES
    }

    fn field<T>(self, at: usize) -> &'static T {
        // SAFETY: the kernel's memory, which stays mapped; the fields are atomics, which others may change.
        unsafe { &*((self.address + at) as *const T) }
    }

    /// The word that says whose turn it is.
    pub fn turn(self) -> &'static AtomicU32 {
        self.field(TURN)
    }

    /// Whether the stub has the turn.
    pub fn is_stubs_turn(self) -> bool {
        self.turn().load(SeqCst) == STUBS_TURN
    }

    /// Takes the turn back from a stub that was given it and sleeps; false if it has used it.
    pub fn hold(self) -> bool {
        self.turn().swap(KERNELS_TURN, SeqCst) == STUBS_TURN
    }

    /// Gives the stub the turn; it has not stopped yet.
    pub fn give(self) {
        self.field::<AtomicI32>(SIGNAL).store(0, SeqCst);
        self.turn().store(STUBS_TURN, SeqCst);
    }

    /// The signal that has stopped the stub; 0: none yet.
    pub fn signal(self) -> c_int {
        self.field::<AtomicI32>(SIGNAL).load(SeqCst)
    }

    /// Lets the kernel believe that `signal` has stopped it.
    pub fn set_signal(self, signal: c_int) {
        self.field::<AtomicI32>(SIGNAL).store(signal, SeqCst);
    }

    /// Whether the stub is to come back as soon as it has carried out what is queued.
    pub fn returns_at_once(self) -> bool {
        self.field::<AtomicI16>(RETURNS).load(Relaxed) != 0
    }

    /// Lets it do so, or not.
    pub fn set_returns_at_once(self, does: bool) {
        self.field::<AtomicI16>(RETURNS).store(does.into(), Relaxed);
    }

    /// Whether there are mappings for it to make.
    pub fn has_queue(self) -> bool {
        self.field::<AtomicI32>(QUEUE_LENGTH).load(Relaxed) != 0
    }

    /// Whether it could not make one of them.
    pub fn has_failed(self) -> bool {
        self.field::<AtomicI64>(ERROR).load(Relaxed) < 0
    }

    /// Where the interrupted code's registers are.
    fn context(self) -> Option<*mut Context> {
        let at = usize::from(self.field::<AtomicU16>(CONTEXT).load(Relaxed));
        let fits = at % size_of::<u64>() == 0 && at + size_of::<Context>() <= PAGE_BYTES;
        fits.then_some((self.address + PAGE_BYTES + at) as *mut Context)
    }

    /// Where it is said what the signal is about.
    fn info(self) -> Option<*mut libc::siginfo_t> {
        let at = usize::from(self.field::<AtomicU16>(INFO).load(Relaxed));
        let fits = at % size_of::<u64>() == 0 && at + INFO_BYTES <= PAGE_BYTES;
        fits.then_some((self.address + PAGE_BYTES + at) as *mut libc::siginfo_t)
    }

    /// What has stopped the stub; `None` where that cannot be told.
    pub fn cause(self) -> Option<Cause> {
        let info = self.info()?;
        let signal = self.signal();
        // SAFETY: within the kernel's memory, aligned; any value is one. The number is behind the address of the call.
        let (code, number) = unsafe { ((&raw const (*info).si_code).read_volatile(), info.cast::<c_int>().add(6)) };
        // SAFETY: as above.
        let system_call = if signal == libc::SIGSYS { i64::from(unsafe { number.read_volatile() }) } else { -1 };
        Some(Cause { signal, code, system_call })
    }

    /// The registers of the interrupted code, as ptrace(2) gives them.
    pub fn registers(self) -> Option<libc::user_regs_struct> {
        let cause = self.cause()?;
        // SAFETY: as in `cause`; zeros are a value of the structure.
        let (context, mut registers) =
            unsafe { (self.context()?.read_volatile(), core::mem::zeroed::<libc::user_regs_struct>()) };
        for (field, word) in fields(&mut registers).into_iter().zip(context) {
            *field = word;
        }
        registers.orig_rax = cause.system_call as u64;
        Some(registers)
    }

    /// Sets them; whether there is a place for them.
    pub fn set_registers(self, registers: &mut libc::user_regs_struct) -> bool {
        let Some(context) = self.context() else { return false };
        for (place, field) in fields(registers).into_iter().enumerate() {
            // SAFETY: as in `cause`.
            unsafe { (&raw mut (*context)[place]).write_volatile(*field) };
        }
        true
    }

    /// Whether the interrupted code makes single steps.
    pub fn steps(self) -> bool {
        self.registers().is_some_and(|registers| registers.eflags & SINGLE_STEP != 0)
    }

    /// Makes it look as if such a step had stopped the stub.
    pub fn set_stepped(self) {
        self.set_signal(libc::SIGTRAP);
        if let Some(info) = self.info() {
            // SAFETY: as in `cause`.
            unsafe {
                (&raw mut (*info).si_signo).write_volatile(libc::SIGTRAP);
                (&raw mut (*info).si_code).write_volatile(libc::TRAP_TRACE);
            }
        }
    }

    /// Whether all is where it should be, in the pages of a stub that has stopped for the first time: its program has ended
    /// itself, which a filter has told the handler.
    pub fn is_as_known(self) -> bool {
        let (Some(context), Some(info), Some(cause)) = (self.context(), self.info(), self.cause()) else {
            return false;
        };
        cause.signal == libc::SIGSYS
            && cause.code == SYS_SECCOMP
            && cause.system_call == libc::SYS_exit
            && info as usize - context as usize == CONTEXT_TO_INFO
            // SAFETY: as in `cause`.
            && unsafe { (&raw const (*info).si_signo).read_volatile() } == libc::SIGSYS
    }
}

/// The registers that are in both structures, in the order of the frame's.
fn fields(registers: &mut libc::user_regs_struct) -> [&mut u64; 18] {
    let libc::user_regs_struct {
        r8,
        r9,
        r10,
        r11,
        r12,
        r13,
        r14,
        r15,
        rdi,
        rsi,
        rbp,
        rbx,
        rdx,
        rax,
        rcx,
        rsp,
        rip,
        eflags,
        ..
    } = registers;
    [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags]
}
