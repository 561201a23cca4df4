//! The network devices by which a guest is on its wires.
//!
//! The kernel's vector devices (arch/um/drivers/vector_kern.c) can be on a tap, and hand over and take whole segments with
//! virtio-net headers there. The device file of taps is therefore answered here: a descriptor that is asked to be
//! interface `wireL` is an end of wire L. Frames are written and read one at a time (`writev`, `readv`), stamped with the
//! instant of sending, and readable from the instant of arrival on.
//!
//! **Arrivals** are deadlines of the clock as timers are. At one, the kernel's SIGIO handler is called, which asks its epoll
//! for what is ready, and gets the answer from here; the descriptor, an eventfd, is never ready by itself, so no signal
//! comes from the host. A device that was reported is not reported again until the kernel has found it empty.

use core::ffi::{c_char, c_int, c_ulong, c_void, CStr};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};

use wire::{Full, Guest, Received, Way, NEVER};

use crate::page::ClockPage;
use crate::{bound, keeper, sys};

const DEVICE_FILE: &CStr = c"/dev/net/tun";
const NAME: &[u8] = b"wire";

/// Descriptors that are looked up, and devices, at most.
const FDS_MAX: usize = 1 << 16;
const DEVICES_MAX: usize = 512;

/// A device of this guest. Its wire is known from TUNSETIFF on.
struct Device {
    fd: AtomicI32,
    /// The ways on which it sends and receives; `usize::MAX` until known.
    way_out: AtomicUsize,
    way_in: AtomicUsize,
    /// What the kernel's epoll is to say when it is ready.
    token: AtomicU64,
    listens: AtomicBool,
    /// It has been reported, and the kernel has not found it empty since.
    reported: AtomicBool,
    /// The kernel's epoll is about to report it.
    ready: AtomicBool,
}

const UNKNOWN: usize = usize::MAX;

static DEVICES: [Device; DEVICES_MAX] = [const {
    Device {
        fd: AtomicI32::new(-1),
        way_out: AtomicUsize::new(UNKNOWN),
        way_in: AtomicUsize::new(UNKNOWN),
        token: AtomicU64::new(0),
        listens: AtomicBool::new(false),
        reported: AtomicBool::new(false),
        ready: AtomicBool::new(false),
    }
}; DEVICES_MAX];
static DEVICES_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Of each descriptor the number of its device, plus 1; 0: none.
static DEVICE_OF_FD: [AtomicU16; FDS_MAX] = [const { AtomicU16::new(0) }; FDS_MAX];

/// The virtual instant, of this clock, of the first arrival of which the kernel does not know.
static ARRIVAL_NS: AtomicU64 = AtomicU64::new(NEVER);
/// The kernel's SIGIO handler has been called from here, and is to find nothing of the host's.
static REPORTED: AtomicBool = AtomicBool::new(false);
/// It has been called for the host's sake since it asked the host last.
static HOST_EXPECTED: AtomicBool = AtomicBool::new(false);

fn devices() -> &'static [Device] {
    &DEVICES[..DEVICES_COUNT.load(Relaxed)]
}

/// The device behind a descriptor.
fn device(fd: c_int) -> Option<&'static Device> {
    let number = DEVICE_OF_FD.get(usize::try_from(fd).ok()?)?.load(Relaxed);
    (number > 0).then(|| &DEVICES[usize::from(number) - 1])
}

/// When the first frame arrives of which the kernel does not know yet, on this guest's clock.
pub fn arrival_ns() -> u64 {
    ARRIVAL_NS.load(Relaxed)
}

/// Looks into the rings. What has arrived where no device is there to receive it is lost, as on an unplugged cable.
pub fn look_for_arrivals(guest: &Guest) {
    let wire = guest.wire();
    let mut first_ns = NEVER;
    for number in guest.ways_in() {
        let way = wire.way(number);
        let receiver =
            devices().iter().find(|device| device.way_in.load(Relaxed) == number && device.listens.load(Relaxed));
        match receiver {
            Some(device) if device.reported.load(Relaxed) => {}
            Some(_) => first_ns = wire.first_arrival_ns(way).unwrap_or(NEVER).min(first_ns),
            None => discard(guest, way),
        }
    }
    ARRIVAL_NS.store(if first_ns == NEVER { NEVER } else { bound::own_ns(first_ns) }, Relaxed);
}

/// Takes out of a ring what has arrived, or will before anything else happens.
fn discard(guest: &Guest, way: &Way) {
    let last_ns = guest.horizon_ns().saturating_sub(1);
    // SAFETY: nothing is written; this guest is the receiver.
    while unsafe { guest.wire().receive(way, last_ns, &[]) } != Received::Nothing {}
}

