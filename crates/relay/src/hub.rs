//! The hub: takes the news of machines one after the other, and makes the tidings of the others of them.
//!
//! It knows a consistent state of the whole run at any moment: what each machine told last, and which frames it has passed
//! on that their machine has not told to have received (`virtual-time/src/transit.rs`).
//!
//! **Tidings are made when they can be sent.** If each news made tidings for all others at once, machines that all wait for
//! each other would cost as many messages as the square of their number, at the time when the hub can least afford them.
//! So news only note who has something to hear, and whoever sends to that machine asks for it ([`Hub::tidings`]) when
//! it gets to it: all that was told meanwhile, as one state. A later state is as good as an earlier one, which holds for
//! ever anyway.
//!
//! **What a later state has in no word.** A machine lowers what it knows of a receiver by a frame of its own until it hears that
//! the words count it. By the time it can be told, the receiver may have taken the frame, and its word be the same as
//! before. So there is something to tell also where no word is another one: without it, the sender waits for ever for a
//! guest that is in nobody's way.

use std::collections::VecDeque;

use wire::Word;

use crate::message::{write_block, written, Block, Malformed, Read};
use crate::seal::TAG_BYTES;

/// Which guest is on which machine, and between which guests ways lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The machine of each guest.
    pub homes: Vec<usize>,
    /// Sender and receiver of each way.
    pub ways: Vec<(usize, usize)>,
}

/// What the hub knows.
pub struct Hub {
    layout: Layout,
    /// As their machines told them.
    words: Vec<Word>,
    /// Lowered by frames on their way to them.
    consistent: Vec<Word>,
    machines: Vec<Known>,
}

/// Of a machine.
#[derive(Clone)]
struct Known {
    /// Frames that were passed on to it, and not received as far as it told; and how many it has told of in all.
    on_their_way: VecDeque<(usize, u64)>,
    received: u64,
    /// How many frames it has told of itself.
    sent: u64,
    /// The words of all guests, as it was told them, and how many of its frames these count.
    told: Vec<Word>,
    counted: u64,
    /// Frames to it that wait to be sent, and what they carry.
    blocks: Vec<u8>,
    sealed: Vec<u8>,
    /// Whether there is something that it was not told, and whoever sends to it knows.
    is_due: bool,
}

impl Hub {
    /// The hub of a run that has not begun.
    pub fn new(layout: Layout) -> Self {
        let machines = layout.homes.iter().max().map_or(0, |last| last + 1);
        let words = vec![Word::FIRST; layout.homes.len()];
        let known = Known {
            on_their_way: VecDeque::new(),
            received: 0,
            sent: 0,
            told: words.clone(),
            counted: 0,
            blocks: vec![],
            sealed: vec![],
            is_due: false,
        };
        Self { layout, consistent: words.clone(), words, machines: vec![known; machines] }
    }

    /// Takes the news of a machine, with what its frames carry; the machines for whom there are tidings now and were none
    /// before.
    ///
    /// # Errors
    /// No machine of this run can have told that.
    pub fn take(&mut self, machine: usize, news: &[u8], sealed: Vec<u8>) -> Result<Vec<usize>, Malformed> {
        let mut read = Read::new(news)?;
        let mut changed = self.take_words(machine, &read)?;
        let (mut begin, mut whole) = (0, None);
        while let Some(block) = read.block()? {
            self.pass_on(machine, &block, &mut changed)?;
            let end = block.carries()?.checked_add(begin + TAG_BYTES).ok_or(Malformed)?;
            let carried = sealed.get(begin..end).ok_or(Malformed)?;
            let to = &mut self.machines[block.machine];
            if to.sealed.is_empty() && carried.len() == sealed.len() {
                // The usual case, which costs no copy.
                whole = Some(block.machine);
            } else {
                to.sealed.extend_from_slice(carried);
            }
            begin = end;
        }
        if begin != sealed.len() {
            return Err(Malformed);
        }
        if let Some(to) = whole {
            self.machines[to].sealed = sealed;
        }
        Ok(self.find_due(&changed))
    }

    /// Takes how many frames a machine has received, and the words of its guests; these guests.
    fn take_words(&mut self, machine: usize, read: &Read) -> Result<Vec<usize>, Malformed> {
        let teller = self.machines.get_mut(machine).ok_or(Malformed)?;
        let received = read.count.checked_sub(teller.received).ok_or(Malformed)?;
        if received > teller.on_their_way.len() as u64 {
            return Err(Malformed);
        }
        teller.on_their_way.drain(..received as usize);
        teller.received = read.count;
        for &(guest, word) in &read.words {
            if self.layout.homes.get(guest) != Some(&machine) {
                return Err(Malformed);
            }
            self.words[guest] = word;
        }
        let own: Vec<usize> = (0..self.words.len()).filter(|&guest| self.layout.homes[guest] == machine).collect();
        for &guest in &own {
            self.consistent[guest] = self.words[guest];
        }
        for &(guest, arrival_ns) in &self.machines[machine].on_their_way {
            self.consistent[guest] = self.consistent[guest].lowered(arrival_ns);
        }
        Ok(own)
    }

