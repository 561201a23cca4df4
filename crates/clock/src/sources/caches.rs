//! Volatile caches of disks: what was written and not flushed is lost with the power (`disk::Unflushed` has the rule).
//!
//! What was there before is read from the image into memory of this process, beside the kernel's own, in no time of the
//! guest's. Sectors that the kernel discards are on the medium at once: nobody needs what was there.

use core::ffi::c_int;
use core::mem::size_of;
use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::Ordering::Relaxed;

use disk::{number, Note, Operation, Unflushed, SECTOR_BYTES};

use crate::host::page::ClockPage;
use crate::host::real;
use crate::kernel::masks::Exclusive;

/// Disks of a guest at most: the kernel's driver knows no more (MAX_DEV).
pub const DISKS_MAX: usize = 16;

/// What is read of an image at once.
const READ_BYTES: usize = 1 << 16;

struct Cache {
    image: c_int,
    unflushed: Unflushed<'static>,
}

static CACHES: Exclusive<[Option<Cache>; DISKS_MAX]> = Exclusive::new([const { None }; DISKS_MAX]);

static BEFORE: Exclusive<[u8; READ_BYTES]> = Exclusive::new([0; READ_BYTES]);

/// Gives a disk the cache that its description names, if it does.
pub fn start(place: usize, image: c_int, description: &str) {
    let Ok(bytes) = number(description, "volatile_bytes") else { return };
    let unflushed = Unflushed::new(notes((bytes / SECTOR_BYTES) as usize), number(description, "torn_seed").ok());
    // SAFETY: at start, before anything else looks at it.
    unsafe { (*CACHES.get())[place] = Some(Cache { image, unflushed }) };
}

/// Memory for so many notes, which takes only the room of those that are made.
fn notes(count: usize) -> &'static mut [Note] {
    let bytes = count * size_of::<Note>();
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping of zeros, which are notes, that is never unmapped; no process of a program's inherits it.
    unsafe {
        let address = libc::mmap(null_mut(), bytes, protection, flags | libc::MAP_NORESERVE, -1, 0);
        if count == 0 || address == libc::MAP_FAILED || libc::madvise(address, bytes, libc::MADV_DONTFORK) != 0 {
            crate::die(b"dilaton clock: there is no memory for the cache of a disk\n");
        }
        slice::from_raw_parts_mut(address.cast(), count)
    }
}

/// The cache of a disk, if it may lose something. In a critical section.
fn of(place: usize) -> Option<&'static mut Cache> {
    // SAFETY: the caller's critical section, in which nobody else has a reference.
    unsafe { (*CACHES.get())[place].as_mut() }
}

/// The kernel is about to write: notes what is there; whether that could be read. In a critical section.
pub fn note(place: usize, offset_bytes: u64, length: usize) -> bool {
    let Some(Cache { image, unflushed }) = of(place) else { return true };
    // SAFETY: as of `of`.
    let before = unsafe { &mut *BEFORE.get() };
    let mut done = 0;
    while done < length {
        let wanted = READ_BYTES.min(length - done);
        let offset = offset_bytes + done as u64;
        // SAFETY: the buffer is writable for its length.
        let read = unsafe { real::pread64(*image, before.as_mut_ptr().cast(), wanted, offset as i64) };
        if read != wanted as isize {
            return false;
        }
        unflushed.note(offset, &before[..wanted]);
        done += wanted;
    }
    true
}

/// A request is on its way to the disk. In a critical section.
pub fn submitted(place: usize, tag: u64, operation: Operation) {
    if let (Operation::Flush, Some(cache)) = (operation, of(place)) {
        cache.unflushed.flush(tag);
    }
}

/// The kernel hears that a request of some disk is done. In a critical section.
pub fn done(tag: u64) {
    (0..DISKS_MAX).filter_map(of).for_each(|cache| cache.unflushed.done(tag));
}

/// A disk loses its power: all at once, or having been told. In a critical section.
pub fn power_off(page: &ClockPage, place: usize, at_once: bool) {
    let Some(Cache { image, unflushed }) = of(place) else { return };
    if !at_once {
        unflushed.keep();
        return;
    }
    unflushed.lose(|offset, before| {
        // SAFETY: the sector is readable.
        let written = unsafe { real::pwrite64(*image, before.as_ptr().cast(), before.len(), offset as i64) };
        page.disk_errors.fetch_add(u64::from(written != before.len() as isize), Relaxed);
    });
}
