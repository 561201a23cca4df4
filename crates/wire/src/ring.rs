//! Frames under way in one direction: a ring with one writer and one reader.
//!
//! A record is the arrival's instant, the length with the frame's number, and the bytes, from a multiple of 16 bytes on. A
//! record is never split: one that does not fit before the end of the ring begins at its start, behind a mark. Positions
//! count all bytes ever written, so that a full ring is told from an empty one.
//!
//! What is promised of every frame is looked at for every frame: that it does not arrive before the receiver's horizon,
//! and in the order of sending, none left out.
//!
//! A guest whose root took over its kernel may write anything here. So a reader believes no position and no length that a
//! sender could not have left: it counts that as disorder, which every run is failed for, and throws away what is under
//! way, without having looked behind the ring or gone round it for ever. Where the ring is and how long is looked at once
//! for each use ([`Ring`]), and one that is not within the memory holds nothing and takes nothing.

use core::ptr::copy_nonoverlapping;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst};

use crate::{Record, Way, Wire};

/// A length that marks the unused rest of a ring.
const REST: u64 = u32::MAX as u64;
const HEADER_BYTES: u64 = size_of::<Record>() as u64;

/// There is no room for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What there was to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A frame.
    Frame {
        /// Its bytes.
        length: usize,
        /// When it arrived.
        arrival_ns: u64,
    },
    /// A frame that was lost, since there was no room for it.
    TooLong,
    /// Nothing that has arrived yet.
    Nothing,
}

/// Where the frames of a way are, all of it within the memory.
struct Ring {
    begin: *mut AtomicU64,
    size: u64,
}

impl Ring {
    fn record(&self, position: u64) -> &Record {
        // SAFETY: within the ring, since positions and sizes are multiples of a record's header; of atomics alone.
        unsafe { &*self.begin.byte_add((position % self.size) as usize).cast() }
    }

    /// Where the bytes of the record at `position` are.
    fn bytes(&self, position: u64) -> *mut u8 {
        // SAFETY: within the ring, or at its end if the record has none.
        unsafe { self.begin.byte_add((position % self.size + HEADER_BYTES) as usize).cast() }
    }

    const fn rest(&self, position: u64) -> u64 {
        self.size - position % self.size
    }

    /// Length and number of the record at `tail`, with more up to `head`; `None` if no sender can have left it so.
    fn left_by_a_sender(&self, tail: u64, head: u64) -> Option<u64> {
        let under_way = head.wrapping_sub(tail);
        if under_way > self.size || tail % HEADER_BYTES != 0 {
            return None;
        }
        let length_and_number = self.record(tail).length_and_number.load(Relaxed);
        let (length, rest) = (length_and_number & REST, self.rest(tail));
        // There is a frame behind every mark.
        let is_whole = if length == REST { rest < under_way } else { record_bytes(length) <= rest.min(under_way) };
        is_whole.then_some(length_and_number)
    }
}

impl Wire {
    /// The ring of a way; `None` if it is not within the memory.
    fn ring(&self, way: &Way) -> Option<Ring> {
        let (offset, size) = (way.ring_offset.load(Relaxed), way.ring_bytes.load(Relaxed));
        let is_within = offset.checked_add(size).is_some_and(|end| end <= self.bytes as u64);
        if !is_within || size == 0 || (offset | size) % HEADER_BYTES != 0 {
            return None;
        }
        // SAFETY: within the memory.
        Some(Ring { begin: unsafe { self.base.byte_add(offset as usize) }, size })
    }

