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

use crate::line::Key;
use crate::message::{write_block, written, Frame, Malformed, Read};
use crate::seal::{Forged, Seals, TAG_BYTES};

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
    /// What frames carry is not what another machine has sealed as the next for this one.
    Forged,
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
            Self::Forged => write!(f, "what came for guests is not what another machine has sealed for them"),
        }
    }
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<Forged> for Failure {
    fn from(_: Forged) -> Self {
        Self::Forged
    }
}

/// A way that leads elsewhere.
struct WayOut {
    /// Where to: first, so that those to a machine are one after the other.
    home: usize,
    way: usize,
    receiver: usize,
    /// How many frames were taken out of its ring.
    taken: u64,
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
    /// The ways that lead elsewhere, by machines.
    ways_out: Vec<WayOut>,
    /// Room for a frame.
    frame: Vec<u8>,
    seals: Seals,
}

impl Carrier {
    /// Of the machine with that memory, in the run with that key.
    ///
    /// # Errors
    /// The memory has ways of which it has not the guests.
    pub fn new(wire: &wire::Wire, key: Key) -> Result<Self, Failure> {
        let here = wire.header().home.load(Relaxed);
        let homes: Vec<u64> = (0..wire.guests()).map(|guest| wire.member(guest).home.load(Relaxed)).collect();
        let is_here = |guest: usize| homes.get(guest).map(|&home| home == here).ok_or(Failure::Ways);
        let (mut ways_in, mut ways_out) = (vec![None; wire.ways()], vec![]);
        for (number, way_in) in ways_in.iter_mut().enumerate() {
            let way = wire.way(number);
            let (sender, receiver) = (way.sender.load(Relaxed) as usize, way.receiver.load(Relaxed) as usize);
            match (is_here(sender)?, is_here(receiver)?) {
                (false, true) => *way_in = Some(receiver),
                (true, false) => {
                    ways_out.push(WayOut { home: homes[receiver] as usize, way: number, receiver, taken: 0 });
                }
                _ => {}
            }
        }
        ways_out.sort_by_key(|out| (out.home, out.way));
        let messages = Messages {
            unseen: VecDeque::new(),
            seen: 0,
            received: 0,
            words: vec![Word::FIRST; wire.guests()],
            due: vec![0; wire.ways()],
            ways_out,
            frame: vec![0; FRAME_BYTES_MAX],
            seals: Seals::new(key, here as usize),
        };
        Ok(Self { machine: Machine::new(wire.clone()), ways_in, messages: Mutex::new(messages) })
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are news, and takes them: what there is to tell, and, sealed, what its frames carry.
    ///
    /// # Errors
    /// There are more than there can be.
    pub fn news(&self) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        self.machine.wait_for_news();
        let mut messages = self.messages();
        let mut words = vec![];
        self.machine.tell(|guest, word| words.push((guest, word)));
        // After the words: what was sent before they were said is in the rings.
        let Messages { unseen, frame, ways_out, seals, received, .. } = &mut *messages;
        let (mut blocks, mut sealed) = (vec![], vec![]);
        for to_one in ways_out.chunk_by_mut(|one, other| one.home == other.home) {
            let (mut heads, mut carried) = (vec![], vec![]);
            for WayOut { way, receiver, taken, .. } in &mut *to_one {
                loop {
                    match self.machine.take_frame(*way, frame) {
                        Received::Frame { length, arrival_ns } => {
                            unseen.push_back((*receiver, arrival_ns));
                            Frame { way: *way, number: *taken, arrival_ns, length }.write(&mut heads);
                            carried.extend_from_slice(&frame[..length]);
                        }
                        // Its number is missed where it was to arrive.
                        Received::TooLong => {}
                        Received::Nothing => break,
                    }
                    *taken += 1;
                    if sealed.len() + carried.len() + heads.len() > NEWS_BYTES_MAX {
                        return Err(Failure::Flood);
                    }
                }
            }
            if heads.is_empty() {
                continue;
            }
            seals.seal(to_one[0].home, &heads, &mut carried);
            write_block(&mut blocks, to_one[0].home, &heads);
            if sealed.is_empty() {
                sealed = carried;
            } else {
                sealed.extend_from_slice(&carried);
            }
        }
        Ok((written(blocks, *received, &words), sealed))
    }