/// Whether something has arrived of which the kernel did not know; it is told by `tell`, which calls its SIGIO handler. In a
/// critical section.
pub fn report(page: &ClockPage, tell: impl FnOnce()) -> bool {
    let Some(guest) = bound::guest() else { return false };
    let now = keeper::look(page);
    if now.as_ns() < arrival_ns() {
        return false;
    }
    page.record_lateness(now.as_ns() - arrival_ns());
    let now_ns = bound::run_ns(now);
    for device in devices().iter().filter(|device| device.listens.load(Relaxed) && !device.reported.load(Relaxed)) {
        let way = guest.wire().way(device.way_in.load(Relaxed));
        if guest.wire().first_arrival_ns(way).is_some_and(|arrival_ns| arrival_ns <= now_ns) {
            device.reported.store(true, Relaxed);
            device.ready.store(true, Relaxed);
        }
    }
    look_for_arrivals(guest);
    REPORTED.store(true, Relaxed);
    tell();
    true
}

/// The kernel's SIGIO handler is about to be called for something of the host's.
pub fn expect_host() {
    HOST_EXPECTED.store(true, Relaxed);
}

/// A descriptor that becomes the end of a wire.
fn open_device() -> c_int {
    // SAFETY: plain system call.
    let fd = unsafe { libc::eventfd(0, 0) };
    let free = devices().iter().position(|device| device.fd.load(Relaxed) < 0);
    let number = free.unwrap_or_else(|| DEVICES_COUNT.fetch_add(1, Relaxed));
    if fd < 0 || fd as usize >= FDS_MAX || number >= DEVICES_MAX {
        sys::die(b"dilaton clock: a guest has too many wires, or too many files open for another\n");
    }
    DEVICES[number].fd.store(fd, Relaxed);
    DEVICE_OF_FD[fd as usize].store(number as u16 + 1, Relaxed);
    fd
}

/// TUNSETIFF: which wire a device is on.
fn connect(device: &Device, guest: &Guest, name: &[u8]) -> bool {
    let digits = name.strip_prefix(NAME).map(|rest| rest.split(|&byte| byte == 0).next().unwrap_or(&[]));
    let number = digits.and_then(|digits| core::str::from_utf8(digits).ok()).and_then(|text| text.parse().ok());
    let Some(number) = number.filter(|&number: &usize| 2 * number + 1 < guest.wire().ways()) else { return false };
    let (there, back) = (2 * number, 2 * number + 1);
    let is_end = |way: usize| guest.wire().way(way).sender.load(Relaxed) == guest.number() as u64;
    let (way_out, way_in) = match (is_end(there), is_end(back)) {
        (true, _) => (there, back),
        (_, true) => (back, there),
        _ => return false,
    };
    device.way_out.store(way_out, Relaxed);
    device.way_in.store(way_in, Relaxed);
    true
}

unsafe fn open_real(real: &sys::Real, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: passed through, with a mode that is ignored where there is none; the path ends with NUL.
    unsafe {
        if keeper::page().is_some() && bound::guest().is_some() && CStr::from_ptr(path) == DEVICE_FILE {
            return open_device();
        }
        let real: unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int = real.get();
        real(path, flags, mode)
    }
}

/// open(2): the device file of taps is answered here.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: passed on.
    unsafe { open_real(&sys::OPEN, path, flags, mode) }
}

/// open64(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: passed on.
    unsafe { open_real(&sys::OPEN64, path, flags, mode) }
}

/// close(2).
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if let Some(device) = device(fd) {
        DEVICE_OF_FD[fd as usize].store(0, Relaxed);
        device.listens.store(false, Relaxed);
        device.reported.store(false, Relaxed);
        device.way_in.store(UNKNOWN, Relaxed);
        device.way_out.store(UNKNOWN, Relaxed);
        device.fd.store(-1, Relaxed);
    }
    // SAFETY: passed through.
    unsafe {
        let real: unsafe extern "C" fn(c_int) -> c_int = sys::CLOSE.get();
        real(fd)
    }
}

/// ioctl(2): what the kernel asks of a tap.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let (Some(device), Some(guest)) = (device(fd), bound::guest()) else {
        // SAFETY: passed through.
        return unsafe {
            let real: unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int = sys::IOCTL.get();
            real(fd, request, argument)
        };
    };
    match request {
        libc::TUNSETIFF => {
            // SAFETY: the argument is a struct ifreq, which begins with the name.
            let name = unsafe { core::slice::from_raw_parts(argument.cast::<u8>(), libc::IFNAMSIZ) };
            if !connect(device, guest, name) {
                return sys::fail(libc::ENODEV);
            }
        }
        // SAFETY: the argument is an unsigned integer.
        libc::TUNGETFEATURES => unsafe { *argument.cast::<u32>() = libc::IFF_VNET_HDR as u32 },
        libc::TUNSETOFFLOAD | libc::TUNSETVNETHDRSZ => {}
        _ => return sys::fail(libc::EINVAL),
    }
    0
}

