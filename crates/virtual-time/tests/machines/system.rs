//! Guests, machines and their hub, and all that can come next.

use std::collections::HashSet;

use virtual_time::{frees, horizon, is_in_the_way, lowered, wakes_at, VirtualDuration, VirtualInstant};

use crate::hub::Hub;

pub const NEVER: u64 = u64::MAX;

pub fn instant(ns: u64) -> VirtualInstant {
    VirtualInstant::from_ns(ns)
}

fn duration(ns: u64) -> VirtualDuration {
    VirtualDuration::from_ns(ns)
}

/// How machines tell each other of their guests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// By the hub, of everything.
    Hub,
    /// By the hub, on demand.
    OnDemand,
    /// So, and the hub tells which frames its words count only where these are others than it told before.
    Uncounted,
    /// To each other directly, and frames on their way count for nothing but their sender.
    Mirror,
    /// By the hub, on demand, and who is woken goes on from where it has told, whatever arrives before.
    PassesOver,
}

/// Delays and distances between guests, the machine of each, and the manner.
pub struct System {
    delays: Vec<Vec<u64>>,
    distances: Vec<Vec<u64>>,
    pub homes: Vec<usize>,
    pub manner: Manner,
    /// A machine tells nothing while so many messages of it and to it are under way.
    under_way_max: usize,
}

/// Receiver and arrival.
pub type Frame = (usize, u64);

/// A guest, as it is told of: its next instant, and what it waits for; never, where it does not.
pub type Word = (u64, u64);

/// What a machine tells: frames, the words of its guests, and how many frames it has received.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct News {
    pub frames: Vec<Frame>,
    pub words: Vec<Word>,
    pub received: usize,
}

/// What a machine is told: frames to it, words, and how many of its own frames are in these.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Tidings {
    pub frames: Vec<Frame>,
    pub words: Vec<Word>,
    pub seen: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Machine {
    /// Of all guests elsewhere, as it knows them; of its own, as it has told them.
    words: Vec<Word>,
    /// Frames that it has sent and not told yet; told, and not known to be in the words.
    outbox: Vec<Frame>,
    unseen: Vec<Frame>,
    received: usize,
    /// How far guests elsewhere may be, by what was told of those here.
    bounds: Vec<u64>,
    up: Vec<News>,
    /// By whom they come; the hub is the first.
    down: Vec<Vec<Tidings>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    told: Vec<u64>,
    now: Vec<u64>,
    horizons: Vec<u64>,
    events: Vec<Vec<u64>>,
    /// To which instant a guest goes that is woken and passes over what arrives before.
    woken: Vec<Option<u64>>,
    left: u32,
    /// How often something outside of virtual time wakes a guest.
    wakes: u32,
    machines: Vec<Machine>,
    hub: Hub,
}

/// What must never happen.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A frame arrives in its receiver's past.
    Late,
    /// Nobody can go on.
    Stuck,
    /// A guest passes over an arrival.
    PassedOver,
}

impl State {
    fn next(&self, guest: usize) -> u64 {
        self.events[guest].iter().copied().min().unwrap_or(NEVER)
    }

    /// A guest as its machine would tell it now.
    fn word(&self, guest: usize) -> Word {
        let next = self.next(guest);
        (self.told[guest], if self.told[guest] == next { next } else { NEVER })
    }

    fn receive(&mut self, frames: &[Frame]) -> Result<(), Wrong> {
        for &(to, arrival) in frames {
            if arrival < self.horizons[to] {
                return Err(Wrong::Late);
            }
            self.events[to].push(arrival);
            self.events[to].sort_unstable();
            self.told[to] = self.told[to].min(arrival);
        }
        Ok(())
    }
}

