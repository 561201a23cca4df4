//! The side of a machine: frames out of and into its memory, words of its guests and of those elsewhere.
//!
//! One thread tells news ([`Carrier::news`]), another takes in tidings ([`Carrier::take`]), and each does so as one step: what is
//! told counts the frames that were received before and no others, and a frame that was taken out of a ring is either told
//! of and kept in mind, until the hub's words count it, or still in the ring.
//!
//! **What is believed.** A guest whose root took over its kernel may write anything into the memory, at any time. So who is
//! at the ends of ways is read once, before any program runs, and whatever is read later is only an instant, a count, or
//! bytes of a frame; where rings are is checked by who uses them (`wire/src/ring.rs`).
//!
//! **No frame is lost unnoticed.** Each has a number on its way, which is looked at before it is delivered.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::{Machine, Received, Word};

use crate::message::{Frame, Malformed, Read, Writer};

/// Room for the longest frame of a ring: 64 KiB and headers.
const FRAME_BYTES_MAX: usize = 1 << 17;

/// News that are longer are of a guest that writes faster than any can.
const NEWS_BYTES_MAX: usize = 1 << 28;

/// Why a machine cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The hub said what it cannot mean.
    Malformed,
    /// The ring of that way is full.
    Full(usize),
    /// On that way came a frame with the second number, where one with the first was due.
    Gap(usize, u64, u64),
    /// Guests send more than they can.
    Flood,
    /// The memory says of ways that they are between guests that there are not.
    Ways,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "the hub said what it cannot mean"),
            Self::Full(way) => write!(f, "the ring of way {way} is full"),
            Self::Gap(way, due, came) => {
                write!(f, "frames were lost between machines: on way {way} came number {came}, where {due} was due")
            }
            Self::Flood => write!(f, "guests send more than they can"),
            Self::Ways => write!(f, "the memory has ways between guests that there are not"),
        }
    }
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// A machine's side.
pub struct Carrier {
    machine: Machine,
    /// The receiver of each way that leads here from elsewhere.
    ways_in: Vec<Option<usize>>,
    messages: Mutex<Messages>,
}

/// What was exchanged with the hub.
struct Messages {
    /// Frames that were told of and that the hub's words do not count yet: receiver and arrival.
    unseen: VecDeque<(usize, u64)>,
    /// How many the hub's words count.
    seen: u64,
    /// How many frames were received.
    received: u64,
    /// The hub's words.
    words: Vec<Word>,
    /// The number of the next frame of each way that leads here.
    due: Vec<u64>,
    /// The ways that lead elsewhere, each with its receiver and how many frames were taken out of its ring.
    ways_out: Vec<(usize, usize, u64)>,
    /// Room for a frame.
    frame: Vec<u8>,
}

