//! The network devices by which a guest is on its wires.
//!
//! The kernel's vector devices (arch/um/drivers/vector_kern.c) can be on a tap, and hand over and take whole segments with
//! virtio-net headers there. The device file of taps is therefore answered here: a descriptor that is asked to be
//! interface `wireL` is an end of wire L. Frames are written and read one at a time (`writev`, `readv`), stamped with the
//! instant of sending, and readable from the instant of arrival on.
//!
//! An **arrival** is a deadline of the clock (`input.rs`); the descriptor is an eventfd.

use core::ffi::{c_int, c_ulong, c_void, CStr};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};

use virtual_time::VirtualInstant;
use wire::{Full, Guest, Received, Way, NEVER};

use crate::{guest, page, present, real, standing, sys};

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
    ARRIVAL_NS.store(if first_ns == NEVER { NEVER } else { guest::own_ns(first_ns) }, Relaxed);
}

/// Takes out of a ring what has arrived, or will before anything else happens.
fn discard(guest: &Guest, way: &Way) {
    let last_ns = guest.horizon_ns().saturating_sub(1);
    // SAFETY: nothing is written; this guest is the receiver.
    while unsafe { guest.wire().receive(way, last_ns, &[]) } != Received::Nothing {}
}

/// Marks the devices for which something has arrived by `now`, of which the kernel did not know; whether there are any. In a
/// critical section.
pub fn mark_ready(now: VirtualInstant) -> bool {
    let Some(guest) = guest::guest().filter(|_| now.as_ns() >= arrival_ns()) else { return false };
    let now_ns = guest::run_ns(now);
    let mut is_ready = false;
    for device in devices().iter().filter(|device| device.listens.load(Relaxed) && !device.reported.load(Relaxed)) {
        let way = guest.wire().way(device.way_in.load(Relaxed));
        if guest.wire().first_arrival_ns(way).is_some_and(|arrival_ns| arrival_ns <= now_ns) {
            device.reported.store(true, Relaxed);
            device.ready.store(true, Relaxed);
            is_ready = true;
        }
    }
    look_for_arrivals(guest);
    is_ready
}

/// What the kernel's epoll has to say of one of the devices that are ready.
pub fn take_ready() -> Option<u64> {
    let device = devices().iter().find(|device| device.ready.load(Relaxed))?;
    device.ready.store(false, Relaxed);
    Some(device.token.load(Relaxed))
}

/// Devices of which the kernel's epoll has not said that they are ready are to be reported again. In a critical section.
pub fn take_back_ready() {
    let Some(guest) = guest::guest() else { return };
    for device in devices().iter().filter(|device| device.ready.load(Relaxed)) {
        device.ready.store(false, Relaxed);
        device.reported.store(false, Relaxed);
    }
    look_for_arrivals(guest);
}

/// The kernel wants to know by `token` when a device is ready, or no longer.
pub fn listen(fd: c_int, token: Option<u64>) {
    let (Some(device), Some(guest)) = (device(fd), guest::guest()) else { return };
    device.listens.store(token.is_some(), Relaxed);
    if let Some(token) = token {
        device.token.store(token, Relaxed);
        device.reported.store(false, Relaxed);
    }
    look_for_arrivals(guest);
}

/// Whether a descriptor is the end of a wire.
pub fn is_device(fd: c_int) -> bool {
    device(fd).is_some()
}

/// A descriptor that becomes the end of a wire, if `path` is the device file of taps.
pub fn open_device(path: &CStr) -> Option<c_int> {
    if page::page().is_none() || guest::guest().is_none() || path != DEVICE_FILE {
        return None;
    }
    // SAFETY: plain system call.
    let fd = unsafe { libc::eventfd(0, 0) };
    let free = devices().iter().position(|device| device.fd.load(Relaxed) < 0);
    let number = free.unwrap_or_else(|| DEVICES_COUNT.fetch_add(1, Relaxed));
    if fd < 0 || fd as usize >= FDS_MAX || number >= DEVICES_MAX {
        crate::die(b"dilaton clock: a guest has too many wires, or too many files open for another\n");
    }
    DEVICES[number].fd.store(fd, Relaxed);
    DEVICE_OF_FD[fd as usize].store(number as u16 + 1, Relaxed);
    Some(fd)
}

/// The kernel closes a descriptor, which may be a device.
pub fn close_device(fd: c_int) {
    if let Some(device) = device(fd) {
        DEVICE_OF_FD[fd as usize].store(0, Relaxed);
        device.listens.store(false, Relaxed);
        device.reported.store(false, Relaxed);
        device.way_in.store(UNKNOWN, Relaxed);
        device.way_out.store(UNKNOWN, Relaxed);
        device.fd.store(-1, Relaxed);
    }
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

/// ioctl(2): what the kernel asks of a tap.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let (Some(device), Some(guest)) = (device(fd), guest::guest()) else {
        // SAFETY: passed through.
        return unsafe { real::ioctl(fd, request, argument) };
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
    let (Some(device), Some(guest), Some(page)) = (device(fd), guest::guest(), page::page()) else {
        // SAFETY: passed through.
        return unsafe { real::writev(fd, parts, count) };
    };
    // SAFETY: the kernel's parts.
    let parts = unsafe { core::slice::from_raw_parts(parts, count as usize) };
    let number = device.way_out.load(Relaxed);
    if number == UNKNOWN {
        return sys::fail(libc::EBADF) as isize;
    }
    let now_ns = guest::run_ns(standing::show(present::look(page)));
    // SAFETY: the kernel's parts; the way is this guest's to send on.
    if let Err(Full) = unsafe { guest.send(guest.wire().way(number), now_ns, parts) } {
        guest.wire().header().full_way.store(number as u64 + 1, Relaxed);
        crate::die(b"dilaton clock: a wire between guests is full\n");
    }
    parts.iter().map(|part| part.iov_len as isize).sum()
}

/// readv(2): receives a frame that has arrived.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let (Some(device), Some(guest), Some(page)) = (device(fd), guest::guest(), page::page()) else {
        // SAFETY: passed through.
        return unsafe { real::readv(fd, parts, count) };
    };
    let number = device.way_in.load(Relaxed);
    if number == UNKNOWN {
        return sys::fail(libc::EBADF) as isize;
    }
    let now_ns = guest::run_ns(standing::show(present::look(page)));
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
