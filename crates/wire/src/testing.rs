//! Memory as a host lays it out. Without `std`, as all that a build of the whole workspace has with the same features.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use libc::c_int;

use crate::memory::{distances_at, ways_at, MAGIC, WIRE_VERSION};
use crate::{Way, Wire, NEVER};

/// Lays out memory as a host does (python/dilaton/host/here/memory/wire.py), never to be freed: sender, receiver
/// and delay of each way, every ring of `ring_bytes`.
#[must_use]
pub fn laid_out(guests: usize, ways: &[(usize, usize, u64)], ring_bytes: usize) -> Wire {
    laid_out_in(None, guests, ways, ring_bytes)
}

/// As [`laid_out`], in an empty file that other processes have too.
#[must_use]
pub fn laid_out_in(file: Option<c_int>, guests: usize, ways: &[(usize, usize, u64)], ring_bytes: usize) -> Wire {
    let rings_at = ways_at(guests) + ways.len() * size_of::<Way>();
    let size = rings_at + ways.len() * ring_bytes;
    let kind = if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
    // SAFETY: the file is of whoever calls this, and the mapping is new.
    let base = unsafe {
        assert!(file.map_or(true, |fd| libc::ftruncate(fd, size as libc::off_t) == 0));
        libc::mmap(null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, kind, file.unwrap_or(-1), 0)
    };
    assert!(base != libc::MAP_FAILED);
    let wire = Wire { base: base.cast(), bytes: size, guests, ways: ways.len() };
    let distance = |from: usize, to: usize| -> &AtomicU64 {
        // SAFETY: within the memory.
        unsafe { &*wire.base.byte_add(distances_at(guests)).add(from * guests + to) }
    };
    let header = wire.header();
    header.guests.store(guests as u64, Relaxed);
    header.ways.store(ways.len() as u64, Relaxed);
    header.wire_version.store(WIRE_VERSION, Relaxed);
    header.begun.store(1, Relaxed);
    for pair in 0..guests * guests {
        distance(pair / guests, pair % guests).store(NEVER, Relaxed);
    }
    for (number, &(from, to, delay)) in ways.iter().enumerate() {
        let way = wire.way(number);
        way.sender.store(from as u64, Relaxed);
        way.receiver.store(to as u64, Relaxed);
        way.delay_ns.store(delay, Relaxed);
        way.ring_offset.store((rings_at + number * ring_bytes) as u64, Relaxed);
        way.ring_bytes.store(ring_bytes as u64, Relaxed);
        distance(from, to).fetch_min(delay, Relaxed);
    }
    for k in 0..guests {
        for i in 0..guests {
            for j in 0..guests {
                let over = distance(i, k).load(Relaxed).saturating_add(distance(k, j).load(Relaxed));
                distance(i, j).fetch_min(over, Relaxed);
            }
        }
    }
    for guest in 0..guests {
        wire.member(guest).stand_ns.store(NEVER, Relaxed);
    }
    header.magic.store(MAGIC, Relaxed);
    wire
}

/// Makes of such memory that of machine `home`, of several; where each guest is.
pub fn divide(wire: &Wire, home: usize, homes: &[usize]) {
    let machines = homes.iter().max().map_or(0, |last| last + 1);
    wire.header().home.store(home as u64, Relaxed);
    wire.header().machines.store(machines as u64, Relaxed);
    for (guest, &home) in homes.iter().enumerate() {
        wire.member(guest).home.store(home as u64, Relaxed);
    }
}
