//! What machines tell each other of guests and frames, as bytes: numbers of eight bytes, the lowest first.
//!
//! ```text
//! frames; each: way, its number on it, arrival, length, bytes
//! words; each: guest, state, next instant, instant asked for
//! a count of frames: received here, as news; of your own that the words count, as tidings
//! the number of words
//! ```
//!
//! Frames are first so that those that the hub passes on stay where they are.

use wire::Word;

const WORD_BYTES: usize = 32;
const END_BYTES: usize = 16;

/// A message that nobody can have meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A message on its way into bytes.
#[derive(Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// One with frames that are bytes already.
    pub const fn with(frames: Vec<u8>) -> Self {
        Self(frames)
    }

    fn numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Adds a frame.
    pub fn frame(&mut self, frame: &Frame) {
        self.numbers(&[frame.way as u64, frame.number, frame.arrival_ns, frame.bytes.len() as u64]);
        self.0.extend_from_slice(frame.bytes);
    }

    /// Its length so far.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// All of it, with that count and those words.
    pub fn done(mut self, count: u64, words: &[(usize, Word)]) -> Vec<u8> {
        self.0.reserve(WORD_BYTES * words.len() + END_BYTES);
        for &(guest, word) in words {
            self.numbers(&[guest as u64, word.state, word.next_ns, word.asked_ns]);
        }
        self.numbers(&[count, words.len() as u64]);
        self.0
    }
}

/// A frame, as bytes have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The way that it goes.
    pub way: usize,
    /// How many were sent on it before.
    pub number: u64,
    /// When it arrives.
    pub arrival_ns: u64,
    /// What it carries.
    pub bytes: &'a [u8],
}

/// A message that was read, but for its frames, which are read one by one.
pub struct Read<'a> {
    /// As above.
    pub count: u64,
    /// The words, with their guests.
    pub words: Vec<(usize, Word)>,
    rest: &'a [u8],
}

impl<'a> Read<'a> {
    /// Reads a message.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let end = bytes.len().checked_sub(END_BYTES).ok_or(Malformed)?;
        let (bytes, mut counts) = bytes.split_at(end);
        let (count, words) = (number(&mut counts)?, number(&mut counts)?);
        let words = usize::try_from(words).ok().and_then(|words| words.checked_mul(WORD_BYTES)).ok_or(Malformed)?;
        let (rest, words) = bytes.split_at(bytes.len().checked_sub(words).ok_or(Malformed)?);
        let words = words.chunks_exact(WORD_BYTES).map(|mut word| {
            let (guest, state) = (number(&mut word)?, number(&mut word)?);
            Ok((guest as usize, Word { state, next_ns: number(&mut word)?, asked_ns: number(&mut word)? }))
        });
        let words = words.collect::<Result<_, Malformed>>()?;
        Ok(Self { count, words, rest })
    }

    /// The bytes of all frames that are not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next frame; `None` at the end.
    pub fn frame(&mut self) -> Result<Option<Frame<'a>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let way = number(&mut self.rest)?;
        let (sent_before, arrival_ns) = (number(&mut self.rest)?, number(&mut self.rest)?);
        let length = usize::try_from(number(&mut self.rest)?).map_err(|_| Malformed)?;
        if length > self.rest.len() {
            return Err(Malformed);
        }
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(Some(Frame { way: way as usize, number: sent_before, arrival_ns, bytes }))
    }
}

fn number(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let (first, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_no_part_of_it_is() {
        let words = [(3, Word { state: 1, next_ns: 7, asked_ns: 9 })];
        let frame = Frame { way: 5, number: 3, arrival_ns: 11, bytes: b"frame" };
        let mut writer = Writer::default();
        writer.frame(&frame);
        let bytes = writer.done(2, &words);
        let mut read = Read::new(&bytes).unwrap();
        assert_eq!((read.count, &read.words[..]), (2, &words[..]));
        assert_eq!((read.frame(), read.frame()), (Ok(Some(frame)), Ok(None)));
        let is_whole = |bytes| {
            let mut read = Read::new(bytes)?;
            while read.frame()?.is_some() {}
            Ok::<_, Malformed>(())
        };
        let without_its_frame = 32 + 5;
        for begin in (1..bytes.len()).filter(|&begin| begin != without_its_frame) {
            assert_eq!(is_whole(&bytes[begin..]), Err(Malformed), "{begin}");
        }
    }

    #[test]
    fn a_count_of_words_that_are_not_there_takes_no_memory() {
        let bytes: Vec<u8> = [0, u64::MAX].iter().flat_map(|number: &u64| number.to_le_bytes()).collect();
        assert!(Read::new(&bytes).is_err());
    }
}
