//! The network devices by which a guest is on its wires.
//!
//! The kernel's vector devices (arch/um/drivers/vector_kern.c) can be on a tap, and hand over and take whole segments with
//! virtio-net headers there. The device file of taps is therefore answered here: a descriptor that is asked to be
//! interface `wireL` is an end of wire L. Frames are written and read one at a time (`writev`, `readv`), stamped with the
//! instant of sending, and readable from the instant of arrival on.
//!
//! An **arrival** is a deadline of the clock (`sources.rs`); the descriptor is an eventfd.

use core::ffi::{c_int, c_ulong, c_void, CStr};
use core::sync::atomic::Ordering::Relaxed;

use interrupts::{Count, Id, Readiness, Small, Word};
use requests::NEWS_ETHERTYPE;
use virtual_time::VirtualInstant;
use wire::{Full, Guest, Received, Way, NEVER};

use crate::host::{page, real, sys};
use crate::kernel::masks;
use crate::sources::{guest, Source};
use crate::time::{present, standing};

const DEVICE_FILE: &CStr = c"/dev/net/tun";
const NAME: &[u8] = b"wire";

const ETHERNET_HEADER_BYTES: usize = 14;

/// Descriptors that are looked up, and devices, at most.
const FDS_MAX: usize = 1 << 16;
const DEVICES_MAX: usize = 512;

/// A device of this guest. Its wire is known from TUNSETIFF on.
struct Device {
    fd: Id,
    /// The ways on which it sends and receives; [`UNKNOWN`] until known.
    way_out: Count,
    way_in: Count,
    /// Whether the kernel is to read from it.
    readiness: Readiness,
}

const UNKNOWN: usize = usize::MAX;

/// The devices.
struct Table {
    devices: [Device; DEVICES_MAX],
    count: Count,
    /// The virtual instant, of this clock, of the first arrival of which the kernel does not know.
    arrival_ns: Word,
}

static TABLE: Table = Table {
    devices: [const {
        Device {
            fd: Id::new(-1),
            way_out: Count::new(UNKNOWN),
            way_in: Count::new(UNKNOWN),
            readiness: Readiness::unheard(),
        }
    }; DEVICES_MAX],
    count: Count::new(0),
    arrival_ns: Word::new(NEVER),
};

/// For each descriptor, the number of its device, plus 1; 0: none. It begins as zeros, so that it takes no room in the
/// library's file.
static DEVICE_OF_FD: [Small; FDS_MAX] = [const { Small::new(0) }; FDS_MAX];

fn devices() -> &'static [Device] {
    &TABLE.devices[..TABLE.count.get()]
}

/// The device behind a descriptor.
fn device(fd: c_int) -> Option<&'static Device> {
    let number = DEVICE_OF_FD.get(usize::try_from(fd).ok()?)?.get();
    (number > 0).then(|| &TABLE.devices[usize::from(number) - 1])
}

/// Looks into the rings. What arrives where no device is there to receive it is lost, as on an unplugged cable; not before,
/// since a device may be there by then.
pub fn look_for_arrivals(guest: &Guest) {
    let wire = guest.wire();
    let now_ns = page::page().map_or(0, |page| guest::run_ns(present::latest(page)));
    let mut first_ns = NEVER;
    for number in guest.ways_in() {
        let way = wire.way(number);
        match receiver(number) {
            Some(device) if device.readiness.awaits() => {
                first_ns = wire.first_arrival_ns(way).unwrap_or(NEVER).min(first_ns);
            }
            Some(_) => {}
            None => first_ns = discard(guest, way, now_ns).min(first_ns),
        }
    }
    TABLE.arrival_ns.set(if first_ns == NEVER { NEVER } else { guest::own_ns(first_ns) });
}

/// The device by which the kernel listens to a way.
fn receiver(number: usize) -> Option<&'static Device> {
    devices().iter().find(|device| device.way_in.get() == number && device.readiness.is_heard())
}

/// Whether what arrives on a way is seen to at that instant. Where the kernel knows already that there is something, it is not:
/// it reads that when it gets to it.
pub fn reads(number: usize) -> bool {
    receiver(number).map_or(true, |device| device.readiness.awaits())
}

/// Takes out of a ring what has arrived by `now_ns`; when the next frame does.
fn discard(guest: &Guest, way: &Way, now_ns: u64) -> u64 {
    // SAFETY: nothing is written; this guest is the receiver.
    while unsafe { guest.wire().receive(way, now_ns, &[]) } != Received::Nothing {}
    guest.wire().first_arrival_ns(way).unwrap_or(NEVER)
}

/// The devices as a source of deadlines: frames arrive.
pub struct Taps;

impl Source for Taps {
    fn next_ns(&self) -> u64 {
        TABLE.arrival_ns.get()
    }

    fn report(&self, now: VirtualInstant) -> bool {
        let Some(guest) = guest::taking_part().filter(|_| now.as_ns() >= self.next_ns()) else { return false };
        let now_ns = guest::run_ns(now);
        let mut is_ready = false;
        for device in devices().iter().filter(|device| device.readiness.awaits()) {
            let way = guest.wire().way(device.way_in.get());
            if guest.wire().first_arrival_ns(way).is_some_and(|arrival_ns| arrival_ns <= now_ns) {
                device.readiness.report();
                is_ready = true;
            }
        }
        look_for_arrivals(guest);
        is_ready
    }

