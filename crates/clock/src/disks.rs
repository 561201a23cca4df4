//! The disks of a guest: block devices of the kernel whose requests are done at the virtual instants that their models say.
//!
//! The host hands over, for each, an open image and a description (crates/disk); the kernel opens image N as
//! `/proc/self/fd/N`. Data are moved when the kernel asks for it (`io_thread.rs`), on no time of the guest's: a disk has its
//! own way to memory. The end of a request is a **deadline** of the clock, as a timer's or an arrival: idle time is jumped
//! over to it, and it interrupts what runs. Then the kernel's SIGIO handler is called, finds the line of its I/O thread
//! ready, and reads from it which requests are done.

use core::ffi::{c_int, CStr};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use disk::Disk;
use virtual_time::VirtualInstant;
use wire::NEVER;

use crate::masks::{exclusively, Exclusive};
use crate::page::ClockPage;
use crate::real::Entry;
use crate::{aside, io_thread, present, standing, sys};

/// The environment variable by which the host hands the disks over: for each the words `image=DESCRIPTOR` and its
/// description, ended by a semicolon.
const VARIABLE: &CStr = c"DILATON_DISKS";

/// The kernel's driver knows no more (MAX_DEV).
const DISKS_MAX: usize = 16;

static DISKS: Exclusive<[Option<Disk>; DISKS_MAX]> = Exclusive::new([const { None }; DISKS_MAX]);
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Of each disk the descriptor that the host handed over, and that by which the kernel has opened it; -1: none.
static IMAGES: [AtomicI32; DISKS_MAX] = [const { AtomicI32::new(-1) }; DISKS_MAX];
static OPENED: [AtomicI32; DISKS_MAX] = [const { AtomicI32::new(-1) }; DISKS_MAX];

/// The latest pair of sockets of the kernel's; of the line to the I/O thread, the thread's end and the kernel's.
static PAIR: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];
static LINE: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];
/// What the kernel's epoll is to say when the line is ready.
static TOKEN: AtomicU64 = AtomicU64::new(0);
static LISTENS: AtomicBool = AtomicBool::new(false);
/// The line has been reported, and the kernel has not found it empty since; its epoll is about to report it.
static REPORTED: AtomicBool = AtomicBool::new(false);
static READY: AtomicBool = AtomicBool::new(false);

/// Virtual time is over.
static HURRIES: AtomicBool = AtomicBool::new(false);
/// The virtual instant at which something may be done.
static NEXT_NS: AtomicU64 = AtomicU64::new(NEVER);

/// Takes over the disks, if the guest has any.
pub fn start() {
    let Some(text) = sys::variable(VARIABLE) else { return };
    for description in text.split_terminator(';') {
        let number = COUNT.load(Relaxed);
        let image = description.split_ascii_whitespace().find_map(|word| word.strip_prefix("image=")?.parse().ok());
        let (Some(image), Ok(disk), true) = (image, Disk::parse(description), number < DISKS_MAX) else {
            crate::die(b"dilaton clock: DILATON_DISKS does not describe at most 16 disks\n");
        };
        IMAGES[number].store(image, Relaxed);
        // SAFETY: at start, before anything else looks at it.
        unsafe { (*DISKS.get())[number] = Some(disk) };
        COUNT.store(number + 1, Relaxed);
    }
}

/// Whether the guest has any.
pub fn are_there() -> bool {
    COUNT.load(Relaxed) > 0
}

/// Calls `f` with each disk. In a critical section.
fn for_each(mut f: impl FnMut(&mut Disk)) {
    // SAFETY: the caller's critical section; the reference does not outlive it.
    let disks = unsafe { &mut *DISKS.get() };
    disks.iter_mut().flatten().for_each(&mut f);
}

/// When something may be done of which the kernel does not know.
pub fn next_ns() -> u64 {
    NEXT_NS.load(Relaxed)
}

/// Virtual time is over: from now on the disks take none.
pub fn hurry(page: &ClockPage) {
    exclusively(|| {
        let now = present::look(page);
        for_each(|disk| disk.hurry(now));
        HURRIES.store(true, Relaxed);
        look_ahead();
    });
}

/// Whether they have done something for which virtual time need not go on.
pub fn are_ahead() -> bool {
    HURRIES.load(Relaxed) && next_ns() != NEVER
}

/// Looks when something may be done. In a critical section.
fn look_ahead() {
    let mut next_ns = NEVER;
    if LISTENS.load(Relaxed) && !REPORTED.load(Relaxed) {
        for_each(|disk| next_ns = disk.next().as_ns().min(next_ns));
    }
    NEXT_NS.store(next_ns, Relaxed);
}

