//! The clock page as this side sees it.

use core::ffi::{c_int, CStr};
use core::ptr::null_mut;
use core::sync::atomic::{fence, AtomicPtr, AtomicU64, Ordering};

use interrupts::Stretch;
use virtual_time::{Clock, Drive, HostInstant, Orders, Pace, Tdf, VirtualInstant};

use crate::host::sys;

include!(concat!(env!("OUT_DIR"), "/clock_page.rs"));

/// What a clock page begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"DILATON\0");

/// The environment variable by which the host hands over the page, the wake pipe, the life line, and the serial lines of
/// the channel and of streams: five numbers, and commas between them.
const VARIABLE: &CStr = c"DILATON_CLOCK";

/// What the host hands over.
pub struct Inherited {
    /// The clock page.
    pub page: c_int,
    /// The pipe by which the host wakes the clock.
    pub wake: c_int,
    /// The pipe into which nobody writes, whose other end goes with the host's process.
    pub life: c_int,
    /// The serial lines that the host writes to.
    pub lines: [c_int; 2],
}

/// The file descriptors that the host hands over; `None` when this process is not a guest.
pub fn inherited_fds() -> Option<Inherited> {
    let text = sys::variable(VARIABLE)?;
    let Some([page, wake, life, channel, streams]) = sys::numbers(text) else {
        crate::die(b"dilaton clock: DILATON_CLOCK is not five file descriptors\n")
    };
    Some(Inherited { page, wake, life, lines: [channel, streams] })
}

static PAGE: AtomicPtr<ClockPage> = AtomicPtr::new(null_mut());

/// The clock page; `None` in a process that is not a guest kernel.
pub fn page() -> Option<&'static ClockPage> {
    // SAFETY: set once, to a mapping that stays.
    unsafe { PAGE.load(Ordering::Relaxed).as_ref() }
}

/// This process is no guest kernel from now on.
pub fn forget() {
    PAGE.store(null_mut(), Ordering::Relaxed);
}

/// Maps the page, which is there from now on; ends the process when it is not one, or not of our version.
pub fn map(fd: c_int) -> &'static ClockPage {
    // SAFETY: a new shared mapping; it is never unmapped, and all its words are atomics.
    let page = unsafe {
        let address =
            libc::mmap(null_mut(), size_of::<ClockPage>(), libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0);
        if address == libc::MAP_FAILED {
            crate::die(b"dilaton clock: the clock page cannot be mapped\n");
        }
        &*address.cast::<ClockPage>()
    };
    if page.magic.load(Ordering::Relaxed) != MAGIC {
        crate::die(b"dilaton clock: what was handed over is not a clock page\n");
    }
    if page.page_version.load(Ordering::Relaxed) != PAGE_VERSION {
        crate::die(b"dilaton clock: the clock page is of another version: rebuild with ./dev setup\n");
    }
    PAGE.store(core::ptr::from_ref(page).cast_mut(), Ordering::Relaxed);
    page
}

/// Adds one to a counter. The kernel is a single thread, so a load and a store do; a handler in between costs one count.
pub fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds to a counter.
pub fn add(counter: &AtomicU64, what: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(what), Ordering::Relaxed);
}

/// A command of the host.
pub struct Command {
    /// Its number.
    pub sequence: u64,
    /// What it says.
    pub orders: Orders,
}

impl ClockPage {
    /// What the host asks for, or `None` while it is being written.
    pub fn command(&self) -> Option<Command> {
        let sequence = self.command_sequence.load(Ordering::Acquire);
        let drive = self.command_drive.load(Ordering::Relaxed);
        let running = self.command_running.load(Ordering::Relaxed);
        let tdf = (&self.command_tdf_numerator, &self.command_tdf_denominator);
        let ceiling = (&self.command_ceiling_numerator, &self.command_ceiling_denominator);
        let [tdf, ceiling] = [tdf, ceiling].map(|(n, d)| (n.load(Ordering::Relaxed), d.load(Ordering::Relaxed)));
        let end = VirtualInstant::from_ns(self.command_end_ns.load(Ordering::Relaxed));
        let since_ns = self.command_since_ns.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if sequence % 2 == 1 || self.command_sequence.load(Ordering::Relaxed) != sequence {
            return None;
        }
        let orders = Orders {
            drive: match drive {
                0 => Drive::Wall,
                1 => Drive::Work,
                2 => Drive::Event,
                _ => crate::die(b"dilaton clock: the host commanded a drive that does not exist\n"),
            },
            pace: if running == 0 { Pace::Held } else { Pace::Running(factor(tdf)) },
            end: (end != VirtualInstant::NEVER).then_some(end),
            ceiling: (ceiling != (0, 0)).then(|| factor(ceiling)),
            since: (since_ns != 0).then(|| HostInstant::from_ns(since_ns)),
        };
        Some(Command { sequence, orders })
    }