    /// Has the frames of a block on their way; adds the guests whose words they lower.
    fn pass_on(&mut self, machine: usize, block: &Block, changed: &mut Vec<usize>) -> Result<(), Malformed> {
        let to = block.machine;
        if to == machine || to >= self.machines.len() {
            return Err(Malformed);
        }
        for frame in block.frames() {
            let &(sender, receiver) = self.layout.ways.get(frame.way).ok_or(Malformed)?;
            if self.layout.homes[sender] != machine || self.layout.homes[receiver] != to {
                return Err(Malformed);
            }
            self.machines[machine].sent += 1;
            self.machines[to].on_their_way.push_back((receiver, frame.arrival_ns));
            let lowered = self.consistent[receiver].lowered(frame.arrival_ns);
            if lowered != self.consistent[receiver] {
                self.consistent[receiver] = lowered;
                changed.push(receiver);
            }
        }
        write_block(&mut self.machines[to].blocks, machine, block.bytes);
        Ok(())
    }

    /// The machines for whom there are tidings, and were none before these guests had other words.
    fn find_due(&mut self, changed: &[usize]) -> Vec<usize> {
        let is_due = |&number: &usize| {
            let known = &self.machines[number];
            let is_new = |&guest: &usize| self.is_new(number, guest);
            !known.is_due && (!known.blocks.is_empty() || changed.iter().any(is_new))
        };
        let due: Vec<usize> = (0..self.machines.len()).filter(is_due).collect();
        for &number in &due {
            self.machines[number].is_due = true;
        }
        due
    }

    /// Whether a machine was told something else of a guest elsewhere.
    fn is_new(&self, machine: usize, guest: usize) -> bool {
        self.layout.homes[guest] != machine && self.machines[machine].told[guest] != self.consistent[guest]
    }

    /// All that there is to tell a machine, and what the frames to it carry; `None` where that is nothing after all.
    pub fn tidings(&mut self, machine: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let new: Vec<_> = (0..self.words.len())
            .filter(|&guest| self.is_new(machine, guest))
            .map(|guest| (guest, self.consistent[guest]))
            .collect();
        let known = &mut self.machines[machine];
        known.is_due = false;
        if new.is_empty() && known.blocks.is_empty() && known.counted == known.sent {
            return None;
        }
        known.counted = known.sent;
        for &(guest, word) in &new {
            known.told[guest] = word;
        }
        let [blocks, sealed] = [&mut known.blocks, &mut known.sealed].map(std::mem::take);
        Some((written(blocks, known.sent, &new), sealed))
    }

