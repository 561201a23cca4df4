//! Guests of several machines, the machines and the hub in every order in which they can act (`src/transit.rs`).

use std::collections::HashSet;

use virtual_time::{frees, horizon, is_in_the_way, lowered, wakes_at, VirtualDuration, VirtualInstant};

const NEVER: u64 = u64::MAX;

fn instant(ns: u64) -> VirtualInstant {
    VirtualInstant::from_ns(ns)
}

fn duration(ns: u64) -> VirtualDuration {
    VirtualDuration::from_ns(ns)
}

/// How machines tell each other of their guests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// By the hub, of everything.
    Hub,
    /// By the hub, on demand.
    OnDemand,
    /// To each other directly, and frames on their way count for nothing but their sender.
    Mirror,
}

/// Delays and distances between guests, the machine of each, and the manner.
struct System {
    delays: Vec<Vec<u64>>,
    distances: Vec<Vec<u64>>,
    homes: Vec<usize>,
    manner: Manner,
    /// A machine tells nothing while so many messages of it and to it are under way.
    under_way_max: usize,
}

/// Receiver and arrival.
type Frame = (usize, u64);

/// A guest, as it is told of: its next instant, and what it waits for; never, where it does not.
type Word = (u64, u64);

/// What a machine tells: frames, the words of its guests, and how many frames it has received.
#[derive(Clone, PartialEq, Eq, Hash)]
struct News {
    frames: Vec<Frame>,
    words: Vec<Word>,
    received: usize,
}

/// What a machine is told: frames to it, words, and how many of its own frames are in these.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Tidings {
    frames: Vec<Frame>,
    words: Vec<Word>,
    seen: usize,
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
    left: u32,
    /// How often something outside of virtual time wakes a guest.
    wakes: u32,
    machines: Vec<Machine>,
    /// The hub's: words of all, and frames on their way to each machine.
    words: Vec<Word>,
    transit: Vec<Vec<Frame>>,
}

struct Late;

impl State {
    fn next(&self, guest: usize) -> u64 {
        self.events[guest].iter().copied().min().unwrap_or(NEVER)
    }

    /// A guest as its machine would tell it now.
    fn word(&self, guest: usize) -> Word {
        let next = self.next(guest);
        (self.told[guest], if self.told[guest] == next { next } else { NEVER })
    }

    fn receive(&mut self, frames: &[Frame]) -> Result<(), Late> {
        for &(to, arrival) in frames {
            if arrival < self.horizons[to] {
                return Err(Late);
            }
            self.events[to].push(arrival);
            self.events[to].sort_unstable();
            self.told[to] = self.told[to].min(arrival);
        }
        Ok(())
    }
}