impl Carrier {
    /// Of the machine with that memory.
    ///
    /// # Errors
    /// The memory has ways of which it has not the guests.
    pub fn new(wire: &wire::Wire) -> Result<Self, Failure> {
        let here = wire.header().home.load(Relaxed);
        let homes: Vec<u64> = (0..wire.guests()).map(|guest| wire.member(guest).home.load(Relaxed)).collect();
        let is_here = |guest: usize| homes.get(guest).map(|&home| home == here).ok_or(Failure::Ways);
        let (mut ways_in, mut ways_out) = (vec![None; wire.ways()], vec![]);
        for (number, way_in) in ways_in.iter_mut().enumerate() {
            let way = wire.way(number);
            let (sender, receiver) = (way.sender.load(Relaxed) as usize, way.receiver.load(Relaxed) as usize);
            match (is_here(sender)?, is_here(receiver)?) {
                (false, true) => *way_in = Some(receiver),
                (true, false) => ways_out.push((number, receiver, 0)),
                _ => {}
            }
        }
        let messages = Messages {
            unseen: VecDeque::new(),
            seen: 0,
            received: 0,
            words: vec![Word::FIRST; wire.guests()],
            due: vec![0; wire.ways()],
            ways_out,
            frame: vec![0; FRAME_BYTES_MAX],
        };
        Ok(Self { machine: Machine::new(wire.clone()), ways_in, messages: Mutex::new(messages) })
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are news, and takes them.
    ///
    /// # Errors
    /// There are more than there can be.
    pub fn news(&self) -> Result<Vec<u8>, Failure> {
        self.machine.wait_for_news();
        let mut messages = self.messages();
        let mut words = vec![];
        self.machine.tell(|guest, word| words.push((guest, word)));
        let (mut writer, received) = (Writer::default(), messages.received);
        // After the words: what was sent before they were said is in the rings.
        let Messages { unseen, frame, ways_out, .. } = &mut *messages;
        for (way, receiver, number) in ways_out {
            loop {
                match self.machine.take_frame(*way, frame) {
                    Received::Frame { length, arrival_ns } => {
                        unseen.push_back((*receiver, arrival_ns));
                        writer.frame(&Frame { way: *way, number: *number, arrival_ns, bytes: &frame[..length] });
                    }
                    // Its number is missed where it was to arrive.
                    Received::TooLong => {}
                    Received::Nothing => break,
                }
                *number += 1;
                if writer.bytes() > NEWS_BYTES_MAX {
                    return Err(Failure::Flood);
                }
            }
        }
        Ok(writer.done(received, &words))
    }

    /// Takes in tidings.
    ///
    /// # Errors
    /// They are none, a frame is missing, or there is no room for one.
    pub fn take(&self, tidings: &[u8]) -> Result<(), Failure> {
        let mut messages = self.messages();
        let mut read = Read::new(tidings)?;
        while let Some(frame) = read.frame()? {
            let receiver = self.ways_in.get(frame.way).copied().flatten().ok_or(Failure::Malformed)?;
            let due = messages.due[frame.way];
            if frame.number != due {
                return Err(Failure::Gap(frame.way, due, frame.number));
            }
            messages.due[frame.way] += 1;
            let delivered = self.machine.deliver(frame.way, receiver, frame.arrival_ns, frame.bytes);
            delivered.map_err(|_| Failure::Full(frame.way))?;
            messages.received += 1;
        }
        for &(guest, word) in &read.words {
            *messages.words.get_mut(guest).ok_or(Failure::Malformed)? = word;
        }
        let seen = read.count.checked_sub(messages.seen).ok_or(Failure::Malformed)?;
        if seen > messages.unseen.len() as u64 {
            return Err(Failure::Malformed);
        }
        messages.unseen.drain(..seen as usize);
        messages.seen = read.count;
        let mut lowered = messages.words.clone();
        for &(guest, arrival_ns) in &messages.unseen {
            lowered[guest] = lowered[guest].lowered(arrival_ns);
        }
        self.machine.take_over(lowered.into_iter().enumerate());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use wire::testing::{divide, laid_out};

    /// A machine with guest 0, and a way to guest 1 elsewhere and back.
    fn machine() -> (wire::Wire, Carrier) {
        let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
        divide(&wire, 0, &[0, 1]);
        let carrier = Carrier::new(&wire).unwrap();
        (wire, carrier)
    }

    fn tidings(frames: &[(usize, u64)]) -> Vec<u8> {
        let mut writer = Writer::default();
        for &(way, number) in frames {
            writer.frame(&Frame { way, number, arrival_ns: 50, bytes: b"frame" });
        }
        writer.done(0, &[(1, Word::FIRST)])
    }

    #[test]
    fn a_frame_that_is_missing_and_one_that_comes_twice_are_noticed_before_more_is_delivered() {
        let (wire, carrier) = machine();
        carrier.take(&tidings(&[(1, 0), (1, 1)])).unwrap();
        assert_eq!(carrier.take(&tidings(&[(1, 3)])), Err(Failure::Gap(1, 2, 3)));
        assert_eq!(carrier.take(&tidings(&[(1, 1)])), Err(Failure::Gap(1, 2, 1)));
        assert_eq!(wire.way(1).frames_sent.load(Relaxed), 2);
        let words = Failure::Gap(1, 2, 3).to_string();
        assert_eq!(words, "frames were lost between machines: on way 1 came number 3, where 2 was due");
    }

    #[test]
    fn frames_are_numbered_on_each_way_from_0_and_one_that_is_too_long_has_a_number_too() {
        let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 2 * FRAME_BYTES_MAX);
        divide(&wire, 0, &[0, 1]);
        let carrier = Carrier::new(&wire).unwrap();
        for length in [3, FRAME_BYTES_MAX + 1, 4] {
            let mut bytes = vec![7_u8; length];
            let part = [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length }];
            // SAFETY: a part of our own; this thread alone sends.
            unsafe { wire.send(wire.way(0), 9, &part) }.unwrap();
        }
        wire.header().news_due.store(1, Relaxed);
        let news = carrier.news().unwrap();
        let mut read = Read::new(&news).unwrap();
        let mut numbers = vec![];
        while let Some(frame) = read.frame().unwrap() {
            numbers.push((frame.way, frame.number, frame.bytes.len()));
        }
        assert_eq!(numbers, [(0, 0, 3), (0, 2, 4)]);
    }

    #[test]
    fn whatever_is_written_over_the_memory_a_machine_goes_on_or_says_why_not() {
        let mut random = crate::lives::Random(5);
        for _ in 0..2000 {
            let (wire, carrier) = machine();
            let mut garbage = || random.below(u64::MAX) >> random.below(64);
            let overwritten = |word: &AtomicU64, value: u64| word.store(value, Relaxed);
            overwritten(&wire.header().guests, garbage());
            overwritten(&wire.header().ways, garbage());
            for number in 0..2 {
                let (way, member) = (wire.way(number), wire.member(number));
                for word in [&way.ring_offset, &way.ring_bytes, &way.sender, &way.receiver, &way.head, &way.tail] {
                    if garbage() % 2 == 0 {
                        overwritten(word, garbage());
                    }
                }
                for word in [&member.limiter, &member.next_ns, &member.state, &member.home, &member.stride_ns] {
                    overwritten(word, garbage());
                }
            }
            let _ = carrier.take(&tidings(&[(1, 0)]));
            wire.header().news_due.store(1, Relaxed);
            let _ = carrier.news();
        }
    }
}