impl System {
    pub fn new(manner: Manner, delays: Vec<Vec<u64>>, homes: Vec<usize>) -> Self {
        let n = delays.len();
        let mut distances = delays.clone();
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    distances[i][j] = distances[i][j].min(distances[i][k].saturating_add(distances[k][j]));
                }
            }
        }
        let under_way_max = if manner == Manner::Hub { 1 } else { usize::MAX };
        Self { delays, distances, homes, manner, under_way_max }
    }

    pub fn guests(&self, machine: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.homes.len()).filter(move |&guest| self.homes[guest] == machine)
    }

    /// The next instant of `guest`, as known where `at` is.
    fn known(&self, state: &State, at: usize, guest: usize) -> u64 {
        let home = self.homes[at];
        if self.homes[guest] == home {
            state.told[guest]
        } else {
            state.machines[home].words[guest].0
        }
    }

    fn reach(&self, state: &State, guest: usize) -> u64 {
        let all =
            (0..self.homes.len()).map(|j| (instant(self.known(state, guest, j)), duration(self.distances[j][guest])));
        horizon(all).as_ns().max(state.horizons[guest])
    }

    fn has_news(&self, state: &State, number: usize) -> bool {
        let machine = &state.machines[number];
        if machine.up.len() + machine.down[0].len() >= self.under_way_max {
            return false;
        }
        if !matches!(self.manner, Manner::OnDemand | Manner::Uncounted | Manner::PassesOver) {
            let is_new = |guest: usize| state.word(guest) != machine.words[guest];
            return !machine.outbox.is_empty() || machine.received > 0 || self.guests(number).any(is_new);
        }
        let elsewhere = || (0..self.homes.len()).filter(|&guest| self.homes[guest] != number);
        let frees_another = elsewhere().filter(|&guest| machine.words[guest].1 != NEVER).any(|guest| {
            let own = self.guests(number).map(|own| {
                let distance = duration(self.distances[own][guest]);
                (instant(machine.words[own].0), instant(state.told[own]), distance)
            });
            frees(own, instant(machine.words[guest].1))
        });
        frees_another
            || self.guests(number).any(|own| {
                let wanted = state.next(own);
                let waits = state.told[own] == wanted && machine.words[own] != state.word(own);
                waits
                    && elsewhere().any(|other| {
                        let distance = duration(self.distances[other][own]);
                        is_in_the_way(instant(machine.words[other].0), distance, instant(wanted))
                    })
            })
    }

    /// A machine tells its news.
    fn tell(&self, state: &State, number: usize) -> State {
        let mut after = state.clone();
        for guest in self.guests(number) {
            after.machines[number].words[guest] = state.word(guest);
        }
        let machine = &mut after.machines[number];
        for elsewhere in (0..self.homes.len()).filter(|&guest| self.homes[guest] != number) {
            let told = |own: usize| machine.words[own].0.saturating_add(self.distances[own][elsewhere]);
            let bound = self.guests(number).map(told).min().unwrap();
            machine.bounds[elsewhere] = machine.bounds[elsewhere].max(bound);
        }
        let frames = core::mem::take(&mut machine.outbox);
        let received = core::mem::take(&mut machine.received);
        let words = machine.words.clone();
        if self.manner == Manner::Mirror {
            for other in (0..after.machines.len()).filter(|&other| other != number) {
                let to_it = frames.iter().copied().filter(|&(to, _)| self.homes[to] == other).collect();
                after.machines[other].down[number].push(Tidings { frames: to_it, words: words.clone(), seen: 0 });
            }
        } else {
            machine.unseen.extend(&frames);
            machine.up.push(News { frames, words, received });
        }
        after
    }

    /// A machine takes the first of what came from somewhere.
    fn hear(&self, state: &State, number: usize, from: usize) -> Result<State, Wrong> {
        let mut after = state.clone();
        let tidings = after.machines[number].down[from].remove(0);
        after.receive(&tidings.frames)?;
        let machine = &mut after.machines[number];
        machine.received += tidings.frames.len();
        for &(to, arrival) in &tidings.frames {
            // So the hub has passed it on to the others.
            machine.words[to].0 = machine.words[to].0.min(arrival);
        }
        machine.unseen.drain(..tidings.seen);
        let told_of = |guest: usize| {
            if self.manner == Manner::Mirror {
                self.homes[guest] == from
            } else {
                self.homes[guest] != number
            }
        };
        for guest in (0..self.homes.len()).filter(|&guest| told_of(guest)) {
            let own = || {
                let on_their_way = machine.unseen.iter().chain(&machine.outbox);
                on_their_way.filter(|&&(to, _)| to == guest).map(|&(_, arrival)| instant(arrival))
            };
            let (next, wanted) = tidings.words[guest];
            let word = (lowered(instant(next), own()).as_ns(), lowered(instant(wanted), own()).as_ns());
            machine.words[guest] = word;
        }
        Ok(after)
    }

    /// A guest does what is next in it, below its horizon.
    fn act(&self, state: &State, guest: usize, found: &mut Vec<State>) -> Result<(), Wrong> {
        let (next, reach) = (state.next(guest), self.reach(state, guest));
        if next >= reach {
            return Ok(());
        }
        if state.woken[guest].is_some_and(|woken| next < woken) {
            return Err(Wrong::PassedOver);
        }
        let home = self.homes[guest];
        let mut done = state.clone();
        done.told[guest] = done.told[guest].min(next);
        done.now[guest] = next;
        done.horizons[guest] = reach;
        done.woken[guest] = None;
        done.events[guest].remove(0);
        found.push(done.clone());
        if done.left == 0 {
            return Ok(());
        }
        done.left -= 1;
        for to in (0..self.homes.len()).filter(|&to| self.delays[guest][to] != NEVER) {
            let mut sent = done.clone();
            let frame = (to, next + self.delays[guest][to]);
            if self.homes[to] == home {
                sent.receive(&[frame])?;
            } else {
                let machine = &mut sent.machines[home];
                machine.outbox.push(frame);
                let (its_next, wanted) = machine.words[to];
                machine.words[to] = (its_next.min(frame.1), wanted.min(frame.1));
                // What others were told of the sender is no longer all there is to tell.
                machine.words[guest].0 = machine.words[guest].0.min(next);
            }
            found.push(sent);
        }
        done.events[guest].push(next + 2);
        done.events[guest].sort_unstable();
        found.push(done);
        Ok(())
    }

    /// A guest that idles is woken, and tells from where it goes on.
    fn wake(&self, state: &State, guest: usize, found: &mut Vec<State>) {
        if state.wakes == 0 || state.told[guest] != state.next(guest) || state.told[guest] == NEVER {
            return;
        }
        let home = self.homes[guest];
        let others = (0..self.homes.len()).filter(|&other| other != guest).map(|other| {
            let is_here = self.homes[other] == home;
            let horizon = if is_here { state.horizons[other] } else { state.machines[home].bounds[other] };
            (instant(horizon), duration(self.distances[guest][other]), !is_here)
        });
        let wakes_at = wakes_at(instant(state.now[guest]), instant(state.told[guest]), others).as_ns();
        let mut woken = state.clone();
        woken.wakes -= 1;
        woken.told[guest] = wakes_at;
        woken.woken[guest] = (self.manner == Manner::PassesOver).then_some(wakes_at);
        woken.events[guest].push(wakes_at);
        woken.events[guest].sort_unstable();
        found.push(woken);
    }

    fn successors(&self, state: &State) -> Result<Vec<State>, Wrong> {
        let mut found = vec![];
        for guest in 0..self.homes.len() {
            if state.told[guest] != state.next(guest) {
                let mut told = state.clone();
                told.told[guest] = state.next(guest);
                found.push(told);
            }
            self.wake(state, guest, &mut found);
            self.act(state, guest, &mut found)?;
        }
        for number in 0..state.machines.len() {
            if self.has_news(state, number) {
                found.push(self.tell(state, number));
            }
            if !state.machines[number].up.is_empty() {
                let mut noted = state.clone();
                let news = noted.machines[number].up.remove(0);
                noted.hub.note(self, number, news);
                found.push(noted);
            }
            if state.hub.is_due(number) {
                let mut passed_on = state.clone();
                let tidings = passed_on.hub.tidings(self, number);
                passed_on.machines[number].down[0].extend(tidings);
                found.push(passed_on);
            }
            for from in 0..state.machines[number].down.len() {
                if !state.machines[number].down[from].is_empty() {
                    found.push(self.hear(state, number, from)?);
                }
            }
        }
        Ok(found)
    }

    /// Walks through all that can happen, from timers at `begin`; how many states there are.
    pub fn explore(&self, begin: &[u64], left: u32, wakes: u32) -> Result<usize, Wrong> {
        let (guests, machines) = (begin.len(), self.homes.iter().max().unwrap() + 1);
        let machine = Machine {
            words: vec![(0, NEVER); guests],
            outbox: vec![],
            unseen: vec![],
            received: 0,
            bounds: vec![0; guests],
            up: vec![],
            down: vec![vec![]; machines],
        };
        let first = State {
            told: vec![0; guests],
            now: vec![0; guests],
            horizons: vec![0; guests],
            events: begin.iter().map(|&at| if at == NEVER { vec![] } else { vec![at] }).collect(),
            woken: vec![None; guests],
            left,
            wakes,
            machines: vec![machine; machines],
            hub: Hub::new(guests, machines),
        };
        let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
        while let Some(state) = open.pop() {
            let after = self.successors(&state)?;
            let over = state.events.iter().all(Vec::is_empty);
            if after.is_empty() && !over {
                return Err(Wrong::Stuck);
            }
            for next in after {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        Ok(seen.len())
    }
}