/// The kernel has opened `path`, which may be an image.
pub fn opened(path: &CStr, fd: c_int) {
    if fd < 0 || !are_there() {
        return;
    }
    let number = path.to_str().ok().and_then(|path| path.strip_prefix("/proc/self/fd/")?.parse::<c_int>().ok());
    if let Some(place) = number.and_then(|number| IMAGES.iter().position(|image| image.load(Relaxed) == number)) {
        OPENED[place].store(fd, Relaxed);
    }
}

/// The kernel closes a descriptor.
pub fn closed(fd: c_int) {
    if let Some(opened) = OPENED.iter().find(|opened| opened.load(Relaxed) == fd) {
        opened.store(-1, Relaxed);
    }
}

/// The kernel has made a pair of sockets, which may be the line to its I/O thread: of that it keeps the second.
pub fn paired(ends: [c_int; 2]) {
    for (kept, end) in PAIR.iter().zip(ends) {
        kept.store(end, Relaxed);
    }
}

/// Whether the thread that the kernel starts now is its I/O thread: the first to share its memory in a guest with disks.
pub fn awaits_thread() -> bool {
    are_there() && !io_thread::is_adopted()
}

/// Takes the place of the I/O thread.
pub fn adopt_thread(entry: Entry, argument: *mut core::ffi::c_void) {
    for (kept, end) in LINE.iter().zip(&PAIR) {
        kept.store(end.load(Relaxed), Relaxed);
    }
    io_thread::adopt(entry, argument);
}

/// Whether a descriptor is the kernel's end of the line to its I/O thread.
pub fn is_line(fd: c_int) -> bool {
    fd >= 0 && LINE[1].load(Relaxed) == fd
}

/// Whether it is the thread's end.
pub fn is_thread_end(fd: c_int) -> bool {
    fd >= 0 && LINE[0].load(Relaxed) == fd
}

/// The kernel wants to know by `token` when the line is ready, or no longer.
pub fn listen(token: Option<u64>) {
    TOKEN.store(token.unwrap_or(0), Relaxed);
    LISTENS.store(token.is_some(), Relaxed);
    REPORTED.store(false, Relaxed);
    exclusively(look_ahead);
}

/// If the kernel's epoll has not said that something is done, that is to be reported again. In a critical section.
pub fn take_back_ready() {
    if READY.swap(false, Relaxed) {
        REPORTED.store(false, Relaxed);
        look_ahead();
    }
}

/// Whether something is done of which the kernel is to be told. In a critical section.
pub fn mark_ready(now: VirtualInstant) -> bool {
    if now.as_ns() < next_ns() {
        return false;
    }
    let mut is_ready = false;
    for_each(|disk| is_ready |= disk.is_ready(now));
    if is_ready {
        REPORTED.store(true, Relaxed);
        READY.store(true, Relaxed);
    }
    look_ahead();
    is_ready
}

/// What the kernel's epoll has to say of the line.
pub fn take_ready() -> Option<u64> {
    READY.swap(false, Relaxed).then(|| TOKEN.load(Relaxed))
}

/// The kernel writes the addresses of requests, which are done for it at once, and of which it hears in time.
pub fn submit(page: &ClockPage, addresses: &[usize]) {
    exclusively(|| {
        let now = standing::show(present::look(page));
        let begin_ns = aside::own_work_ns();
        for &address in addresses {
            let served = io_thread::serve(address);
            let Some(place) = OPENED.iter().position(|fd| fd.load(Relaxed) == served.fd) else {
                crate::die(b"dilaton clock: the kernel asked for something of a disk that is not known\n");
            };
            page.disk_requests.fetch_add(1, Relaxed);
            page.disk_bytes.fetch_add(served.request.length_bytes, Relaxed);
            page.disk_errors.fetch_add(u64::from(served.failed), Relaxed);
            // SAFETY: a critical section, and no other reference.
            if let Some(disk) = unsafe { &mut (*DISKS.get())[place] } {
                disk.submit(now, address as u64, served.request);
            }
        }
        aside::take_back_work(begin_ns);
        look_ahead();
    });
}

/// The kernel reads which requests are done: how many addresses it got; none, when there are no more.
pub fn read_done(page: &ClockPage, addresses: &mut [usize]) -> usize {
    exclusively(|| {
        let now = standing::show(present::look(page));
        let mut count = 0;
        for_each(|disk| {
            while count < addresses.len() {
                let Some((_, address)) = disk.take_completed(now) else { break };
                addresses[count] = address as usize;
                count += 1;
            }
        });
        if count == 0 {
            REPORTED.store(false, Relaxed);
        }
        look_ahead();
        count
    })
}
