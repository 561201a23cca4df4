//! The hub: takes the news of machines one after the other, and makes the tidings of the others of them.
//!
//! It knows a consistent state of the whole run at any moment: what each machine told last, and which frames it has passed
//! on that their machine has not told to have received (`virtual-time/src/transit.rs`).

use std::collections::VecDeque;

use wire::Word;

use crate::message::{Malformed, Read, Writer};

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
    words: Vec<Word>,
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
    /// The words of all guests, as it was told them.
    told: Vec<Word>,
}

impl Hub {
    /// The hub of a run that has not begun.
    pub fn new(layout: Layout) -> Self {
        let machines = layout.homes.iter().max().map_or(0, |last| last + 1);
        let words = vec![Word::FIRST; layout.homes.len()];
        let known = Known { on_their_way: VecDeque::new(), received: 0, sent: 0, told: words.clone() };
        Self { layout, words, machines: vec![known; machines] }
    }

    /// Takes the news of a machine; the tidings of all for whom there are some.
    ///
    /// # Errors
    /// No machine of this run can have told that.
    pub fn take(&mut self, machine: usize, news: &[u8]) -> Result<Vec<(usize, Vec<u8>)>, Malformed> {
        let mut read = Read::new(news)?;
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
        let mut frames: Vec<Vec<u8>> = vec![vec![]; self.machines.len()];
        let mut begin = read.rest();
        while let Some(frame) = read.frame()? {
            let bytes = &begin[..begin.len() - read.rest().len()];
            begin = read.rest();
            let &(sender, receiver) = self.layout.ways.get(frame.way).ok_or(Malformed)?;
            let home = self.layout.homes[receiver];
            if self.layout.homes[sender] != machine || home == machine {
                return Err(Malformed);
            }
            self.machines[machine].sent += 1;
            self.machines[home].on_their_way.push_back((receiver, frame.arrival_ns));
            if frames[home].is_empty() {
                frames[home].reserve(bytes.len() + begin.len());
            }
            frames[home].extend_from_slice(bytes);
        }
        let words = self.consistent();
        let mut tidings = vec![];
        for (number, known) in self.machines.iter_mut().enumerate() {
            let is_new =
                |&(guest, word): &(usize, Word)| self.layout.homes[guest] != number && known.told[guest] != word;
            let new: Vec<_> = words.iter().copied().enumerate().filter(is_new).collect();
            if new.is_empty() && frames[number].is_empty() {
                continue;
            }
            for &(guest, word) in &new {
                known.told[guest] = word;
            }
            let mut writer = Writer::new(known.sent, &new);
            writer.frames(&frames[number]);
            tidings.push((number, writer.done()));
        }
        Ok(tidings)
    }

    /// The words of all guests, lowered by frames on their way to them.
    fn consistent(&self) -> Vec<Word> {
        let mut words = self.words.clone();
        for &(guest, arrival_ns) in self.machines.iter().flat_map(|machine| &machine.on_their_way) {
            words[guest] = words[guest].lowered(arrival_ns);
        }
        words
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

    fn news(received: u64, guest: usize, next_ns: u64, frames: &[(usize, u64)]) -> Vec<u8> {
        let mut writer = Writer::new(received, &[(guest, word(next_ns))]);
        for (number, &(way, arrival_ns)) in (0..).zip(frames) {
            writer.frame(&Frame { way, number, arrival_ns, bytes: b"frame" });
        }
        writer.done()
    }

    /// What each machine hears of each guest.
    fn heard(tidings: &[(usize, Vec<u8>)], machine: usize, guest: usize) -> Option<u64> {
        let (_, bytes) = tidings.iter().find(|(number, _)| *number == machine)?;
        let words = Read::new(bytes).unwrap().words;
        words.iter().find(|(number, _)| *number == guest).map(|(_, word)| word.next_ns)
    }

    #[test]
    fn a_frame_on_its_way_counts_until_its_machine_has_told_of_it() {
        let mut hub = hub();
        hub.take(1, &news(0, 1, NEVER, &[])).unwrap();
        let tidings = hub.take(0, &news(0, 0, NEVER, &[(0, 50)])).unwrap();
        assert_eq!(
            heard(&tidings, 2, 1),
            Some(50),
            "who is told that the sender has nothing to come is told of the frame"
        );
        assert_eq!(heard(&tidings, 2, 0), Some(NEVER));
        let tidings = hub.take(1, &news(0, 1, NEVER, &[])).unwrap();
        assert_eq!(heard(&tidings, 2, 1), None, "it has not received the frame yet");
        let tidings = hub.take(1, &news(1, 1, 70, &[])).unwrap();
        assert_eq!(heard(&tidings, 2, 1), Some(70));
    }

    #[test]
    fn a_sender_is_told_which_of_its_frames_count() {
        let mut hub = hub();
        hub.take(1, &news(0, 1, NEVER, &[])).unwrap();
        let tidings = hub.take(0, &news(0, 0, NEVER, &[(0, 50), (0, 60)])).unwrap();
        let (_, bytes) = tidings.iter().find(|(number, _)| *number == 0).unwrap();
        assert_eq!((Read::new(bytes).unwrap().count, heard(&tidings, 0, 1)), (2, Some(50)));
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
            (0, vec![1, 2, 3]),
        ] {
            assert_eq!(hub().take(machine, &news).err(), Some(Malformed));
        }
    }
}
