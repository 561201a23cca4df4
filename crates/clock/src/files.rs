//! The kernel's files, as far as they are not the host's as they are: devices on wires, images of disks, the line to the I/O
//! thread, serial lines.

use core::ffi::{c_char, c_int, c_void, CStr};
use core::ptr::null;

use disk::{Fate, Operation};

use crate::host::{page, real, sys};
use crate::kernel::serial;
use crate::sources::{disks, io_thread, tap};
use crate::time::present;

/// One of the two functions that open a file.
type Open = unsafe fn(*const c_char, c_int, c_int) -> c_int;

unsafe fn open_real(real: Open, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: passed through, with a mode that is ignored where there is none; the path ends with NUL.
    unsafe {
        if let Some(fd) = tap::open_device(CStr::from_ptr(path)) {
            return fd;
        }
        let fd = real(path, flags, mode);
        disks::opened(CStr::from_ptr(path), fd);
        fd
    }
}

/// open(2): the device file of taps is answered here.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: passed on.
    unsafe { open_real(real::open, path, flags, mode) }
}

/// open64(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: passed on.
    unsafe { open_real(real::open64, path, flags, mode) }
}

/// close(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    tap::close_device(fd);
    disks::closed(fd);
    // SAFETY: passed through.
    unsafe { real::close(fd) }
}

/// socketpair(2): one of them is the line to the I/O thread.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int {
    // SAFETY: passed through; on success there are two descriptors.
    unsafe {
        let result = real::socketpair(domain, kind, protocol, fds);
        if result == 0 {
            disks::paired([*fds, *fds.add(1)]);
        }
        result
    }
}

/// read(2): the I/O thread gets a request, the kernel those that are done, or a byte of a serial line.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, count: usize) -> isize {
    if io_thread::runs() && disks::is_thread_end(fd) {
        // SAFETY: the I/O thread has room for more than one address.
        unsafe { buffer.cast::<usize>().write_unaligned(io_thread::next_request()) };
        return size_of::<usize>() as isize;
    }
    if let Some(page) = page::page().filter(|_| disks::is_line(fd)) {
        // SAFETY: the kernel's array of addresses.
        let addresses = unsafe { core::slice::from_raw_parts_mut(buffer.cast(), count / size_of::<usize>()) };
        return match disks::read_done(page, addresses) {
            0 => sys::fail(libc::EAGAIN) as isize,
            done => (done * size_of::<usize>()) as isize,
        };
    }
    if let Some(line) = serial::line_of(fd).filter(|_| count == 1) {
        // SAFETY: the caller has room for one byte.
        return unsafe { serial::read_byte(line, fd, buffer.cast()) };
    }
    // SAFETY: passed through.
    unsafe { real::read(fd, buffer, count) }
}

/// write(2): the kernel asks for something of a disk, or says something on a serial line; what the I/O thread says is known.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, count: usize) -> isize {
    if io_thread::runs() && disks::is_thread_end(fd) {
        return count as isize;
    }
    if let Some(page) = page::page().filter(|_| disks::is_line(fd)) {
        // SAFETY: the kernel's array of addresses.
        disks::submit(page, unsafe { core::slice::from_raw_parts(buffer.cast(), count / size_of::<usize>()) });
        return count as isize;
    }
    if present::is_event() && serial::line_of(fd).is_some() {
        // SAFETY: the caller's buffer.
        return unsafe { serial::write_all(fd, buffer.cast(), count) };
    }
    // SAFETY: passed through.
    unsafe { real::write(fd, buffer, count) }
}

/// Notes what the I/O thread does.
fn note(fd: c_int, operation: Operation, offset: i64, length: usize, failed: bool) {
    if io_thread::runs() {
        io_thread::note(fd, operation, offset, length, failed);
    }
}

/// What becomes of something that the I/O thread does; if that fails, how.
fn fate(fd: c_int, operation: Operation) -> Result<Fate, c_int> {
    if !io_thread::runs() {
        return Ok(Fate::Done);
    }
    match disks::fate(fd, operation) {
        Fate::Failed => Err(libc::EIO),
        Fate::Full => Err(libc::ENOSPC),
        fate => Ok(fate),
    }
}

/// pread64(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn pread64(fd: c_int, buffer: *mut c_void, count: usize, offset: i64) -> isize {
    let fate = match fate(fd, Operation::Read) {
        Ok(fate) => fate,
        Err(error) => {
            note(fd, Operation::Read, offset, count, false);
            return sys::fail(error) as isize;
        }
    };
    // SAFETY: passed through.
    let result = unsafe { real::pread64(fd, buffer, count, offset) };
    if let (Fate::Corrupted(bit), 1..) = (fate, result) {
        let bit = bit % (result as u64 * 8);
        // SAFETY: so many bytes were just read into it.
        unsafe { *buffer.cast::<u8>().add((bit / 8) as usize) ^= 1 << (bit % 8) };
    }
    note(fd, Operation::Read, offset, count, result < 0);
    result
}

/// pwrite64(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn pwrite64(fd: c_int, buffer: *const c_void, count: usize, offset: i64) -> isize {
    if let Err(error) = fate(fd, Operation::Write) {
        note(fd, Operation::Write, offset, count, false);
        return sys::fail(error) as isize;
    }
    let runs = io_thread::runs();
    let result = if runs && disks::loses(fd) {
        count as isize
    } else if runs && !disks::admits_write(fd, offset, count) {
        sys::fail(libc::EIO) as isize
    } else {
        // SAFETY: passed through.
        unsafe { real::pwrite64(fd, buffer, count, offset) }
    };
    note(fd, Operation::Write, offset, count, result < 0);
    result
}

/// fsync(2). What a node has written is in the files of the host, and survives the guest; that it survive the host too would
/// cost each flush of each disk a wait for the host's own.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    if io_thread::runs() {
        io_thread::note(fd, Operation::Flush, 0, 0, false);
        return 0;
    }
    // SAFETY: passed through.
    unsafe { real::fsync(fd) }
}

/// fallocate64(2): the kernel discards sectors.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn fallocate64(fd: c_int, mode: c_int, offset: i64, length: i64) -> c_int {
    if let Err(error) = fate(fd, Operation::Discard) {
        note(fd, Operation::Discard, offset, length as usize, false);
        return sys::fail(error);
    }
    let is_lost = io_thread::runs() && disks::loses(fd);
    // SAFETY: passed through.
    let result = if is_lost { 0 } else { unsafe { real::fallocate64(fd, mode, offset, length) } };
    note(fd, Operation::Discard, offset, length as usize, result < 0);
    result
}

/// signal(2): the I/O thread takes its leave of the kernel's signals, which are ours.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    if io_thread::runs() {
        return libc::SIG_DFL;
    }
    // SAFETY: passed through.
    unsafe { real::signal(number, handler) }
}

/// pthread_sigmask(3): so does one of a kernel that makes it by pthread_create(3).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    let set = if io_thread::runs() { null() } else { set };
    // SAFETY: passed through; without a set it only tells the mask that there is.
    unsafe { real::pthread_sigmask(how, set, old) }
}