    /// The machines for whose frames more bytes wait.
    pub fn overfull(&self, bytes_max: usize) -> Vec<usize> {
        (0..self.machines.len()).filter(|&number| self.machines[number].sealed.len() > bytes_max).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Frame;
    use wire::NEVER;

    fn word(next_ns: u64) -> Word {
        Word { next_ns, ..Word::FIRST }
    }

    fn hub() -> Hub {
        Hub::new(Layout { homes: vec![0, 1, 2], ways: vec![(0, 1), (1, 0), (1, 2), (2, 1)] })
    }

    /// News of a guest, with a block for each frame, of five bytes each, to the machine of the guest it goes to.
    fn news(received: u64, guest: usize, next_ns: u64, frames: &[(usize, u64)]) -> (Vec<u8>, Vec<u8>) {
        let (mut blocks, mut sealed) = (vec![], vec![]);
        for (number, &(way, arrival_ns)) in (0..).zip(frames) {
            let mut bytes = vec![];
            Frame { way, number, arrival_ns, length: 5 }.write(&mut bytes);
            write_block(&mut blocks, [1, 0, 2, 1, 0][way], &bytes);
            sealed.extend_from_slice(&[number as u8; 5 + TAG_BYTES]);
        }
        (written(blocks, received, &[(guest, word(next_ns))]), sealed)
    }

    fn take(hub: &mut Hub, machine: usize, (news, sealed): (Vec<u8>, Vec<u8>)) -> Result<Vec<usize>, Malformed> {
        hub.take(machine, &news, sealed)
    }

    /// What a machine hears of each guest: numbers and next instants; and how many of its own frames count.
    fn heard(hub: &mut Hub, machine: usize) -> (Vec<(usize, u64)>, u64) {
        let Some((bytes, _)) = hub.tidings(machine) else { return (vec![], 0) };
        let read = Read::new(&bytes).unwrap();
        (read.words.iter().map(|&(guest, word)| (guest, word.next_ns)).collect(), read.count)
    }

    #[test]
    fn a_frame_on_its_way_counts_until_its_machine_has_told_of_it() {
        let mut hub = hub();
        take(&mut hub, 1, news(0, 1, NEVER, &[])).unwrap();
        take(&mut hub, 0, news(0, 0, NEVER, &[(0, 50)])).unwrap();
        let told = heard(&mut hub, 2).0;
        assert_eq!(told, [(0, NEVER), (1, 50)], "who hears that the sender has nothing to come hears of the frame");
        take(&mut hub, 1, news(0, 1, NEVER, &[])).unwrap();
        assert_eq!(heard(&mut hub, 2).0, [], "it has not received the frame yet");
        take(&mut hub, 1, news(1, 1, 70, &[])).unwrap();
        assert_eq!(heard(&mut hub, 2).0, [(1, 70)]);
    }

    #[test]
    fn a_sender_is_told_which_of_its_frames_count() {
        let mut hub = hub();
        take(&mut hub, 1, news(0, 1, NEVER, &[])).unwrap();
        take(&mut hub, 0, news(0, 0, NEVER, &[(0, 50), (0, 60)])).unwrap();
        assert_eq!(heard(&mut hub, 0), (vec![(1, 50)], 2));
    }

    #[test]
    fn a_sender_whose_frame_was_received_before_it_heard_of_that_hears_that_it_counts_no_more() {
        let mut hub = hub();
        take(&mut hub, 1, news(0, 1, 90, &[])).unwrap();
        assert_eq!(heard(&mut hub, 0), (vec![(1, 90)], 0));
        assert!(take(&mut hub, 0, news(0, 0, NEVER, &[(0, 50)])).unwrap().contains(&0));
        take(&mut hub, 1, news(1, 1, 90, &[])).unwrap();
        assert_eq!(heard(&mut hub, 0), (vec![], 1), "which its own words of the receiver are lowered by");
        assert_eq!(hub.tidings(0), None);
    }

    #[test]
    fn what_several_have_told_is_heard_at_once_with_the_frames_in_their_order() {
        let mut hub = hub();
        assert_eq!(
            take(&mut hub, 0, news(0, 0, 10, &[(0, 50)])),
            Ok(vec![0, 1, 2]),
            "also who has sent the frame, which lowers a word"
        );
        assert_eq!(take(&mut hub, 2, news(0, 2, 20, &[(3, 60)])), Ok(vec![]), "all are due already");
        assert_eq!(take(&mut hub, 0, news(0, 0, 30, &[(0, 70)])), Ok(vec![]));
        let (bytes, sealed) = hub.tidings(1).unwrap();
        let mut read = Read::new(&bytes).unwrap();
        assert_eq!(
            read.words.iter().map(|&(guest, word)| (guest, word.next_ns)).collect::<Vec<_>>(),
            [(0, 30), (2, 20)]
        );
        let blocks: Vec<_> = std::iter::from_fn(|| read.block().unwrap()).collect();
        let frames = blocks.iter().map(|block| (block.machine, block.frames().next().unwrap().arrival_ns));
        assert_eq!(frames.collect::<Vec<_>>(), [(0, 50), (2, 60), (0, 70)]);
        assert_eq!(sealed, [[0; 5 + TAG_BYTES]; 3].concat());
        assert_eq!(hub.tidings(1), None);
        take(&mut hub, 0, news(0, 0, 40, &[(0, 80)])).unwrap();
        assert_eq!((hub.overfull(20), hub.overfull(21)), (vec![1], vec![]), "of a frame of five bytes");
    }

    #[test]
    fn what_no_machine_of_the_run_can_have_told_is_refused() {
        for (machine, news) in [
            (0, news(1, 0, 5, &[])),
            (0, news(0, 1, 5, &[])),
            (0, news(0, 9, 5, &[])),
            (0, news(0, 0, 5, &[(1, 9)])),
            (0, news(0, 0, 5, &[(4, 9)])),
            (3, news(0, 0, 5, &[])),
            (0, (vec![1, 2, 3], vec![])),
            (0, (news(0, 0, 5, &[(0, 9)]).0, vec![0; 20])),
            (0, (news(0, 0, 5, &[(0, 9)]).0, vec![0; 22])),
        ] {
            assert_eq!(take(&mut hub(), machine, news).err(), Some(Malformed));
        }
    }
}
