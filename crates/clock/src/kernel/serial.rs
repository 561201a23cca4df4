//! The serial lines of the kernel's: read off the host a block at a time, and on the event drive written whole.
//!
//! The kernel's driver (arch/um/drivers/chan_kern.c) reads one byte in a call until there is none left, and each such call
//! would be one of the host: half a microsecond for every byte of a program's input. Here a call of the host takes as
//! many bytes as the line may have under way, and the kernel gets them one by one from memory. It asks until it hears that
//! there are no more, so nothing stays here of which it does not know.

use core::ffi::c_int;

use interrupts::Id;

use crate::host::{real, sys};
use crate::kernel::masks::{exclusively, Exclusive};

/// As much as the host ever has under way (`streams.rs` of the agent).
const BLOCK_BYTES: usize = 4096;

/// How many serial lines the host writes to: that of the channel, that of streams.
pub const LINES_COUNT: usize = 2;

/// Their descriptors.
static LINES: [Id; LINES_COUNT] = [const { Id::new(-1) }; LINES_COUNT];

struct Block {
    bytes: [u8; BLOCK_BYTES],
    given: usize,
    filled: usize,
}

static BLOCKS: Exclusive<[Block; LINES_COUNT]> =
    Exclusive::new([const { Block { bytes: [0; BLOCK_BYTES], given: 0, filled: 0 } }; LINES_COUNT]);

/// Remembers the serial lines that the host writes to.
pub fn start(lines: [c_int; LINES_COUNT]) {
    for (known, line) in LINES.iter().zip(lines) {
        known.set(line);
    }
}

/// Which of these lines `fd` is.
pub fn line_of(fd: c_int) -> Option<usize> {
    LINES.iter().position(|line| line.get() == fd)
}

/// Whether the host has written something that the kernel has not read.
pub fn has_input() -> bool {
    LINES.iter().any(|line| sys::is_readable(line.get()))
}

/// Reads the next byte of line `number`, which is `fd`, to `byte`; returns what read(2) does.
///
/// # Safety
/// `byte` must be writable.
pub unsafe fn read_byte(number: usize, fd: c_int, byte: *mut u8) -> isize {
    exclusively(|| {
        // SAFETY: a critical section, and no other reference.
        let block = unsafe { &mut (*BLOCKS.get())[number] };
        if block.given == block.filled {
            // SAFETY: the block is writable for its length.
            let count = unsafe { real::read(fd, block.bytes.as_mut_ptr().cast(), BLOCK_BYTES) };
            if count <= 0 {
                return count;
            }
            (block.given, block.filled) = (0, count as usize);
        }
        // SAFETY: the caller vouches for it.
        unsafe { byte.write(block.bytes[block.given]) };
        block.given += 1;
        1
    })
}

/// Writes all of `count` bytes to the line `fd`, for which it waits until the host has room; returns what write(2) does.
///
/// On the event drive alone, where that takes no time. When the host has room again it tells so at whatever instant that is,
/// and a kernel that idles would not hear of it (`occasions/handlers.rs`): what it had kept would stay until other input.
///
/// # Safety
/// The bytes must be readable.
pub unsafe fn write_all(fd: c_int, bytes: *const u8, count: usize) -> isize {
    let mut written = 0;
    while written < count {
        // SAFETY: the caller vouches for it.
        let more = unsafe { real::write(fd, bytes.add(written).cast(), count - written) };
        match (more, sys::error()) {
            (1.., _) => written += more as usize,
            (_, libc::EAGAIN) => sys::wait_for_room(fd),
            (_, libc::EINTR) => {}
            _ => return if written == 0 { more } else { written as isize },
        }
    }
    count as isize
}
