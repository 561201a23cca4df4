//! What the clock's functions leave on the kernel's stacks.
//!
//! **Problem.** The kernel's handler of input passes on registers of which it has set none but one (sig_handler_common in
//! arch/um/os-Linux/signal.c), and the instruction pointer among them goes into its random numbers
//! (add_interrupt_randomness). What is left on its stack there decides, so to speak, what the guest draws. On the stack of
//! signals that is what earlier handlers have left. But mostly the kernel is told of input while it has interrupts off, as
//! when it idles, and handles it when it turns them on: on the stack of the present task, just where the clock's own
//! frames were a moment ago, with the instants at which its sleep began and ended. Whether one of them is in that very place
//! depends on how both were compiled. Another word there says whether user code was interrupted, to which the tick then
//! charges its time; where none was, the kernel is given no registers at all (`direct.rs`).
//!
//! **The rule.** On the event drive, where a run follows from its seed, each function of the clock's that knows something of
//! the host, be it an instant or how far other guests have come, runs [`unseen`]; and before a handler of the kernel's is
//! called, the stack below is filled. What the kernel's own functions leave is the same in each run.

use core::arch::asm;
use core::mem::MaybeUninit;

use crate::kernel::direct::signal_stack_bytes;

/// How far down the stack is overwritten, in words: more than the clock's deepest call takes, 400, and the kernel's handlers
/// down to their registers, which on Linux 6 are below 2,696 bytes of extended state. The kernel's stacks have 16 KiB.
const WORDS: usize = 768;

/// What is at the low end of a stack of the kernel's, and never overwritten: what it knows of its task.
const LOW_END_BYTES: usize = 1024;

/// How many words of its stack are to be overwritten before a handler of the kernel's is called on one of its own.
pub fn words_to_clear(is_same: bool) -> usize {
    if is_same {
        WORDS
    } else {
        0
    }
}

/// Overwrites what earlier calls have left below, for a handler of the kernel's that is called next.
#[inline(never)]
pub fn fill_stack_below(word: u64) {
    let mut words = MaybeUninit::<[u64; WORDS]>::uninit();
    for place in 0..WORDS {
        // SAFETY: within the array; volatile, since nothing that the compiler sees reads it.
        unsafe { words.as_mut_ptr().cast::<u64>().add(place).write_volatile(word) };
    }
}

/// Runs `f`, and overwrites what it has left on the stack, if `is_same` says then that runs have to be the same.
#[allow(clippy::inline_always)] // What a frame of its own took would stay below the caller's.
#[inline(always)]
pub fn unseen<T>(is_same: fn() -> bool, f: impl FnOnce() -> T) -> T {
    let result = in_a_frame_of_its_own(f);
    if is_same() {
        clear_below();
    }
    result
}

#[inline(never)]
fn in_a_frame_of_its_own<T>(f: impl FnOnce() -> T) -> T {
    f()
}

/// Overwrites all that is below the caller's frame, as far as there is room: a clock is read also where the kernel is deep in
/// its stack.
#[allow(clippy::inline_always)] // As above.
#[inline(always)]
fn clear_below() {
    let (stack_bytes, here): (usize, usize);
    stack_bytes = signal_stack_bytes();
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    let room_bytes = here.checked_rem(stack_bytes).unwrap_or(0).saturating_sub(LOW_END_BYTES);
    let words = WORDS.min(room_bytes / size_of::<u64>());
    // SAFETY: it writes below the stack pointer, where nothing is: the compiler keeps none of its own there around
    // instructions that may use the stack, and signals have a stack of their own.
    unsafe {
        asm!(
            "mov rdi, rsp",
            "sub rdi, {bytes}",
            "rep stosq",
            bytes = in(reg) words * size_of::<u64>(),
            inout("rcx") words => _,
            in("rax") 0,
            out("rdi") _,
        );
    }
}
