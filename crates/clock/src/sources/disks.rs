//! The disks of a guest: block devices of the kernel whose requests are done at the virtual instants that their models say.
//!
//! The host hands over, for each, an open image and a description (crates/disk); the kernel opens image N as
//! `/proc/self/fd/N`. Data are moved when the kernel asks for it (`io_thread.rs`), on no time of the guest's: a
//! disk has its own way to memory. The end of a request is a **deadline** of the clock, as a timer's or an arrival:
//! idle time is jumped over to it, and it interrupts what runs. Then the kernel's SIGIO handler is called, finds the
//! line of its I/O thread ready, and reads from it which requests are done.

use core::ffi::{c_int, CStr};
use core::sync::atomic::Ordering::Relaxed;

use disk::{Disk, Fate, Fault, Operation};
use interrupts::{Count, Flag, Id, Readiness, Word};
use requests::Power;
use virtual_time::VirtualInstant;
use wire::NEVER;

use crate::host::page::ClockPage;
use crate::host::sys;
use crate::kernel::masks::{exclusively, Exclusive};
use crate::sources::caches::{self, DISKS_MAX};
use crate::sources::{faults, io_thread, Source};
use crate::time::{aside, present, standing};

/// The environment variable by which the host hands the disks over: for each the words `image=DESCRIPTOR` and its
/// description, ended by a semicolon.
const VARIABLE: &CStr = c"DILATON_DISKS";

static DISKS: Exclusive<[Option<Disk>; DISKS_MAX]> = Exclusive::new([const { None }; DISKS_MAX]);

/// What the kernel knows of the disks. Descriptors are -1 where there is none.
struct State {
    count: Count,
    /// For each disk, the descriptor that the host handed over, and the one by which the kernel has opened it.
    images: [Id; DISKS_MAX],
    opened: [Id; DISKS_MAX],
    /// The latest pair of sockets of the kernel's.
    pair: [Id; 2],
    /// The two ends of the line to the I/O thread, the thread's and the kernel's, and whether the kernel is to read from it.
    line: [Id; 2],
    readiness: Readiness,
    /// Those whose node is off.
    off: [Flag; DISKS_MAX],
    /// Virtual time is over.
    hurries: Flag,
    /// The virtual instant at which something may be done.
    next_ns: Word,
}

static STATE: State = State {
    count: Count::new(0),
    images: [const { Id::new(-1) }; DISKS_MAX],
    opened: [const { Id::new(-1) }; DISKS_MAX],
    pair: [const { Id::new(-1) }; 2],
    line: [const { Id::new(-1) }; 2],
    readiness: Readiness::unheard(),
    off: [const { Flag::new(false) }; DISKS_MAX],
    hurries: Flag::new(false),
    next_ns: Word::new(NEVER),
};

/// Takes over the disks, if the guest has any.
pub fn start() {
    let Some(text) = sys::variable(VARIABLE) else { return };
    for description in text.split_terminator(';') {
        let number = STATE.count.get();
        let image = description.split_ascii_whitespace().find_map(|word| word.strip_prefix("image=")?.parse().ok());
        let (Some(image), Ok(disk), true) = (image, Disk::parse(description), number < DISKS_MAX) else {
            crate::die(b"dilaton clock: DILATON_DISKS does not describe at most 16 disks\n");
        };
        STATE.images[number].set(image);
        caches::start(number, image, description);
        // SAFETY: at start, before anything else looks at it.
        unsafe { (*DISKS.get())[number] = Some(disk) };
        STATE.count.set(number + 1);
    }
}

/// Whether the guest has any.
pub fn are_there() -> bool {
    STATE.count.get() > 0
}

/// Calls `f` with each disk. In a critical section.
fn for_each(mut f: impl FnMut(&mut Disk)) {
    // SAFETY: the caller's critical section; the reference does not outlive it.
    let disks = unsafe { &mut *DISKS.get() };
    disks.iter_mut().flatten().for_each(&mut f);
}

/// Virtual time is over: from now on the disks take none.
pub fn hurry(page: &ClockPage) {
    exclusively(|| {
        let now = present::look(page);
        for_each(|disk| disk.hurry(now));
        STATE.hurries.set(true);
        look_ahead();
    });
}

/// Switches the power of a disk. Without it what the kernel sends is answered at once, and lost: so a kernel that goes on
/// can let go of a file system whose machine is off.
pub fn power(page: &ClockPage, number: usize, power: Power) {
    let Some(off) = STATE.off.get(number) else { return };
    exclusively(|| {
        let now = present::look(page);
        let was_on = !off.swap(power != Power::On);
        // SAFETY: a critical section, and no other reference.
        if let (true, true, Some(disk)) = (was_on, off.get(), unsafe { &mut (*DISKS.get())[number] }) {
            let begin_ns = aside::own_work_ns();
            disk.give_up(now);
            caches::power_off(page, number, power == Power::Lost);
            aside::take_back_work(begin_ns);
        }
        look_ahead();
    });
}

/// Makes this wrong with a disk from now on, in place of what was.
pub fn break_down(page: &ClockPage, number: usize, fault: Fault) {
    if number >= DISKS_MAX {
        return;
    }
    exclusively(|| {
        let now = present::look(page);
        faults::set(number, fault);
        // SAFETY: a critical section, and no other reference.
        if let Some(disk) = unsafe { &mut (*DISKS.get())[number] } {
            disk.is_ready(now);
            disk.stall(VirtualInstant::from_ns(fault.stalled_until_ns));
        }
        look_ahead();
    });
}