/// writev(2): sends a frame.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let (Some(device), Some(guest), Some(page)) = (device(fd), bound::guest(), keeper::page()) else {
        // SAFETY: passed through.
        return unsafe {
            let real: unsafe extern "C" fn(c_int, *const libc::iovec, c_int) -> isize = sys::WRITEV.get();
            real(fd, parts, count)
        };
    };
    // SAFETY: the kernel's parts.
    let parts = unsafe { core::slice::from_raw_parts(parts, count as usize) };
    let number = device.way_out.load(Relaxed);
    if number == UNKNOWN {
        return sys::fail(libc::EBADF) as isize;
    }
    let now_ns = bound::run_ns(keeper::look(page));
    // SAFETY: the kernel's parts; the way is this guest's to send on.
    if let Err(Full) = unsafe { guest.send(guest.wire().way(number), now_ns, parts) } {
        guest.wire().header().full_way.store(number as u64 + 1, Relaxed);
        sys::die(b"dilaton clock: a wire between guests is full\n");
    }
    parts.iter().map(|part| part.iov_len as isize).sum()
}

/// readv(2): receives a frame that has arrived.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let (Some(device), Some(guest), Some(page)) = (device(fd), bound::guest(), keeper::page()) else {
        // SAFETY: passed through.
        return unsafe {
            let real: unsafe extern "C" fn(c_int, *const libc::iovec, c_int) -> isize = sys::READV.get();
            real(fd, parts, count)
        };
    };
    let number = device.way_in.load(Relaxed);
    if number == UNKNOWN {
        return sys::fail(libc::EBADF) as isize;
    }
    let now_ns = bound::run_ns(keeper::look(page));
    let received = loop {
        // SAFETY: the kernel's parts; the way is this guest's to receive on.
        let received = unsafe {
            let parts = core::slice::from_raw_parts(parts, count as usize);
            guest.wire().receive(guest.wire().way(number), now_ns, parts)
        };
        if received != Received::TooLong {
            break received;
        }
    };
    match received {
        Received::Frame(length) => length as isize,
        Received::TooLong | Received::Nothing => {
            device.reported.store(false, Relaxed);
            look_for_arrivals(guest);
            sys::fail(libc::EAGAIN) as isize
        }
    }
}

/// epoll_ctl(2): what to say when a device is ready.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    let (Some(device), Some(guest)) = (device(fd), bound::guest()) else {
        // SAFETY: passed through.
        return unsafe {
            let real: unsafe extern "C" fn(c_int, c_int, c_int, *mut libc::epoll_event) -> c_int = sys::EPOLL_CTL.get();
            real(epoll, operation, fd, event)
        };
    };
    if operation == libc::EPOLL_CTL_DEL {
        device.listens.store(false, Relaxed);
    } else {
        // SAFETY: the caller's structure, which may be unaligned.
        device.token.store(unsafe { (&raw const (*event).u64).read_unaligned() }, Relaxed);
        device.reported.store(false, Relaxed);
        device.listens.store(true, Relaxed);
    }
    look_for_arrivals(guest);
    0
}

/// epoll_wait(2): says which devices are ready, when it was we who called the kernel's handler.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let mut count = 0;
    for device in devices().iter().filter(|device| device.ready.load(Relaxed)).take(most as usize) {
        device.ready.store(false, Relaxed);
        let event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: device.token.load(Relaxed) };
        // SAFETY: the caller has room for `most` events.
        unsafe { events.add(count).write_unaligned(event) };
        count += 1;
    }
    // The handler may be called later, and for both, when the kernel has only noted that it was called; and one call may
    // find what was reported for another. On the event drive the host must not be asked then: it may have something.
    let asks_host = || {
        let reported = REPORTED.swap(false, Relaxed);
        HOST_EXPECTED.swap(false, Relaxed) || !(reported || keeper::is_event() && bound::guest().is_some())
    };
    if count == 0 && asks_host() {
        // SAFETY: passed through.
        return unsafe {
            let real: unsafe extern "C" fn(c_int, *mut libc::epoll_event, c_int, c_int) -> c_int =
                sys::EPOLL_WAIT.get();
            real(epoll, events, most, timeout)
        };
    }
    count as c_int
}
