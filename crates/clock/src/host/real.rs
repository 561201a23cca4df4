//! The functions of libc behind ours: the real ones, by name and with their types.
//!
//! They are looked up when the library is loaded, so that none is missing later, and no look-up happens in a handler.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void, CStr};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function that a child begins with, by clone(2).
pub type Entry = extern "C" fn(*mut c_void) -> c_int;

/// A thread's function, by pthread_create(3). As an [`Entry`] it leaves more than that looks at.
pub type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

/// Where a function is.
struct Place {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Place {
    const fn of(name: &'static str) -> Self {
        match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Self { name, address: AtomicPtr::new(null_mut()) },
            Err(_) => panic!("the name of a function ends with NUL"),
        }
    }

    fn address(&self) -> *mut c_void {
        let address = self.address.load(Relaxed);
        if !address.is_null() {
            return address;
        }
        // Called by another library's constructor, before ours ran.
        self.look_up()
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        // SAFETY: the name is NUL-terminated.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if address.is_null() {
            crate::die(b"dilaton clock: libc lacks a function that the clock stands in front of\n");
        }
        self.address.store(address, Relaxed);
        address
    }
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        struct Places {
            $($name: Place,)*
        }

        static PLACES: Places = Places {
            $($name: Place::of(concat!(stringify!($name), "\0")),)*
        };

        /// Looks up all of them.
        pub fn look_up() {
            $(PLACES.$name.look_up();)*
        }

        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As of the libc function.
            pub unsafe fn $name($($argument: $type),*) -> $result {
                // SAFETY: it is the function of that name, which has this type.
                unsafe {
                    let real: unsafe extern "C" fn($($type),*) -> $result = transmute(PLACES.$name.address());
                    real($($argument),*)
                }
            }
        )*
    };
}

functions! {
    fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int;
    fn gettimeofday(time: *mut libc::timeval, zone: *mut c_void) -> c_int;
    fn timer_create(clock: libc::clockid_t, event: *mut libc::sigevent, timer: *mut libc::timer_t) -> c_int;
    fn timer_settime(
        timer: libc::timer_t,
        flags: c_int,
        new: *const libc::itimerspec,
        old: *mut libc::itimerspec
    ) -> c_int;
    fn timer_gettime(timer: libc::timer_t, setting: *mut libc::itimerspec) -> c_int;
    fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
    fn sigprocmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int;
    fn sigsuspend(mask: *const libc::sigset_t) -> c_int;
    fn signalfd(fd: c_int, mask: *const libc::sigset_t, flags: c_int) -> c_int;
    fn poll(asked: *mut libc::pollfd, count: libc::nfds_t, timeout_ms: c_int) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize;

    fn ptrace(request: c_uint, pid: c_int, address: *mut c_void, data: *mut c_void) -> c_long;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn syscall(
        number: c_long,
        first: usize,
        second: usize,
        third: usize,
        fourth: usize,
        fifth: usize,
        sixth: usize
    ) -> c_long;
    fn fork() -> libc::pid_t;
    fn clone(
        entry: Entry,
        stack: *mut c_void,
        flags: c_int,
        argument: *mut c_void,
        parent_tid: *mut c_void,
        tls: *mut c_void,
        child_tid: *mut c_void
    ) -> c_int;
    fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        entry: Routine,
        argument: *mut c_void
    ) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int;
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    fn pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int;

    fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int;
    fn epoll_wait(epoll: c_int, events: *mut libc::epoll_event, most: c_int, timeout: c_int) -> c_int;
    fn read(fd: c_int, buffer: *mut c_void, count: usize) -> isize;
    fn write(fd: c_int, buffer: *const c_void, count: usize) -> isize;
    fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize;
    fn writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize;
    fn pread64(fd: c_int, buffer: *mut c_void, count: usize, offset: i64) -> isize;
    fn pwrite64(fd: c_int, buffer: *const c_void, count: usize, offset: i64) -> isize;
    fn fsync(fd: c_int) -> c_int;
    fn fallocate64(fd: c_int, mode: c_int, offset: i64, length: i64) -> c_int;
}
