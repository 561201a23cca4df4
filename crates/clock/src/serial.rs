//! The serial lines of the kernel's, read off the host a block at a time.
//!
//! The kernel's driver (arch/um/drivers/chan_kern.c) reads one byte in a call until there is none left, and each such call
//! would be one of the host: half a microsecond for every byte of a program's input. Here a call of the host takes as
//! many bytes as the line may have under way, and the kernel gets them one by one from memory. It asks until it hears that
//! there are no more, so nothing stays here of which it does not know.

use core::ffi::c_int;

use crate::masks::{exclusively, Exclusive};
use crate::{real, rest};

/// As much as the host ever has under way (`streams.rs` of the agent).
const BLOCK_BYTES: usize = 4096;

struct Block {
    bytes: [u8; BLOCK_BYTES],
    given: usize,
    filled: usize,
}

static BLOCKS: Exclusive<[Block; rest::LINES_COUNT]> =
    Exclusive::new([const { Block { bytes: [0; BLOCK_BYTES], given: 0, filled: 0 } }; rest::LINES_COUNT]);

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
