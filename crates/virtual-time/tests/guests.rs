//! Guests of one machine in every order in which they, and who holds and wakes them, can act (`src/horizon.rs`).

use std::collections::HashSet;

use virtual_time::{horizon, horizon_of_held, horizon_of_woken, wakes_at, VirtualDuration, VirtualInstant};

const NEVER: u64 = u64::MAX;

fn instant(ns: u64) -> VirtualInstant {
    VirtualInstant::from_ns(ns)
}

fn duration(ns: u64) -> VirtualDuration {
    VirtualDuration::from_ns(ns)
}

/// How guests keep to the rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    /// Who is woken looks from where it goes on, and tells that later.
    TellsLater,
    /// Who is held keeps the horizon that it had, and goes on where it stands if it is woken.
    KeepsHorizon,
    /// Who is woken keeps the horizon that it had when nothing was to happen in it before later.
    KeepsOwn,
    /// Who works on beyond where it is to stand stands there all the same.
    StaysBehind,
}

/// What must never happen.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    /// A frame arrives in its receiver's past.
    Late,
    /// Nobody can go on, and not all is done.
    Stuck,
}

/// What the host orders, one after the other, each when all have taken the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Order {
    Run,
    /// To stand where it is.
    Stand,
    /// To come to where the furthest one stands.
    Meet,
    /// To go on.
    Release,
}

/// A small system: delays from each guest to each, `NEVER` where no wire is, and whether programs are at work for a while.
struct System {
    manner: Manner,
    works: bool,
    delays: Vec<Vec<u64>>,
    distances: Vec<Vec<u64>>,
}

/// One state: of each guest what it has told of itself, where it is, how far it was let run, its timer and its arrivals,
/// which of these is what a program that is at work does next, to what instant it was woken and whether it has told that,
/// and by which order it stands where; and how many frames and timers there may be yet, and how often the host wakes
/// somebody.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    told: Vec<u64>,
    now: Vec<u64>,
    horizons: Vec<u64>,
    events: Vec<Vec<u64>>,
    working: Vec<Option<u64>>,
    waking: Vec<Option<u64>>,
    orders: Vec<Order>,
    stands: Vec<u64>,
    left: u32,
    wakes: u32,
}

impl State {
    fn next(&self, guest: usize) -> u64 {
        self.events[guest].iter().copied().min().unwrap_or(NEVER)
    }

    /// Whether a program is at work in it, which goes on where it is to stand.
    fn is_at_work(&self, guest: usize) -> bool {
        self.working[guest].is_some()
    }

    /// What it tells: who stands waits for nothing beyond, unless it is at work.
    fn tellable(&self, guest: usize) -> u64 {
        let next = self.next(guest);
        if self.is_at_work(guest) {
            next
        } else {
            next.min(self.stands[guest])
        }
    }

    fn add(&mut self, guest: usize, event: u64) {
        self.events[guest].push(event);
        self.events[guest].sort_unstable();
    }
}