impl System {
    fn new(manner: Manner, delays: Vec<Vec<u64>>, homes: Vec<usize>) -> Self {
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

    fn guests(&self, machine: usize) -> impl Iterator<Item = usize> + '_ {
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
        if self.manner != Manner::OnDemand {
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

    /// The hub takes the first news of a machine.
    fn pass_on(&self, state: &State, number: usize) -> State {
        let mut after = state.clone();
        let news = after.machines[number].up.remove(0);
        after.transit[number].drain(..news.received);
        for guest in self.guests(number) {
            after.words[guest] = news.words[guest];
        }
        for &(to, arrival) in &news.frames {
            after.transit[self.homes[to]].push((to, arrival));
        }
        let words: Vec<Word> = (0..self.homes.len())
            .map(|guest| {
                let (next, wanted) = after.words[guest];
                let arrivals = || {
                    let on_their_way = after.transit[self.homes[guest]].iter();
                    on_their_way.filter(|&&(to, _)| to == guest).map(|&(_, arrival)| instant(arrival))
                };
                (lowered(instant(next), arrivals()).as_ns(), lowered(instant(wanted), arrivals()).as_ns())
            })
            .collect();
        for (other, machine) in after.machines.iter_mut().enumerate() {
            let to_it = news.frames.iter().copied().filter(|&(to, _)| self.homes[to] == other).collect();
            let seen = if other == number { news.frames.len() } else { 0 };
            machine.down[0].push(Tidings { frames: to_it, words: words.clone(), seen });
        }
        after
    }

    /// A machine takes the first of what came from somewhere.
    fn hear(&self, state: &State, number: usize, from: usize) -> Result<State, Late> {
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
    fn act(&self, state: &State, guest: usize, found: &mut Vec<State>) -> Result<(), Late> {
        let (next, reach) = (state.next(guest), self.reach(state, guest));
        if next >= reach {
            return Ok(());
        }
        let home = self.homes[guest];
        let mut done = state.clone();
        done.told[guest] = done.told[guest].min(next);
        done.now[guest] = next;
        done.horizons[guest] = reach;
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
        woken.events[guest].push(wakes_at);
        woken.events[guest].sort_unstable();
        found.push(woken);
    }

    fn successors(&self, state: &State) -> Result<Vec<State>, Late> {
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
                found.push(self.pass_on(state, number));
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
    fn explore(&self, begin: &[u64], left: u32, wakes: u32) -> Result<usize, Late> {
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
            left,
            wakes,
            machines: vec![machine; machines],
            words: vec![(0, NEVER); guests],
            transit: vec![vec![]; machines],
        };
        let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
        while let Some(state) = open.pop() {
            let after = self.successors(&state)?;
            let over = state.events.iter().all(Vec::is_empty);
            assert!(over || !after.is_empty(), "somebody may always go on");
            for next in after {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        Ok(seen.len())
    }
}

fn chain(first: u64, second: u64) -> Vec<Vec<u64>> {
    vec![vec![NEVER, first, NEVER], vec![first, NEVER, second], vec![NEVER, second, NEVER]]
}

fn states(manner: Manner, delays: Vec<Vec<u64>>, homes: &[usize], begin: &[u64], left: u32) -> usize {
    let found = System::new(manner, delays, homes.to_vec()).explore(begin, left, 0);
    found.unwrap_or_else(|Late| panic!("a frame arrives too late"))
}

#[test]
fn the_naive_mirror_sends_into_the_past() {
    let mirror = System::new(Manner::Mirror, chain(1, 1), vec![0, 1, 2]);
    assert!(mirror.explore(&[0, NEVER, 4], 2, 0).is_err(), "the counterexample of the essay");
}

#[test]
fn two_machines_never_send_into_the_past_and_never_wait_for_each_other() {
    let mut found = 0;
    for (there, back) in [(1, 1), (1, 3), (2, 1)] {
        for begin in [[0, 0], [0, 5], [1, NEVER]] {
            found += states(Manner::OnDemand, vec![vec![NEVER, there], vec![back, NEVER]], &[0, 1], &begin, 2);
        }
    }
    println!("{found} states");
    assert!(found > 1000);
}

#[test]
fn nor_do_they_when_they_tell_whatever_they_can() {
    let found = states(Manner::Hub, vec![vec![NEVER, 2], vec![1, NEVER]], &[0, 1], &[0, 4], 1);
    println!("{found} states");
    assert!(found > 1000);
}

#[test]
fn three_machines_in_a_chain_do_not_either() {
    let found = states(Manner::OnDemand, chain(1, 1), &[0, 1, 2], &[0, NEVER, 4], 2);
    println!("{found} states");
    assert!(found > 1000);
}

#[test]
fn nor_do_machines_of_several_guests() {
    for homes in [[0, 0, 1], [0, 1, 0], [0, 1, 1]] {
        for begin in [[0, 0, 4], [0, NEVER, 4]] {
            let found = states(Manner::OnDemand, chain(1, 2), &homes, &begin, 1);
            println!("{found} states");
            assert!(found > 100);
        }
    }
    // What the first sends to the second, and that answers to the third, is in no word that comes meanwhile.
    let found = states(Manner::OnDemand, chain(1, 1), &[0, 1, 0], &[0, NEVER, 4], 2);
    assert!(found > 100);
}

#[test]
fn a_ring_of_three_machines_does_not_either() {
    let ring = vec![vec![NEVER, 1, NEVER], vec![NEVER, NEVER, 2], vec![1, NEVER, NEVER]];
    for begin in [[0, NEVER, NEVER], [0, 3, NEVER]] {
        let found = states(Manner::OnDemand, ring.clone(), &[0, 1, 2], &begin, 1);
        println!("{found} states");
        assert!(found > 100);
    }
}

#[test]
fn guests_that_are_woken_from_outside_do_not_either() {
    let mut found = 0;
    for (delays, homes, begin) in [
        (vec![vec![NEVER, 1], vec![1, NEVER]], vec![0, 1], vec![3, 5]),
        (vec![vec![NEVER, 1], vec![2, NEVER]], vec![0, 1], vec![4, 1]),
        (chain(1, 1), vec![0, 0, 1], vec![3, NEVER, 4]),
    ] {
        let system = System::new(Manner::OnDemand, delays, homes);
        found += system.explore(&begin, 1, 1).unwrap_or_else(|Late| panic!("a frame arrives too late"));
    }
    println!("{found} states");
    assert!(found > 1000);
}
