//! Who asks the kernel for a new stub: the program whose system call the kernel works on, on the kernel stack of its task.
//!
//! A stub is a host process that holds an address space, and fork and exec make one. Up to Linux 6.10 the kernel has the
//! stub of the present program copy itself, since then it makes each from nothing; in both cases nothing that reaches libc
//! says for whom. But one task works on a kernel stack, from its program's entry into the kernel until it returns. So an entry
//! by a system call that can make a stub is remembered under the stack on which the kernel learns of it, and a stub that is
//! made on this stack is that program's child. Any other entry on the stack, and the birth, forget it: what a task of the
//! kernel's own makes on the stack of one that is gone, as where it starts modprobe, is nobody's.

use core::arch::asm;
use core::ffi::c_int;

use interrupts::{Count, Word};

use crate::kernel::direct;

/// Stacks that are told apart by their place: those of a guest of 16 GiB. In a larger one, two that have the same place
/// forget each other's call.
const STACKS_MAX: usize = 1 << 20;

/// Bits of the number of a process (PID_MAX_LIMIT); above them, in an entry, is the number of the stack.
const PID_BITS: u32 = 22;

/// The stub whose program is in such a call, for each stack, and which stack it is; 0: none.
static CALLS: [Word; STACKS_MAX] = [const { Word::new(0) }; STACKS_MAX];
/// The size of a kernel stack, of which it begins at a multiple.
static STACK_BYTES: Count = Count::new(0);

/// Looks up what the stacks of this kernel are like: its signal stack is one of them.
pub fn start() {
    let bytes = direct::signal_stack_bytes();
    if !bytes.is_power_of_two() || bytes < 4096 {
        crate::die(b"dilaton clock: the size of this kernel's stacks cannot be told\n");
    }
    STACK_BYTES.set(bytes);
}

/// The number of the stack that is in use.
fn stack() -> u64 {
    let here: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    (here / STACK_BYTES.get()) as u64
}

fn call(stack: u64) -> &'static Word {
    &CALLS[stack as usize % STACKS_MAX]
}

/// Notes that the kernel, on the stack in use, learns that the program of stub `pid` has entered it: by a system call of
/// that number, or by none.
pub fn entered(pid: c_int, system_call: i64) {
    let stack = stack();
    let makes_stub = matches!(
        system_call,
        libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 | libc::SYS_execve | libc::SYS_execveat
    );
    call(stack).set(if makes_stub { stack << PID_BITS | pid as u64 } else { 0 });
}

/// The stub whose program asks for the one that is made on the stack in use. That is told once.
pub fn take_parent() -> Option<c_int> {
    let stack = stack();
    let found = call(stack).get();
    if found == 0 || found >> PID_BITS != stack {
        return None;
    }
    call(stack).set(0);
    Some((found & ((1 << PID_BITS) - 1)) as c_int)
}
