//! The memory of a stub that is not traced.

use core::ffi::{c_int, c_long};
use core::mem::size_of;

use crate::host::real;

/// A word at this address, whatever the program's own rights there; `None` where it has none.
///
/// process_vm_readv(2) heeds the rights, and there is code that may run and not be read (`programs/counter.rs`). The file of the
/// memory does not, on most hosts; it takes three calls.
pub fn word_at(pid: c_int, address: u64) -> Option<u64> {
    let mut word = 0_u64;
    let ours = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: size_of::<u64>() };
    let its = libc::iovec { iov_base: address as *mut _, iov_len: size_of::<u64>() };
    // SAFETY: the word is writable, and the other process is only read.
    let read = unsafe {
        libc::syscall(libc::SYS_process_vm_readv, pid, &raw const ours, 1_usize, &raw const its, 1_usize, 0_usize)
    };
    if read == size_of::<u64>() as c_long {
        return Some(word);
    }
    by_file(pid, address)
}

fn by_file(pid: c_int, address: u64) -> Option<u64> {
    let path = path(pid);
    let mut word = 0_u64;
    // SAFETY: the path ends with NUL, and the word is writable.
    unsafe {
        let fd = real::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC, 0);
        if fd < 0 {
            return None;
        }
        let read = real::pread64(fd, (&raw mut word).cast(), size_of::<u64>(), address as i64);
        real::close(fd);
        (read == size_of::<u64>() as isize).then_some(word)
    }
}

/// `/proc/PID/mem`, with a NUL behind it.
fn path(pid: c_int) -> [u8; 24] {
    let mut path = [0; 24];
    let mut length = 0;
    let mut add = |byte| {
        path[length] = byte;
        length += 1;
    };
    b"/proc/".iter().for_each(|&byte| add(byte));
    let mut divisor = 1_000_000_000;
    while divisor > 0 {
        if pid >= divisor {
            add(b'0' + (pid / divisor % 10) as u8);
        }
        divisor /= 10;
    }
    b"/mem".iter().for_each(|&byte| add(byte));
    path
}
