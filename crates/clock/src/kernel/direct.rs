//! Calls of the kernel's signal handlers as the host would make them, without a signal: on the signal stack, by whose
//! address the kernel finds its interrupt stack, and with the arguments of a signal.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::mem::{offset_of, zeroed, MaybeUninit};
use core::ptr;

use interrupts::Count;

use crate::host::sys;

/// The context of a signal that has interrupted none of a program's code: its registers would be at address 0, where the
/// handler of alarms takes them for not there, and the interrupted code for the kernel's (timer_real_alarm_handler in
/// arch/um/os-Linux/signal.c). From registers that are there it does not learn whose they are: it takes what is in that
/// place of its stack, where Linux 6.12 and 7.2 have left an address, which says that a program was interrupted. To that the
/// tick then charges its time, and RCU thinks that no task reads in the kernel.
pub const OF_KERNEL: *mut c_void = 0_usize.wrapping_sub(offset_of!(libc::ucontext_t, uc_mcontext)) as *mut c_void;

/// The kernel's signal stack; both ends are zero until it is known.
struct SignalStack {
    low: Count,
    high: Count,
}

static STACK: SignalStack = SignalStack { low: Count::new(0), high: Count::new(0) };

/// Looks up the kernel's signal stack; false if it is not there yet.
fn find_signal_stack() -> bool {
    if STACK.high.get() == 0 {
        // SAFETY: sigaltstack fills the structure.
        let stack = unsafe {
            let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
            sys::signal_stack(stack.as_mut_ptr());
            stack.assume_init()
        };
        if stack.ss_flags & libc::SS_DISABLE != 0 || stack.ss_size == 0 {
            return false;
        }
        STACK.low.set(stack.ss_sp as usize);
        STACK.high.set(stack.ss_sp as usize + stack.ss_size);
    }
    true
}

/// The size of the kernel's signal stack, which is that of its other stacks (start_uml in arch/um/kernel/skas/process.c); 0
/// if it is not there yet.
pub fn signal_stack_bytes() -> usize {
    find_signal_stack();
    STACK.high.get() - STACK.low.get()
}

/// The top of the kernel's signal stack, unless we are on it or it is not there yet.
pub fn free_signal_stack() -> Option<usize> {
    if !find_signal_stack() {
        return None;
    }
    let (low, high) = (STACK.low.get(), STACK.high.get());
    let here: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    (here < low || here >= high).then_some(high & !0xF)
}

/// Calls `handler`, the kernel's of `signal`, on the stack that ends at `top`, which is a multiple of 16, after
/// `clear_words` words there have been overwritten (`leavings.rs`).
///
/// # Safety
/// Nothing may be using that stack, and it has to have so many words.
pub unsafe fn call_handler(top: usize, clear_words: usize, signal: c_int, handler: usize) {
    // SAFETY: for this C structure zeros are a value.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    info.si_signo = signal;
    // SAFETY: the stack is free, and large enough.
    unsafe { ptr::write_bytes((top as *mut u64).sub(clear_words), 0, clear_words) };
    // SAFETY: r12 is preserved by the handler, a C function, and so brings our stack back.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {handler}",
            "mov rsp, r12",
            top = in(reg) top,
            handler = in(reg) handler,
            inout("rdi") signal => _,
            inout("rsi") &raw mut info => _,
            inout("rdx") OF_KERNEL => _,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}
