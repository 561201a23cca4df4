//! What machines tell each other of guests and frames, as bytes: numbers of eight bytes, the lowest first.
//!
//! ```text
//! blocks of frames from one machine to another; each: the other machine, how many frames, and of each
//!     way, its number on it, arrival, length
//! words; each: guest, state, next instant, instant asked for
//! a count of frames: received here, as news; of your own that the words count, as tidings
//! the number of words
//! ```
//!
//! What frames carry is beside that, sealed block by block (`seal.rs`): it is nothing to the hub.

use wire::Word;

const FRAME_BYTES: usize = 32;
const WORD_BYTES: usize = 32;
const END_BYTES: usize = 16;

/// A message that nobody can have meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What is to be known of a frame to pass it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The way that it goes.
    pub way: usize,
    /// How many were sent on it before.
    pub number: u64,
    /// When it arrives.
    pub arrival_ns: u64,
    /// How many bytes it has.
    pub length: usize,
}

impl Frame {
    /// As bytes, which come one after the other in a block.
    pub fn write(&self, frames: &mut Vec<u8>) {
        write(frames, &[self.way as u64, self.number, self.arrival_ns, self.length as u64]);
    }
}

fn write(bytes: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

/// Adds a block with these frames, as `Frame::write` has written them, of or for that machine.
pub fn write_block(bytes: &mut Vec<u8>, machine: usize, frames: &[u8]) {
    write(bytes, &[machine as u64, (frames.len() / FRAME_BYTES) as u64]);
    bytes.extend_from_slice(frames);
}

/// A message of blocks that are bytes already, with that count and those words.
pub fn written(mut blocks: Vec<u8>, count: u64, words: &[(usize, Word)]) -> Vec<u8> {
    blocks.reserve(WORD_BYTES * words.len() + END_BYTES);
    for &(guest, word) in words {
        write(&mut blocks, &[guest as u64, word.state, word.next_ns, word.asked_ns]);
    }
    write(&mut blocks, &[count, words.len() as u64]);
    blocks
}

/// A block of frames, as bytes have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The machine that it goes to, as news; that it comes from, as tidings.
    pub machine: usize,
    /// Its frames, as bytes.
    pub bytes: &'a [u8],
}

impl Block<'_> {
    /// Its frames.
    pub fn frames(&self) -> impl Iterator<Item = Frame> + '_ {
        self.bytes.chunks_exact(FRAME_BYTES).map(|mut bytes| {
            let [way, sent_before, arrival_ns, length] =
                [(); 4].map(|()| number(&mut bytes).expect("of a whole frame"));
            Frame { way: way as usize, number: sent_before, arrival_ns, length: length as usize }
        })
    }

    /// How many bytes its frames carry together.
    pub fn carries(&self) -> Result<usize, Malformed> {
        let sum = self.frames().try_fold(0, |sum: usize, frame| sum.checked_add(frame.length));
        sum.ok_or(Malformed)
    }
}

/// A message that was read, but for its blocks, which are read one by one.
pub struct Read<'a> {
    /// As above.
    pub count: u64,
    /// The words, with their guests.
    pub words: Vec<(usize, Word)>,
    blocks: &'a [u8],
}

impl<'a> Read<'a> {
    /// Reads a message.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (bytes, mut counts) = from_end(bytes, 1, END_BYTES)?;
        let (count, words) = (number(&mut counts)?, number(&mut counts)?);
        let (blocks, words) = from_end(bytes, words, WORD_BYTES)?;
        let words = words.chunks_exact(WORD_BYTES).map(|mut word| {
            let (guest, state) = (number(&mut word)?, number(&mut word)?);
            Ok((guest as usize, Word { state, next_ns: number(&mut word)?, asked_ns: number(&mut word)? }))
        });
        let words = words.collect::<Result<_, Malformed>>()?;
        Ok(Self { count, words, blocks })
    }

    /// The next block; `None` at the end.
    pub fn block(&mut self) -> Result<Option<Block<'a>>, Malformed> {
        if self.blocks.is_empty() {
            return Ok(None);
        }
        let (machine, frames) = (number(&mut self.blocks)?, number(&mut self.blocks)?);
        let (bytes, rest) = split(self.blocks, frames, FRAME_BYTES)?;
        self.blocks = rest;
        Ok(Some(Block { machine: machine as usize, bytes }))
    }
}

/// The first so many items of bytes, and what is behind.
fn split(bytes: &[u8], items: u64, item_bytes: usize) -> Result<(&[u8], &[u8]), Malformed> {
    let length = usize::try_from(items).ok().and_then(|items| items.checked_mul(item_bytes)).ok_or(Malformed)?;
    if length > bytes.len() {
        return Err(Malformed);
    }
    Ok(bytes.split_at(length))
}

/// What is before the last so many items of bytes, and they.
fn from_end(bytes: &[u8], items: u64, item_bytes: usize) -> Result<(&[u8], &[u8]), Malformed> {
    let length = usize::try_from(items).ok().and_then(|items| items.checked_mul(item_bytes)).ok_or(Malformed)?;
    Ok(bytes.split_at(bytes.len().checked_sub(length).ok_or(Malformed)?))
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
        let frame = Frame { way: 5, number: 3, arrival_ns: 11, length: 13 };
        let (mut frames, mut blocks) = (vec![], vec![]);
        frame.write(&mut frames);
        frame.write(&mut frames);
        write_block(&mut blocks, 6, &frames);
        let bytes = written(blocks, 2, &words);
        let mut read = Read::new(&bytes).unwrap();
        assert_eq!((read.count, &read.words[..]), (2, &words[..]));
        let block = read.block().unwrap().unwrap();
        assert_eq!((block.machine, block.frames().collect::<Vec<_>>()), (6, vec![frame; 2]));
        assert_eq!((block.carries(), read.block()), (Ok(26), Ok(None)));
        let is_whole = |bytes| {
            let mut read = Read::new(bytes)?;
            while read.block()?.is_some() {}
            Ok::<_, Malformed>(())
        };
        let without_its_block = 16 + frames.len();
        // What begins within a block may look like another one, of another machine: what it carries is missing then.
        for begin in without_its_block + 1..bytes.len() {
            assert_eq!(is_whole(&bytes[begin..]), Err(Malformed), "{begin}");
        }
    }

    #[test]
    fn a_count_of_words_or_frames_that_are_not_there_takes_no_memory_and_no_sum_is_too_large() {
        let numbers = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        assert!(Read::new(&numbers(&[0, u64::MAX])).is_err());
        let frames = numbers(&[1, u64::MAX, 0, 0]);
        assert_eq!(Read::new(&frames).unwrap().block(), Err(Malformed));
        let lengths = [u64::MAX, 1].map(|length| numbers(&[0, 0, 0, length])).concat();
        assert_eq!(Block { machine: 0, bytes: &lengths }.carries(), Err(Malformed));
    }
}
