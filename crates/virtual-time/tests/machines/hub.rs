//! The hub, which notes the news of machines and tells each what there is to tell when it gets to that (crates/relay).

use virtual_time::lowered;

use crate::system::{instant, Frame, Manner, News, System, Tidings, Word, NEVER};

/// What the hub knows.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Hub {
    /// As their machines told them.
    words: Vec<Word>,
    machines: Vec<Known>,
}

/// Of a machine.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Known {
    /// Frames that were passed on to it, and that it has not received as far as it told.
    on_their_way: Vec<Frame>,
    /// The words of all guests, as it was told them.
    told: Vec<Word>,
    /// What waits to be sent to it: frames, and how many of its own count that it was not told of.
    frames: Vec<Frame>,
    seen: usize,
    /// Whether there is something to tell it, or was.
    is_due: bool,
}

impl Hub {
    pub fn new(guests: usize, machines: usize) -> Self {
        let words = vec![(0, NEVER); guests];
        let known = Known { on_their_way: vec![], told: words.clone(), frames: vec![], seen: 0, is_due: false };
        Self { words, machines: vec![known; machines] }
    }

    /// Whether it means to tell a machine something.
    pub fn is_due(&self, machine: usize) -> bool {
        self.machines[machine].is_due
    }

    /// Takes the news of a machine, and notes who has something to hear.
    pub fn note(&mut self, system: &System, machine: usize, news: News) {
        self.machines[machine].on_their_way.drain(..news.received);
        self.machines[machine].seen += news.frames.len();
        for guest in system.guests(machine) {
            self.words[guest] = news.words[guest];
        }
        for (to, arrival) in news.frames {
            let known = &mut self.machines[system.homes[to]];
            known.on_their_way.push((to, arrival));
            known.frames.push((to, arrival));
        }
        let words = self.consistent(system);
        for (number, known) in self.machines.iter_mut().enumerate() {
            known.is_due |= !known.frames.is_empty() || are_new(system, &words, &known.told, number);
        }
    }

    /// What there is to tell a machine by now.
    pub fn tidings(&mut self, system: &System, machine: usize) -> Option<Tidings> {
        let words = self.consistent(system);
        let known = &mut self.machines[machine];
        known.is_due = false;
        let counts = known.seen > 0 && system.manner != Manner::Uncounted;
        if !counts && known.frames.is_empty() && !are_new(system, &words, &known.told, machine) {
            return None;
        }
        known.told.clone_from(&words);
        Some(Tidings { frames: std::mem::take(&mut known.frames), words, seen: std::mem::take(&mut known.seen) })
    }

    /// The words, lowered by frames on their way.
    fn consistent(&self, system: &System) -> Vec<Word> {
        let word = |(guest, &(next, wanted)): (usize, &Word)| {
            let arrivals = || {
                let on_their_way = self.machines[system.homes[guest]].on_their_way.iter();
                on_their_way.filter(move |&&(to, _)| to == guest).map(|&(_, arrival)| instant(arrival))
            };
            (lowered(instant(next), arrivals()).as_ns(), lowered(instant(wanted), arrivals()).as_ns())
        };
        self.words.iter().enumerate().map(word).collect()
    }
}

/// Whether a machine was told other words of guests elsewhere.
fn are_new(system: &System, words: &[Word], told: &[Word], machine: usize) -> bool {
    (0..words.len()).any(|guest| system.homes[guest] != machine && words[guest] != told[guest])
}
