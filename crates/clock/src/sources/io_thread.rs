//! The kernel's I/O thread, which is no thread here but a routine.
//!
//! The driver of block devices (arch/um/drivers/ubd_kern.c) hands its requests to a thread: it writes the address of a
//! request into a socket, the thread reads it there, moves the data between memory and image, and writes the address back.
//! When that is depends on the host's scheduler, so it cannot be what a guest sees of its disks.
//!
//! Here the thread's function runs on a stack of its own, in the kernel's thread, at the moment at which the kernel
//! writes: it is entered where it reads the next request, and left where it would wait for another. So the data are
//! moved at once, nothing runs at the same time as anything else, and what is left to decide is when the kernel hears
//! of it (`disks.rs`).
//!
//! What a request is, is learned from what the routine does for it: its calls of `pread`, `pwrite`, `fsync` and `fallocate`
//! are noted on their way to the host. For a flush of the write cache it does nothing, as the request has no parts: of that
//! alone the disk is looked up in the kernel's structure, by the descriptor of the image, which has been at the same place
//! since Linux 4.20.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

use disk::{Operation, Request};
use interrupts::{Count, Flag};

use crate::host::real::Entry;

/// Where the image's descriptor is in a `struct io_thread_req`.
const IMAGE_AT: usize = 8;

const FLUSH: Request = Request { operation: Operation::Flush, offset_bytes: 0, length_bytes: 0 };

const STACK_BYTES: usize = 1 << 16;

#[repr(C, align(64))]
struct Stack([u8; STACK_BYTES]);

/// What the routine has done for a request.
#[derive(Clone, Copy)]
pub struct Served {
    /// The image's descriptor.
    pub fd: c_int,
    /// All that it did, as one.
    pub request: Request,
    /// Whether the host refused some of it.
    pub failed: bool,
}

struct Routine {
    /// What it runs.
    entry: Count,
    argument: Count,
    runs: Flag,
    /// The address of the request that it is to serve; 0: none.
    inbox: Count,
    stack: UnsafeCell<Stack>,
    served: UnsafeCell<Option<Served>>,
    /// The stack pointers of the two sides while they are not running.
    kernel_stack: UnsafeCell<usize>,
    own_stack: UnsafeCell<usize>,
}

// SAFETY: the kernel is one thread, which enters the routine in a critical section, where no handler of the
// kernel's runs.
unsafe impl Sync for Routine {}

static ROUTINE: Routine = Routine {
    entry: Count::new(0),
    argument: Count::new(0),
    runs: Flag::new(false),
    inbox: Count::new(0),
    stack: UnsafeCell::new(Stack([0; STACK_BYTES])),
    served: UnsafeCell::new(None),
    kernel_stack: UnsafeCell::new(0),
    own_stack: UnsafeCell::new(0),
};

/// Takes the place of the thread that would run `entry`.
pub fn adopt(entry: *const (), argument: *mut c_void) {
    ROUTINE.entry.set(entry as usize);
    ROUTINE.argument.set(argument as usize);
    // SAFETY: it does not run yet. A function expects its return address 8 bytes below a multiple of 16: below it is what
    // `switch` returns to.
    unsafe {
        let top = ROUTINE.stack.get().cast::<usize>().add(STACK_BYTES / size_of::<usize>() - 2);
        top.write(begin as *const () as usize);
        *ROUTINE.own_stack.get() = top as usize;
    }
}

/// Whether the routine has taken a thread's place.
pub fn is_adopted() -> bool {
    ROUTINE.entry.get() != 0
}

/// Whether the caller is the routine.
pub fn runs() -> bool {
    ROUTINE.runs.get()
}

extern "C" fn begin() -> ! {
    // SAFETY: `adopt` stored a function of this type, or one that leaves a wider result.
    let entry: Entry = unsafe { core::mem::transmute(ROUTINE.entry.get()) };
    entry(ROUTINE.argument.get() as *mut c_void);
    crate::die(b"dilaton clock: the kernel's I/O thread ended\n")
}

/// Lets the routine serve the request at `address`; what it did. In a critical section.
pub fn serve(address: usize) -> Served {
    ROUTINE.inbox.set(address);
    // SAFETY: a critical section of the only thread; the routine waits where it gave way, or at its beginning.
    unsafe {
        *ROUTINE.served.get() = None;
        ROUTINE.runs.set(true);
        switch(ROUTINE.kernel_stack.get(), *ROUTINE.own_stack.get());
        ROUTINE.runs.set(false);
        let image = (address as *const c_int).byte_add(IMAGE_AT);
        (*ROUTINE.served.get()).unwrap_or_else(|| Served { fd: image.read(), request: FLUSH, failed: false })
    }
}

/// The routine asks for a request: its address, as soon as there is one.
pub fn next_request() -> usize {
    loop {
        let address = ROUTINE.inbox.swap(0);
        if address != 0 {
            return address;
        }
        // SAFETY: the routine is what runs; the kernel waits in `serve`.
        unsafe { switch(ROUTINE.own_stack.get(), *ROUTINE.kernel_stack.get()) };
    }
}

/// Notes something that the routine did: of a request in parts, they follow each other.
pub fn note(fd: c_int, operation: Operation, offset: i64, length: usize, failed: bool) {
    let (offset_bytes, length_bytes) = (offset as u64, length as u64);
    let request = Request { operation, offset_bytes, length_bytes };
    // SAFETY: the routine is what runs.
    let served = unsafe { (*ROUTINE.served.get()).get_or_insert(Served { fd, request, failed }) };
    let end_bytes = (offset_bytes + length_bytes).max(served.request.offset_bytes + served.request.length_bytes);
    served.request.offset_bytes = served.request.offset_bytes.min(offset_bytes);
    served.request.length_bytes = end_bytes - served.request.offset_bytes;
    served.failed |= failed;
}

/// Leaves the stack that is in use, keeping in `left` where, and goes on where the one at `entered` was left.
///
/// # Safety
/// `entered` must come from this function, or point to the address of a function that does not return.
unsafe fn switch(left: *mut usize, entered: usize) {
    // SAFETY: all registers that a C function preserves are put on the stack or given up.
    unsafe {
        asm!(
            "push rbx",
            "push rbp",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "ret",
            "2:",
            "pop rbp",
            "pop rbx",
            inout("rdi") left => _,
            inout("rsi") entered => _,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
            clobber_abi("C"),
        );
    }
}