    /// Puts a frame on its way, which arrives at `arrival_ns`.
    ///
    /// # Errors
    /// The ring is full.
    ///
    /// # Safety
    /// The parts must be readable; the caller alone sends on this way.
    pub unsafe fn send(&self, way: &Way, arrival_ns: u64, parts: &[libc::iovec]) -> Result<usize, Full> {
        let length = parts.iter().map(|part| part.iov_len).sum::<usize>();
        let ring = self.ring(way).ok_or(Full)?;
        let mut head = way.head.load(Relaxed);
        let needed = record_bytes(length as u64);
        let rest = ring.rest(head);
        let skipped = if needed > rest { rest } else { 0 };
        let under_way = head.wrapping_sub(way.tail.load(Acquire));
        // Positions that are none leave room for nothing, until the reader has found them.
        if head % HEADER_BYTES != 0 || under_way > ring.size || under_way + skipped + needed > ring.size {
            return Err(Full);
        }
        if skipped > 0 {
            ring.record(head).length_and_number.store(REST, Relaxed);
            head = head.wrapping_add(skipped);
        }
        let number = way.frames_sent.load(Relaxed);
        let record = ring.record(head);
        record.arrival_ns.store(arrival_ns, Relaxed);
        record.length_and_number.store(length as u64 | number << 32, Relaxed);
        let mut to = ring.bytes(head);
        for part in parts {
            // SAFETY: the reader does not look at what is behind `head`; there is room for all parts.
            unsafe {
                copy_nonoverlapping(part.iov_base.cast::<u8>(), to, part.iov_len);
                to = to.add(part.iov_len);
            }
        }
        way.frames_sent.store(number.wrapping_add(1), Relaxed);
        add(&way.bytes_sent, length as u64);
        // What the receiver does next is looked at after this (`Guest::send`).
        way.head.store(head.wrapping_add(needed), SeqCst);
        Ok(length)
    }

    /// When the first frame under way arrives; `None` if there is none.
    #[must_use]
    pub fn first_arrival_ns(&self, way: &Way) -> Option<u64> {
        let head = way.head.load(SeqCst);
        let mut tail = way.tail.load(Relaxed);
        if tail == head {
            return None;
        }
        // What nobody can have sent has been there all the time, for `receive` to find.
        let Some(ring) = self.ring(way) else { return Some(0) };
        while tail != head {
            let Some(length_and_number) = ring.left_by_a_sender(tail, head) else { return Some(0) };
            if length_and_number & REST != REST {
                return Some(ring.record(tail).arrival_ns.load(Relaxed));
            }
            tail = tail.wrapping_add(ring.rest(tail));
            way.tail.store(tail, Relaxed);
        }
        None
    }

    /// Takes the first frame, if it has arrived by `now_ns`. One for which the parts have no room is lost, as where a card
    /// finds it too long.
    ///
    /// # Safety
    /// The parts must be writable; the caller alone receives on this way.
    pub unsafe fn receive(&self, way: &Way, now_ns: u64, parts: &[libc::iovec]) -> Received {
        let Some(arrival_ns) = self.first_arrival_ns(way).filter(|&arrival_ns| arrival_ns <= now_ns) else {
            return Received::Nothing;
        };
        let (tail, head) = (way.tail.load(Relaxed), way.head.load(SeqCst));
        let ring = self.ring(way);
        let of_a_sender = |ring: &Ring| ring.left_by_a_sender(tail, head).filter(|found| found & REST != REST);
        let found = ring.and_then(|ring| of_a_sender(&ring).map(|found| (ring, found)));
        let Some((ring, length_and_number)) = found else {
            add(&way.frames_disordered, 1);
            // Empty, and from the start again.
            way.head.store(0, SeqCst);
            way.tail.store(0, SeqCst);
            return Received::Nothing;
        };
        let length = (length_and_number & REST) as usize;
        let number = way.frames_received.load(Relaxed).wrapping_add(way.frames_not_received.load(Relaxed));
        if length_and_number >> 32 != number & REST {
            add(&way.frames_disordered, 1);
        }
        let fits = length <= parts.iter().map(|part| part.iov_len).sum::<usize>();
        let (mut from, mut left) = (ring.bytes(tail), if fits { length } else { 0 });
        for part in parts {
            let copied = part.iov_len.min(left);
            // SAFETY: the record holds `length` bytes, of which `left` are not copied yet; the part is writable.
            unsafe {
                copy_nonoverlapping(from, part.iov_base.cast::<u8>(), copied);
                from = from.add(copied);
            }
            left -= copied;
        }
        way.tail.store(tail.wrapping_add(record_bytes(length as u64)), SeqCst);
        if fits {
            add(&way.frames_received, 1);
            add(&way.bytes_received, length as u64);
        } else {
            add(&way.frames_not_received, 1);
        }
        // What comes next may not have arrived before.
        if self.first_arrival_ns(way).is_some_and(|next_ns| next_ns < arrival_ns) {
            add(&way.frames_disordered, 1);
        }
        if fits {
            Received::Frame { length, arrival_ns }
        } else {
            Received::TooLong
        }
    }
}

fn record_bytes(length: u64) -> u64 {
    HEADER_BYTES + length.next_multiple_of(HEADER_BYTES)
}