    /// Publishes the present line for the host.
    pub fn publish(&self, clock: &Clock) {
        let (begin, instant, fraction) = clock.line().anchor();
        let (running, tdf) = match clock.line().pace() {
            Pace::Held => (0, Tdf::ONE),
            Pace::Running(tdf) => (1, tdf),
        };
        let sequence = self.timeline_sequence.load(Ordering::Relaxed);
        self.timeline_sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.timeline_drive.store(clock.drive() as u64, Ordering::Relaxed);
        self.timeline_drive_ns.store(begin.as_ns(), Ordering::Relaxed);
        self.timeline_virtual_ns.store(instant.as_ns(), Ordering::Relaxed);
        self.timeline_fraction.store(fraction, Ordering::Relaxed);
        self.timeline_running.store(running, Ordering::Relaxed);
        self.timeline_tdf_numerator.store(tdf.host(), Ordering::Relaxed);
        self.timeline_tdf_denominator.store(tdf.guest(), Ordering::Relaxed);
        self.timeline_end_ns.store(clock.end().as_ns(), Ordering::Relaxed);
        self.timeline_sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Enters one served timer into the histogram.
    pub fn record_lateness(&self, ns: u64) {
        count(&self.timers_served);
        count(&self.lateness_ns_log2[bin_of(ns)]);
        raise(&self.lateness_max_ns, ns);
    }

    /// Enters one frame that the kernel was given into the histogram of frames.
    pub fn record_frame_lateness(&self, ns: u64) {
        count(&self.frame_lateness_ns_log2[bin_of(ns)]);
        raise(&self.frame_lateness_max_ns, ns);
    }

    /// Enters a stretch of virtual time in which a program waited for the CPU.
    pub fn record_contention(&self, stretch: Stretch) {
        let Stretch { ns, interrupts, .. } = stretch;
        count(&self.contended_ns_log2[bin_of(ns)]);
        add(&self.contended_total_ns_log2[bin_of(ns)], ns);
        add(&self.contended_interrupts_log2[bin_of(ns)], interrupts);
        keep_longest(&self.contended_longest_ns, &self.contended_longest_end_ns, stretch);
    }

    /// Enters for how long a program that talks may have waited for the CPU.
    pub fn record_wait(&self, wait: Stretch) {
        keep_longest(&self.talkers_longest_ns, &self.talkers_longest_end_ns, wait);
    }

    /// Enters a job that was done, if one was, by how long it took.
    pub fn record_job(&self, ns: Option<u64>) {
        if let Some(ns) = ns {
            count(&self.jobs_ns_log2[bin_of(ns)]);
        }
    }

    /// Enters the time from `begin` to `end`, in which the guest had nothing to do, and the busy period before it.
    pub fn record_idle(&self, begin: VirtualInstant, end: VirtualInstant) {
        if end > begin {
            self.end_busy_period(begin);
            self.count_idle(end);
        }
    }

    /// Enters the time up to `now`, at which a program asks and finds nothing. If it has done nothing else since the
    /// last entry, and nothing has come meanwhile, the guest had nothing to do either; otherwise a busy period ends.
    pub fn record_polling(&self, now: VirtualInstant, does_nothing_else: bool) {
        if does_nothing_else && self.busy_interrupts.load(Ordering::Relaxed) == 0 {
            self.count_idle(now);
        } else {
            self.end_busy_period(now);
        }
    }

    /// Enters the busy period up to `end`.
    fn end_busy_period(&self, end: VirtualInstant) {
        let busy_ns = self.since_busy(end);
        count(&self.busy_ns_log2[bin_of(busy_ns)]);
        add(&self.busy_total_ns_log2[bin_of(busy_ns)], busy_ns);
        add(&self.busy_interrupts_log2[bin_of(busy_ns)], self.busy_interrupts.swap(0, Ordering::Relaxed));
        raise(&self.busy_max_ns, busy_ns);
        self.busy_since_ns.store(end.as_ns(), Ordering::Relaxed);
    }

    /// Enters the time up to `end` as idle; a busy period may begin there.
    fn count_idle(&self, end: VirtualInstant) {
        let idle_ns = self.since_busy(end);
        add(&self.idle_virtual_ns, idle_ns);
        add(&self.idle_total_ns_log2[bin_of(idle_ns)], idle_ns);
        self.busy_since_ns.store(end.as_ns(), Ordering::Relaxed);
    }

    fn since_busy(&self, end: VirtualInstant) -> u64 {
        end.since(VirtualInstant::from_ns(self.busy_since_ns.load(Ordering::Relaxed))).as_ns()
    }
}

/// The bin of a histogram of powers of two that counts `ns`.
fn bin_of(ns: u64) -> usize {
    (u64::BITS - ns.leading_zeros()).min(63) as usize
}

/// Keeps a stretch if it is one of the longest, which stand in their order. Nearly all are shorter than the last of these.
fn keep_longest(longest_ns: &[AtomicU64], ends_ns: &[AtomicU64], stretch: Stretch) {
    let is_shorter = |than: &AtomicU64| stretch.ns <= than.load(Ordering::Relaxed);
    if longest_ns.last().is_some_and(is_shorter) {
        return;
    }
    let place = longest_ns.partition_point(is_shorter);
    for next in (place + 1..longest_ns.len()).rev() {
        for words in [longest_ns, ends_ns] {
            words[next].store(words[next - 1].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    longest_ns[place].store(stretch.ns, Ordering::Relaxed);
    ends_ns[place].store(stretch.end_ns, Ordering::Relaxed);
}

fn raise(maximum: &AtomicU64, ns: u64) {
    if ns > maximum.load(Ordering::Relaxed) {
        maximum.store(ns, Ordering::Relaxed);
    }
}

fn factor((host, guest): (u64, u64)) -> Tdf {
    match Tdf::new(host, guest) {
        Ok(tdf) => tdf,
        Err(_) => crate::die(b"dilaton clock: the host commanded an impossible time dilation factor\n"),
    }
}