impl System {
    fn new(manner: Manner, delays: Vec<Vec<u64>>) -> Self {
        let n = delays.len();
        let mut distances = delays.clone();
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    distances[i][j] = distances[i][j].min(distances[i][k].saturating_add(distances[k][j]));
                }
            }
        }
        Self { manner, works: false, delays, distances }
    }

    fn at_work(mut self) -> Self {
        self.works = true;
        self
    }

    fn guests(&self) -> std::ops::Range<usize> {
        0..self.delays.len()
    }

    fn reach(&self, state: &State, guest: usize) -> u64 {
        let next = |other: usize| match self.manner {
            Manner::KeepsHorizon => state.told[other],
            _ => state.told[other].min(state.stands[other]),
        };
        let all = self.guests().map(|other| (instant(next(other)), duration(self.distances[other][guest])));
        horizon(all).as_ns().max(state.horizons[guest])
    }

    /// The most that its horizon may be.
    fn most(&self, state: &State, guest: usize) -> u64 {
        if self.manner == Manner::KeepsHorizon {
            return NEVER;
        }
        let others = self.guests().filter(|&other| other != guest);
        let nearest = others.map(|other| self.distances[other][guest]).min().unwrap();
        horizon_of_held(instant(state.stands[guest]), duration(nearest)).as_ns()
    }

    /// A guest tells that nothing happens in it before an instant; who works on stands where that has brought it.
    fn tell(&self, state: &mut State, guest: usize, instant: u64) {
        state.told[guest] = instant;
        if self.manner != Manner::StaysBehind && state.stands[guest] != NEVER {
            state.stands[guest] = state.stands[guest].max(instant);
        }
    }

    /// Whether a guest that is at work was told to go on and has nowhere to. It takes orders over while it runs or waits, and
    /// does neither.
    fn is_at_a_loss(&self, state: &State, guest: usize) -> bool {
        let (next, reach) = (state.next(guest), self.reach(state, guest));
        state.is_at_work(guest) && next < reach && next >= self.most(state, guest)
    }

    /// A guest that idles is woken, or tells from where it goes on.
    fn wake(&self, state: &State, guest: usize, found: &mut Vec<State>) {
        let mut woken = state.clone();
        if let Some(at) = woken.waking[guest].take() {
            woken.told[guest] = at;
            woken.add(guest, at);
            found.push(woken);
            return;
        }
        if state.wakes == 0 || state.told[guest] != state.tellable(guest) {
            return;
        }
        let others = self.guests().filter(|&other| other != guest);
        let others =
            others.map(|other| (instant(state.horizons[other]), duration(self.distances[guest][other]), false));
        let at = wakes_at(instant(state.now[guest]), instant(state.told[guest]), others).as_ns();
        woken.wakes -= 1;
        woken.told[guest] = at;
        match self.manner {
            Manner::Right if at > state.stands[guest] => return,
            Manner::TellsLater => {
                woken.told[guest] = state.told[guest];
                woken.waking[guest] = Some(at);
                found.push(woken);
                return;
            }
            Manner::KeepsOwn => {}
            _ => {
                let own = horizon_of_woken(instant(at), duration(self.distances[guest][guest])).as_ns();
                woken.horizons[guest] = woken.horizons[guest].min(own);
            }
        }
        woken.add(guest, at.min(state.stands[guest]));
        found.push(woken);
    }

    /// A guest takes over what the host orders next.
    fn obey(&self, state: &State, guest: usize, found: &mut Vec<State>) {
        let order = match state.orders[guest] {
            Order::Run => Order::Stand,
            Order::Stand => Order::Meet,
            Order::Meet => Order::Release,
            Order::Release => return,
        };
        if state.orders.iter().any(|&other| other < state.orders[guest]) || self.is_at_a_loss(state, guest) {
            return;
        }
        let idles = state.told[guest] == state.next(guest);
        let now = state.now[guest];
        let stands = match order {
            // Its clock goes on while it idles.
            Order::Stand if idles => {
                vec![now, state.next(guest).min(self.reach(state, guest) - 1).min(now + 3).max(now)]
            }
            Order::Stand => vec![now],
            Order::Meet => vec![*state.stands.iter().chain(&state.now).max().unwrap()],
            _ => vec![NEVER],
        };
        for stand in stands {
            let mut obeyed = state.clone();
            obeyed.orders[guest] = order;
            obeyed.stands[guest] = stand;
            if order == Order::Stand {
                obeyed.now[guest] = stand;
                obeyed.horizons[guest] = self.reach(state, guest);
            }
            obeyed.horizons[guest] = obeyed.horizons[guest].min(self.most(&obeyed, guest));
            found.push(obeyed);
        }
    }

    /// A guest does what is next in it, below its horizon.
    fn act(&self, state: &State, guest: usize, found: &mut Vec<State>) -> Result<(), Wrong> {
        let (next, reach) = (state.next(guest), self.reach(state, guest));
        let last = if state.is_at_work(guest) { self.most(state, guest) - 1 } else { state.stands[guest] };
        if next >= reach || next > last {
            return Ok(());
        }
        let mut done = state.clone();
        // It has told no more than where it is when it begins to run.
        done.told[guest] = done.told[guest].min(next);
        done.now[guest] = done.now[guest].max(next);
        done.horizons[guest] = reach.min(self.most(state, guest));
        done.events[guest].remove(0);
        done.working[guest] = done.working[guest].filter(|&work| work != next);
        found.push(done.clone());
        if done.left == 0 {
            return Ok(());
        }
        done.left -= 1;
        let mut timer = done.clone();
        timer.add(guest, next + 2);
        found.push(timer);
        if self.works && done.working[guest].is_none() {
            let mut works = done.clone();
            works.add(guest, next + 1);
            works.working[guest] = Some(next + 1);
            found.push(works);
        }
        for to in self.guests().filter(|&to| self.delays[guest][to] != NEVER) {
            let arrival = next + self.delays[guest][to];
            if arrival < done.horizons[to] || arrival <= done.now[to] {
                return Err(Wrong::Late);
            }
            let mut sent = done.clone();
            sent.add(to, arrival);
            sent.told[to] = sent.told[to].min(arrival);
            found.push(sent);
        }
        Ok(())
    }

    /// All that can come next.
    fn successors(&self, state: &State, holds: bool) -> Result<Vec<State>, Wrong> {
        let mut found = vec![];
        for guest in self.guests() {
            self.wake(state, guest, &mut found);
            if state.waking[guest].is_some() {
                continue;
            }
            if holds {
                self.obey(state, guest, &mut found);
            }
            if state.told[guest] != state.tellable(guest) {
                let mut told = state.clone();
                self.tell(&mut told, guest, state.tellable(guest));
                // It may go on to there, but need not at once: its clock may be held back by that of the host.
                if self.reach(&told, guest) > told.told[guest] {
                    told.horizons[guest] = self.reach(&told, guest).min(self.most(&told, guest));
                }
                found.push(told);
            }
            self.act(state, guest, &mut found)?;
        }
        Ok(found)
    }

    /// Walks through all that can happen, from timers at `begin`; how many states there are.
    fn explore(&self, begin: &[u64], left: u32, wakes: u32, holds: bool) -> Result<usize, Wrong> {
        let n = begin.len();
        let first = State {
            told: vec![0; n],
            now: vec![0; n],
            horizons: vec![0; n],
            events: begin.iter().map(|&at| if at == NEVER { vec![] } else { vec![at] }).collect(),
            working: vec![None; n],
            waking: vec![None; n],
            orders: vec![Order::Run; n],
            stands: vec![NEVER; n],
            left,
            wakes,
        };
        let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
        while let Some(state) = open.pop() {
            let after = self.successors(&state, holds)?;
            if after.is_empty() && !state.events.iter().all(Vec::is_empty) {
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

fn pair(there: u64, back: u64) -> Vec<Vec<u64>> {
    vec![vec![NEVER, there], vec![back, NEVER]]
}

fn chain() -> Vec<Vec<u64>> {
    vec![vec![NEVER, 1, NEVER], vec![1, NEVER, 3], vec![NEVER, 2, NEVER]]
}

fn explore(manner: Manner, delays: Vec<Vec<u64>>, begin: &[u64], left: u32, wakes: u32) -> Result<usize, Wrong> {
    System::new(manner, delays).explore(begin, left, wakes, false)
}

#[test]
fn who_is_woken_and_tells_later_sends_into_the_past() {
    assert_eq!(explore(Manner::TellsLater, pair(1, 1), &[5, 3], 1, 1), Err(Wrong::Late), "the essay's counterexample");
    assert!(explore(Manner::Right, pair(1, 1), &[5, 3], 1, 1).is_ok());
}

#[test]
fn who_is_woken_and_keeps_its_horizon_is_answered_in_its_past() {
    assert_eq!(explore(Manner::KeepsOwn, pair(1, 1), &[9, NEVER], 2, 1), Err(Wrong::Late));
    assert!(explore(Manner::Right, pair(1, 1), &[9, NEVER], 2, 1).is_ok());
}

#[test]
fn guests_that_are_woken_do_not_if_they_tell_in_the_same_step() {
    let mut states = 0;
    let pairs = [(1, 1), (1, 3), (2, 1)].map(|(there, back)| (pair(there, back), vec![3, 5]));
    for (delays, begin) in pairs.into_iter().chain([(chain(), vec![2, 4, 6])]) {
        states += explore(Manner::Right, delays, &begin, 2, 2).unwrap();
    }
    assert!(states > 1000);
    println!("{states} states");
}

#[test]
fn who_is_woken_where_it_stands_sends_into_the_past_of_those_that_keep_their_horizon() {
    let held = |manner| System::new(manner, pair(1, 1)).explore(&[5, 5], 1, 1, true);
    assert_eq!(held(Manner::KeepsHorizon), Err(Wrong::Late));
    assert!(held(Manner::Right).is_ok());
}

#[test]
fn guests_that_are_held_and_woken_and_released_do_not() {
    let mut states = 0;
    for (delays, begin, left) in [
        (pair(1, 1), vec![3, 5], 2),
        (pair(1, 3), vec![4, 1], 1),
        (pair(2, 1), vec![6, 6], 1),
        (pair(2, 2), vec![2, NEVER], 1),
        (chain(), vec![2, NEVER, NEVER], 1),
    ] {
        let found = System::new(Manner::Right, delays).explore(&begin, left, 1, true).unwrap();
        println!("{begin:?}: {found} states");
        states += found;
    }
    assert!(states > 1000);
    println!("{states} states");
}

#[test]
fn who_works_on_where_it_was_to_stand_is_told_to_go_on_and_has_nowhere_to_if_it_stays_behind() {
    let held = |manner| System::new(manner, pair(2, 2)).at_work().explore(&[5, 9], 2, 0, true);
    assert_eq!(held(Manner::StaysBehind), Err(Wrong::Stuck));
    assert!(held(Manner::Right).is_ok());
}

#[test]
fn guests_that_work_on_where_they_were_to_stand_do_not_send_into_the_past_either() {
    let mut states = 0;
    for (delays, begin) in [(pair(2, 2), vec![3, 5]), (pair(2, 3), vec![4, 1]), (pair(3, 2), vec![2, NEVER])] {
        let found = System::new(Manner::Right, delays).at_work().explore(&begin, 2, 1, true).unwrap();
        println!("{begin:?}: {found} states");
        states += found;
    }
    assert!(states > 1000);
    println!("{states} states");
}

#[test]
fn two_guests_never_send_into_the_past_and_never_wait_for_each_other() {
    let mut states = 0;
    for there in 1..=3 {
        for back in 1..=3 {
            for begin in [[0, 0], [0, 5], [1, NEVER]] {
                states += explore(Manner::Right, pair(there, back), &begin, 4, 0).unwrap();
            }
        }
    }
    assert!(states > 1000);
    println!("{states} states");
}

#[test]
fn three_guests_in_a_chain_a_ring_and_a_star_do_not_either() {
    let ring = vec![vec![NEVER, 1, NEVER], vec![NEVER, NEVER, 2], vec![1, NEVER, NEVER]];
    let mesh = vec![vec![NEVER, 1, 3], vec![2, NEVER, 1], vec![1, 3, NEVER]];
    for delays in [chain(), ring, mesh] {
        for begin in [[0, 0, 0], [0, 4, NEVER], [NEVER, 2, 7]] {
            assert!(explore(Manner::Right, delays.clone(), &begin, 3, 0).unwrap() > 100);
        }
    }
}