/// What becomes of something that the I/O thread is about to do with this image.
pub fn fate(fd: c_int, operation: Operation) -> Fate {
    match STATE.opened.iter().position(|opened| opened.get() == fd) {
        Some(place) if !STATE.off[place].get() => faults::fate(place, operation),
        _ => Fate::Done,
    }
}

/// Whether what the kernel writes to this image is lost.
pub fn loses(fd: c_int) -> bool {
    STATE.opened.iter().zip(&STATE.off).any(|(opened, off)| opened.get() == fd && off.get())
}

/// The kernel is about to write to an image: whether it may.
pub fn admits_write(fd: c_int, offset: i64, length: usize) -> bool {
    let place = STATE.opened.iter().position(|opened| opened.get() == fd);
    place.map_or(true, |place| caches::note(place, offset as u64, length))
}

/// Whether virtual time is over.
pub fn hurry_up() -> bool {
    STATE.hurries.get()
}

/// Whether they have done something for which virtual time need not go on.
pub fn are_ahead() -> bool {
    STATE.hurries.get() && STATE.next_ns.get() != NEVER
}

/// Looks when something may be done. In a critical section.
fn look_ahead() {
    let mut next_ns = NEVER;
    if STATE.readiness.awaits() {
        for_each(|disk| next_ns = disk.next().as_ns().min(next_ns));
    }
    STATE.next_ns.set(next_ns);
}

/// The kernel has opened `path`, which may be an image.
pub fn opened(path: &CStr, fd: c_int) {
    if fd < 0 || !are_there() {
        return;
    }
    let number = path.to_str().ok().and_then(|path| path.strip_prefix("/proc/self/fd/")?.parse::<c_int>().ok());
    if let Some(place) = number.and_then(|number| STATE.images.iter().position(|image| image.get() == number)) {
        STATE.opened[place].set(fd);
    }
}

/// The kernel closes a descriptor.
pub fn closed(fd: c_int) {
    if let Some(opened) = STATE.opened.iter().find(|opened| opened.get() == fd) {
        opened.set(-1);
    }
}

/// The kernel has made a pair of sockets, which may be the line to its I/O thread: of that it keeps the second.
pub fn paired(ends: [c_int; 2]) {
    for (kept, end) in STATE.pair.iter().zip(ends) {
        kept.set(end);
    }
}

/// Whether the thread that the kernel starts now is its I/O thread: the first to share its memory in a guest with disks.
pub fn awaits_thread() -> bool {
    are_there() && !io_thread::is_adopted()
}

/// Takes the place of the I/O thread.
pub fn adopt_thread(entry: *const (), argument: *mut core::ffi::c_void) {
    for (kept, end) in STATE.line.iter().zip(&STATE.pair) {
        kept.set(end.get());
    }
    io_thread::adopt(entry, argument);
}

/// Whether a descriptor is the kernel's end of the line to its I/O thread.
pub fn is_line(fd: c_int) -> bool {
    fd >= 0 && STATE.line[1].get() == fd
}

/// Whether a descriptor is the thread's end of that line.
pub fn is_thread_end(fd: c_int) -> bool {
    fd >= 0 && STATE.line[0].get() == fd
}

/// The disks as a source of deadlines, which has one descriptor: the line to the I/O thread.
pub struct Disks;

impl Source for Disks {
    fn next_ns(&self) -> u64 {
        STATE.next_ns.get()
    }

    fn report(&self, now: VirtualInstant) -> bool {
        if now.as_ns() < self.next_ns() {
            return false;
        }
        let mut is_ready = false;
        for_each(|disk| is_ready |= disk.is_ready(now));
        if is_ready {
            STATE.readiness.report();
        }
        look_ahead();
        is_ready
    }

    fn take_ready(&self) -> Option<u64> {
        STATE.readiness.take()
    }

    fn take_back_ready(&self) {
        if STATE.readiness.take_back() {
            look_ahead();
        }
    }

    fn listen(&self, fd: c_int, token: Option<u64>) -> bool {
        let is_line = is_line(fd);
        if is_line {
            STATE.readiness.listen(token);
            exclusively(look_ahead);
        }
        is_line
    }
}

/// The kernel writes the addresses of requests, which are done for it at once, and of which it hears in time.
pub fn submit(page: &ClockPage, addresses: &[usize]) {
    exclusively(|| {
        let now = standing::show(present::look(page));
        let begin_ns = aside::own_work_ns();
        for &address in addresses {
            faults::begin_request(now.as_ns());
            let served = io_thread::serve(address);
            let Some(place) = STATE.opened.iter().position(|fd| fd.get() == served.fd) else {
                crate::die(b"dilaton clock: the kernel asked for something of a disk that is not known\n");
            };
            page.disk_requests.fetch_add(1, Relaxed);
            page.disk_bytes.fetch_add(served.request.length_bytes, Relaxed);
            page.disk_errors.fetch_add(u64::from(served.failed), Relaxed);
            // SAFETY: a critical section, and no other reference.
            if let Some(disk) = unsafe { &mut (*DISKS.get())[place] } {
                if STATE.off[place].get() {
                    disk.refuse(now, address as u64);
                } else {
                    match faults::delay_ns(place, now.as_ns()) {
                        0 => {}
                        delay_ns => disk.delay(address as u64, delay_ns),
                    }
                    caches::submitted(place, address as u64, served.request.operation);
                    disk.submit(now, address as u64, served.request);
                }
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
                caches::done(address);
                addresses[count] = address as usize;
                count += 1;
            }
        });
        if count == 0 {
            STATE.readiness.found_empty();
        }
        look_ahead();
        count
    })
}
