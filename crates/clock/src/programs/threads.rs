//! Threads of the kernel's, where it makes them by pthread_create(3). That of its disks is none (`sources/io_thread.rs`).

use core::ffi::{c_int, c_void};

use crate::host::real::{self, Routine};
use crate::host::{own_counter, page};
use crate::sources::disks;

/// pthread_create(3), by which Linux 7 makes its helpers.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    entry: Routine,
    argument: *mut c_void,
) -> c_int {
    if page::page().is_some() {
        if disks::awaits_thread() {
            disks::adopt_thread(entry as *const (), argument);
            // SAFETY: the caller's word.
            unsafe { *thread = NO_THREAD };
            return 0;
        }
        // Whether it may read the host's counter it has from the thread that makes it.
        own_counter::take_back();
    }
    // SAFETY: passed through.
    unsafe { real::pthread_create(thread, attributes, entry, argument) }
}

/// A thread that is none: the address of one is a multiple of a word's size.
const NO_THREAD: libc::pthread_t = 1;

/// pthread_cancel(3): a kernel that ends, ends its threads.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn pthread_cancel(thread: libc::pthread_t) -> c_int {
    if thread == NO_THREAD {
        return 0;
    }
    // SAFETY: passed through.
    unsafe { real::pthread_cancel(thread) }
}

/// pthread_join(3): and waits for them.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    if thread == NO_THREAD {
        return 0;
    }
    // SAFETY: passed through.
    unsafe { real::pthread_join(thread, result) }
}