/// Adds to a counter that one thread alone writes.
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::laid_out;
    use std::vec::Vec;

    fn part(bytes: &mut [u8]) -> libc::iovec {
        libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
    }

    fn send(wire: &Wire, arrival_ns: u64, bytes: &[u8]) -> Result<usize, Full> {
        let mut bytes = bytes.to_vec();
        let third = bytes.len() / 3;
        let (first, second) = bytes.split_at_mut(third);
        // SAFETY: parts of our own; this thread alone sends.
        unsafe { wire.send(wire.way(0), arrival_ns, &[part(first), part(second)]) }
    }

    fn receive(wire: &Wire, now_ns: u64) -> Option<Vec<u8>> {
        let mut bytes = std::vec![0; 70_000];
        let (first, second) = bytes.split_at_mut(11);
        // SAFETY: parts of our own; this thread alone receives.
        match unsafe { wire.receive(wire.way(0), now_ns, &[part(first), part(second)]) } {
            Received::Frame { length, .. } => Some(bytes[..length].to_vec()),
            Received::TooLong | Received::Nothing => None,
        }
    }

    #[test]
    fn a_frame_is_there_at_the_instant_of_its_arrival_and_not_a_nanosecond_before() {
        let wire = laid_out(2, &[(0, 1, 5)], 4096);
        send(&wire, 100, b"frame").unwrap();
        assert_eq!(wire.first_arrival_ns(wire.way(0)), Some(100));
        assert_eq!(receive(&wire, 99), None);
        assert_eq!(receive(&wire, 100).as_deref(), Some(&b"frame"[..]));
        assert_eq!(receive(&wire, 100), None);
    }

    #[test]
    fn frames_of_all_lengths_come_out_as_they_went_in_however_often_the_ring_goes_round() {
        let wire = laid_out(2, &[(0, 1, 5)], 1 << 18);
        let (mut sent, mut received) = (0_u64, 0_u64);
        let made = |number: u64| (0..number * 7919 % 65_600).map(|at| (at * 31 + number) as u8).collect::<Vec<_>>();
        while received < 2000 {
            while sent < 2000 && send(&wire, sent, &made(sent)).is_ok() {
                sent += 1;
            }
            for _ in 0..=received % 3 {
                if received < sent {
                    assert_eq!(receive(&wire, received), Some(made(received)));
                    received += 1;
                }
            }
        }
        let way = wire.way(0);
        assert_eq!(way.frames_disordered.load(Relaxed), 0);
        assert_eq!(way.bytes_received.load(Relaxed), way.bytes_sent.load(Relaxed));
    }

    #[test]
    fn a_full_ring_says_so_and_keeps_what_it_holds() {
        let wire = laid_out(2, &[(0, 1, 5)], 256);
        assert_eq!((send(&wire, 1, &[7; 100]), send(&wire, 2, &[8; 100])), (Ok(100), Ok(100)));
        assert_eq!(send(&wire, 3, &[9; 1]), Err(Full));
        assert_eq!(receive(&wire, 2), Some(std::vec![7; 100]));
        assert_eq!(send(&wire, 3, &[9; 1]), Ok(1));
        assert_eq!((receive(&wire, 3), receive(&wire, 3)), (Some(std::vec![8; 100]), Some(std::vec![9; 1])));
    }

    #[test]
    fn a_frame_that_is_longer_than_its_receiver_takes_is_lost_and_the_next_one_is_not() {
        let wire = laid_out(2, &[(0, 1, 5)], 4096);
        send(&wire, 1, &[7; 9]).unwrap();
        send(&wire, 1, &[8; 8]).unwrap();
        let mut bytes = [0; 8];
        let parts = [part(&mut bytes)];
        // SAFETY: a part of our own; this thread alone receives.
        let receive = || unsafe { wire.receive(wire.way(0), 1, &parts) };
        assert_eq!((receive(), receive()), (Received::TooLong, Received::Frame { length: 8, arrival_ns: 1 }));
        let way = wire.way(0);
        assert_eq!((way.frames_not_received.load(Relaxed), way.frames_disordered.load(Relaxed)), (1, 0));
    }

    #[test]
    fn what_breaks_the_order_is_counted() {
        let wire = laid_out(2, &[(0, 1, 5)], 4096);
        send(&wire, 10, b"a").unwrap();
        send(&wire, 9, b"b").unwrap();
        receive(&wire, 10);
        assert_eq!(wire.way(0).frames_disordered.load(Relaxed), 1);
        wire.way(0).frames_received.store(7, Relaxed);
        receive(&wire, 10);
        assert_eq!(wire.way(0).frames_disordered.load(Relaxed), 2);
    }

    #[test]
    fn a_length_that_no_sender_can_have_left_is_counted_and_what_comes_later_is_received() {
        for length in [81, 4096, 70_000, REST - 1, REST] {
            let wire = laid_out(2, &[(0, 1, 5)], 256);
            let way = wire.way(0);
            send(&wire, 1, &[7; 50]).unwrap();
            wire.ring(way).unwrap().record(0).length_and_number.store(length, Relaxed);
            assert_eq!(receive(&wire, 1), None, "{length}");
            assert_eq!(way.frames_disordered.load(Relaxed), 1, "{length}");
            assert_eq!(wire.first_arrival_ns(way), None, "{length}");
            send(&wire, 2, &[8; 50]).unwrap();
            assert_eq!(receive(&wire, 2), Some(std::vec![8; 50]), "{length}");
        }
    }

    #[test]
    fn positions_that_no_sender_can_have_left_are_counted_and_what_comes_later_is_received() {
        for (tail, head) in [(0, 272), (96, 0), (3, 80), (0, u64::MAX / 2), (80, 64)] {
            let wire = laid_out(2, &[(0, 1, 5)], 256);
            let way = wire.way(0);
            send(&wire, 1, &[7; 50]).unwrap();
            way.tail.store(tail, Relaxed);
            way.head.store(head, Relaxed);
            assert_eq!(receive(&wire, 1), None, "{tail} {head}");
            assert_eq!(way.frames_disordered.load(Relaxed), 1, "{tail} {head}");
            send(&wire, 2, &[8; 50]).unwrap();
            assert_eq!(receive(&wire, 2), Some(std::vec![8; 50]), "{tail} {head}");
        }
    }

    #[test]
    fn a_ring_that_is_not_within_the_memory_takes_nothing_and_what_is_in_it_is_counted() {
        for (offset, size) in
            [(1 << 40, 256), (u64::MAX - 15, 256), (0, 1 << 40), (0, u64::MAX - 15), (64, 0), (65, 256), (64, 250)]
        {
            let wire = laid_out(2, &[(0, 1, 5)], 256);
            let way = wire.way(0);
            send(&wire, 1, &[7; 50]).unwrap();
            way.ring_offset.store(offset, Relaxed);
            way.ring_bytes.store(size, Relaxed);
            assert_eq!(send(&wire, 2, &[8; 50]), Err(Full), "{offset} {size}");
            assert_eq!(receive(&wire, 1), None, "{offset} {size}");
            assert_eq!(way.frames_disordered.load(Relaxed), 1, "{offset} {size}");
        }
    }

    #[test]
    fn whatever_is_written_over_a_ring_its_reader_goes_on_and_stays_within_it() {
        const SIZE: usize = 1024;
        // Behind the ring that is written over is one in which nothing ever changes.
        let wire = laid_out(2, &[(0, 1, 5), (0, 1, 5)], SIZE);
        let way = wire.way(0);
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..20_000 {
            let _ = send(&wire, 1, &std::vec![7; (random() % 300) as usize]);
            let word = (random() % (SIZE as u64 / 8)) as usize;
            let garbage = random() >> (random() % 64);
            // SAFETY: within the ring.
            unsafe { (*wire.ring(way).unwrap().begin.add(word)).store(garbage, Relaxed) };
            match random() % 8 {
                0 => way.head.store(random() >> (random() % 64), Relaxed),
                1 => way.tail.store(random() >> (random() % 64), Relaxed),
                _ => {}
            }
            for _ in 0..2 {
                if let Some(bytes) = receive(&wire, u64::MAX) {
                    assert!(bytes.len() <= SIZE - HEADER_BYTES as usize);
                }
            }
        }
        assert!(way.frames_disordered.load(Relaxed) > 0);
        let beside = wire.ring(wire.way(1)).unwrap();
        // SAFETY: within the second ring.
        let is_as_it_was = |word| unsafe { (*beside.begin.add(word)).load(Relaxed) == 0 };
        assert!((0..SIZE / 8).all(is_as_it_was));
    }
}