    fn take_ready(&self) -> Option<u64> {
        devices().iter().find_map(|device| device.readiness.take())
    }

    fn take_back_ready(&self) {
        let Some(guest) = guest::taking_part() else { return };
        for device in devices() {
            device.readiness.take_back();
        }
        look_for_arrivals(guest);
    }

    fn listen(&self, fd: c_int, token: Option<u64>) -> bool {
        let Some(device) = device(fd) else { return false };
        device.readiness.listen(token);
        if let Some(guest) = guest::taking_part() {
            look_for_arrivals(guest);
        }
        true
    }
}

/// A descriptor that becomes the end of a wire, if `path` is the device file of taps.
pub fn open_device(path: &CStr) -> Option<c_int> {
    if page::page().is_none() || guest::guest().is_none() || path != DEVICE_FILE {
        return None;
    }
    // SAFETY: plain system call.
    let fd = unsafe { libc::eventfd(0, 0) };
    let free = devices().iter().position(|device| device.fd.get() < 0);
    let number = free.unwrap_or_else(|| TABLE.count.get());
    if fd < 0 || fd as usize >= FDS_MAX || number >= DEVICES_MAX {
        crate::die(b"dilaton clock: a guest has too many wires, or too many files open for another\n");
    }
    TABLE.count.set(TABLE.count.get().max(number + 1));
    TABLE.devices[number].fd.set(fd);
    DEVICE_OF_FD[fd as usize].set(number as u16 + 1);
    Some(fd)
}

/// The kernel closes a descriptor, which may be a device.
pub fn close_device(fd: c_int) {
    if let Some(device) = device(fd) {
        DEVICE_OF_FD[fd as usize].set(0);
        device.readiness.listen(None);
        device.way_in.set(UNKNOWN);
        device.way_out.set(UNKNOWN);
        device.fd.set(-1);
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
    device.way_out.set(way_out);
    device.way_in.set(way_in);
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
    let number = device.way_out.get();
    if number == UNKNOWN {
        return sys::fail(libc::EBADF) as isize;
    }
    // In one section: a handler in between would tell the others a later instant, and they would go beyond this frame.
    let sent = masks::exclusively(|| {
        let now_ns = guest::run_ns(standing::show(present::look(page)));
        // SAFETY: the kernel's parts; the way is this guest's to send on.
        unsafe { guest.send(guest.wire().way(number), now_ns, parts) }
    });
    if let Err(Full) = sent {
        guest.wire().header().full_way.store(number as u64 + 1, Relaxed);
        crate::die(b"dilaton clock: a wire between guests is full\n");
    }
    parts.iter().map(|part| part.iov_len as isize).sum()
}

/// How long the virtio-net header is, which comes first where there are some parts, and the part behind it.
fn header_and_frame(parts: &[libc::iovec]) -> (usize, Option<&libc::iovec>) {
    match parts {
        [header, frame, ..] => (header.iov_len, Some(frame)),
        [..] => (0, parts.first()),
    }
}

/// Whether agents tell each other something by the frame that begins in this part.
///
/// # Safety
/// A frame was written there.
unsafe fn is_news(part: &libc::iovec) -> bool {
    const TYPE_AT: usize = ETHERNET_HEADER_BYTES - 2;
    // SAFETY: the caller vouches for it, and the part has room for the frame's header.
    part.iov_len >= ETHERNET_HEADER_BYTES
        && unsafe { part.iov_base.byte_add(TYPE_AT).cast::<[u8; 2]>().read() } == NEWS_ETHERTYPE.to_be_bytes()
}

/// readv(2): receives a frame that has arrived.
///
/// # Safety
/// As of the libc function.
#[no_mangle]
pub unsafe extern "C" fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let (Some(device), Some(page)) = (device(fd), page::page()) else {
        // SAFETY: passed through.
        return unsafe { real::readv(fd, parts, count) };
    };
    let number = device.way_in.get();
    if number == UNKNOWN {
        return sys::fail(libc::EBADF) as isize;
    }
    let Some(guest) = guest::taking_part() else {
        device.readiness.found_empty();
        return sys::fail(libc::EAGAIN) as isize;
    };
    let now_ns = guest::run_ns(standing::show(present::look(page)));
    // SAFETY: the kernel's parts.
    let parts = unsafe { core::slice::from_raw_parts(parts, count as usize) };
    let way = guest.wire().way(number);
    let (header_bytes, frame) = header_and_frame(parts);
    let shortest = header_bytes + ETHERNET_HEADER_BYTES;
    let received = loop {
        // SAFETY: the kernel's parts; the way is this guest's to receive on.
        match unsafe { guest.wire().receive(way, now_ns, parts) } {
            Received::TooLong => {}
            // No kernel sends such a frame, and the driver takes it for granted that none comes.
            Received::Frame { length, .. } if length < shortest => wire::add(&way.frames_disordered, 1),
            received => break received,
        }
    };
    match received {
        Received::Frame { length, arrival_ns } => {
            // SAFETY: the frame has just been written there.
            if !frame.is_some_and(|part| unsafe { is_news(part) }) {
                page.record_frame_lateness(now_ns - arrival_ns);
            }
            length as isize
        }
        Received::TooLong | Received::Nothing => {
            // A handler in between may see to what has arrived since, and know of more than is found here.
            masks::exclusively(|| {
                device.readiness.found_empty();
                look_for_arrivals(guest);
            });
            sys::fail(libc::EAGAIN) as isize
        }
    }
}
