//! The side of a machine: frames out of and into its memory, words of its guests and of those elsewhere.
//!
//! One thread tells news ([`Carrier::news`]), another takes in tidings ([`Carrier::take`]), and each does so as one step: what is
//! told counts the frames that were received before and no others, and a frame that was taken out of a ring is either told
//! of and kept in mind, until the hub's words count it, or still in the ring.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::{Machine, Word};

use crate::message::{Frame, Malformed, Read, Writer};

/// Room for the longest frame of a ring: 64 KiB and headers.
const FRAME_BYTES_MAX: usize = 1 << 17;

/// Why a machine cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The hub said what it cannot mean.
    Malformed,
    /// The ring of that way is full.
    Full(usize),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "the hub said what it cannot mean"),
            Self::Full(way) => write!(f, "the ring of way {way} is full"),
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
    ways_in: Vec<bool>,
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
    /// Room for a frame.
    frame: Vec<u8>,
}

impl Carrier {
    /// Of the machine with that memory.
    pub fn new(wire: &wire::Wire) -> Self {
        let home = |guest: u64| wire.member(guest as usize).home.load(Relaxed);
        let here = wire.header().home.load(Relaxed);
        let leads_in = |way: usize| {
            let way = wire.way(way);
            home(way.receiver.load(Relaxed)) == here && home(way.sender.load(Relaxed)) != here
        };
        Self {
            machine: Machine::new(wire.clone()),
            ways_in: (0..wire.ways()).map(leads_in).collect(),
            messages: Mutex::new(Messages {
                unseen: VecDeque::new(),
                seen: 0,
                received: 0,
                words: vec![Word::FIRST; wire.guests()],
                frame: vec![0; FRAME_BYTES_MAX],
            }),
        }
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are news, and takes them.
    pub fn news(&self) -> Vec<u8> {
        self.machine.wait_for_news();
        let mut messages = self.messages();
        let mut words = vec![];
        self.machine.tell(|guest, word| words.push((guest, word)));
        let mut writer = Writer::new(messages.received, &words);
        // After the words: what was sent before they were said is in the rings.
        let Messages { unseen, frame, .. } = &mut *messages;
        for way in self.machine.ways_out() {
            while let Some((receiver, arrival_ns, length)) = self.machine.take_frame(way, frame) {
                unseen.push_back((receiver, arrival_ns));
                writer.frame(&Frame { way, arrival_ns, bytes: &frame[..length] });
            }
        }
        writer.done()
    }

    /// Takes in tidings.
    ///
    /// # Errors
    /// They are none, or there is no room for a frame.
    pub fn take(&self, tidings: &[u8]) -> Result<(), Failure> {
        let mut messages = self.messages();
        let mut read = Read::new(tidings)?;
        while let Some(frame) = read.frame()? {
            if self.ways_in.get(frame.way) != Some(&true) {
                return Err(Failure::Malformed);
            }
            self.machine.deliver(frame.way, frame.arrival_ns, frame.bytes).map_err(|_| Failure::Full(frame.way))?;
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