    /// Takes in tidings, with what their frames carry.
    ///
    /// # Errors
    /// They are none, a frame is missing, or there is no room for one.
    pub fn take(&self, tidings: &[u8], mut sealed: &mut [u8]) -> Result<(), Failure> {
        let mut messages = self.messages();
        let mut read = Read::new(tidings)?;
        while let Some(block) = read.block()? {
            let length = block.carries()?.checked_add(TAG_BYTES).ok_or(Malformed)?;
            if length > sealed.len() {
                return Err(Failure::Malformed);
            }
            let (of_block, behind) = sealed.split_at_mut(length);
            sealed = behind;
            let mut carried = messages.seals.open(block.machine, block.bytes, of_block)?;
            for frame in block.frames() {
                let receiver = self.ways_in.get(frame.way).copied().flatten().ok_or(Failure::Malformed)?;
                let due = messages.due[frame.way];
                if frame.number != due {
                    return Err(Failure::Gap(frame.way, due, frame.number));
                }
                messages.due[frame.way] += 1;
                let (bytes, rest) = carried.split_at(frame.length);
                carried = rest;
                let delivered = self.machine.deliver(frame.way, receiver, frame.arrival_ns, bytes);
                delivered.map_err(|_| Failure::Full(frame.way))?;
                messages.received += 1;
            }
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

    const KEY: Key = [7; 32];

    /// A machine with guest 0, and a way to guest 1 elsewhere and back.
    fn machine() -> (wire::Wire, Carrier) {
        let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
        divide(&wire, 0, &[0, 1]);
        let carrier = Carrier::new(&wire, KEY).unwrap();
        (wire, carrier)
    }

    /// The other machine.
    struct Elsewhere(Seals);

    impl Elsewhere {
        fn new() -> Self {
            Self(Seals::new(KEY, 1))
        }

        /// Has frames with these ways and numbers come.
        fn send(&mut self, carrier: &Carrier, frames: &[(usize, u64)]) -> Result<(), Failure> {
            let (mut heads, mut blocks, mut carried) = (vec![], vec![], vec![]);
            for &(way, number) in frames {
                Frame { way, number, arrival_ns: 50, length: 5 }.write(&mut heads);
                carried.extend_from_slice(b"frame");
            }
            self.0.seal(0, &heads, &mut carried);
            write_block(&mut blocks, 1, &heads);
            carrier.take(&written(blocks, 0, &[(1, Word::FIRST)]), &mut carried)
        }
    }

    #[test]
    fn a_frame_that_is_missing_and_one_that_comes_twice_are_noticed_before_more_is_delivered() {
        let (wire, carrier) = machine();
        let mut elsewhere = Elsewhere::new();
        elsewhere.send(&carrier, &[(1, 0), (1, 1)]).unwrap();
        assert_eq!(elsewhere.send(&carrier, &[(1, 3)]), Err(Failure::Gap(1, 2, 3)));
        assert_eq!(elsewhere.send(&carrier, &[(1, 1)]), Err(Failure::Gap(1, 2, 1)));
        assert_eq!(wire.way(1).frames_sent.load(Relaxed), 2);
        let words = Failure::Gap(1, 2, 3).to_string();
        assert_eq!(words, "frames were lost between machines: on way 1 came number 3, where 2 was due");
    }

    #[test]
    fn frames_are_numbered_on_each_way_from_0_and_one_that_is_too_long_has_a_number_too() {
        let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 2 * FRAME_BYTES_MAX);
        divide(&wire, 0, &[0, 1]);
        let carrier = Carrier::new(&wire, KEY).unwrap();
        for length in [3, FRAME_BYTES_MAX + 1, 4] {
            let mut bytes = vec![7_u8; length];
            let part = [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length }];
            // SAFETY: a part of our own; this thread alone sends.
            unsafe { wire.send(wire.way(0), 9, &part) }.unwrap();
        }
        wire.header().news_due.store(1, Relaxed);
        let (news, mut sealed) = carrier.news().unwrap();
        let block = Read::new(&news).unwrap().block().unwrap().unwrap();
        let numbers: Vec<_> = block.frames().map(|frame| (frame.way, frame.number, frame.length)).collect();
        assert_eq!((block.machine, &numbers[..]), (1, &[(0, 0, 3), (0, 2, 4)][..]));
        assert_eq!(Seals::new(KEY, 1).open(0, block.bytes, &mut sealed), Ok(&[7; 7][..]));
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
            let _ = Elsewhere::new().send(&carrier, &[(1, 0)]);
            wire.header().news_due.store(1, Relaxed);
            let _ = carrier.news();
        }
    }
}
