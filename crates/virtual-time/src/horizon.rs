//! How far one of many clocks may run while the others are behind it.
//!
//! **Problem.** Guests compute at the same time, each at its own pace, and send each other frames that take a delay of
//! virtual time. A frame that arrives in its receiver's past would be a result that no network gives. So how far may a
//! guest run, when all that is known of the others is an instant for each before which nothing happens in it?
//!
//! **Why the obvious fails.** To run in steps of the shortest delay, all together, makes everybody wait for the slowest at
//! every step, and the steps are those of the shortest link wherever it is. To ask neighbours alone stands still, or
//! creeps, when two idle guests wait for each other (the null messages of Chandy and Misra, IEEE TSE 5(5), 1979).
//!
//! **The rule.** Nothing happens in guest j before next(j): where it is, while it runs; its next timer or arrival, while it
//! idles. What it does then reaches guest i no sooner than dist(j, i) later, the shortest sum of delays over one wire or
//! more; its own doings come back to i itself after the shortest way there and back. So
//!
//! ```text
//! horizon(i) = min over all j of next(j) + dist(j, i)
//! ```
//!
//! and i may run up to its horizon, but not reach it: then all that ever arrives at an instant is known before the instant
//! comes, and what a guest does at it depends on no race. Every delay is above zero, so the guest whose next(·) is least
//! is below its horizon, and somebody may always go on. When all idle, it is to the least next(·) of all that they jump.
//!
//! **Woken from outside.** A guest that idles has told of itself that nothing happens in it before its next event, and others
//! run on that. If the host then has something for it, it goes on from the first instant from which nothing that it sends
//! arrives below another's horizon ([`wakes_at`]), and tells so *in the same step*. If it looked first and told later,
//! others would be let run on in between, by what it had told before, and all that it sent from then on would be late.
//!
//! The tests walk through every order in which small systems can run, and find what happens to a guest that tells later.

use crate::{VirtualDuration, VirtualInstant};

/// The horizon of a guest, from the next instant of every guest and its distance from there; never, where nothing can
/// reach it.
#[must_use]
pub fn horizon(all: impl Iterator<Item = (VirtualInstant, VirtualDuration)>) -> VirtualInstant {
    all.map(|(next, distance)| next.plus(distance)).min().unwrap_or(VirtualInstant::NEVER)
}

/// The instant from which a guest goes on that has told of itself that nothing happens in it before `next`, and that
/// something outside of virtual time wakes when its clock is at `now`.
///
/// Of each other guest: its horizon, the distance to it, and whether that horizon is only a bound, which may be beyond what
/// is next here. A horizon itself is not, unless it was given when nothing could happen here either.
#[must_use]
pub fn wakes_at(
    now: VirtualInstant,
    next: VirtualInstant,
    others: impl Iterator<Item = (VirtualInstant, VirtualDuration, bool)>,
) -> VirtualInstant {
    let earliest = others.map(|(horizon, distance, is_bound)| {
        let at = VirtualInstant::from_ns(horizon.as_ns().saturating_sub(distance.as_ns()));
        if is_bound {
            at.min(next)
        } else {
            at
        }
    });
    earliest.filter(|&at| at <= next).fold(now, VirtualInstant::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::vec::Vec;
    use std::{println, vec};

    const NEVER: u64 = u64::MAX;

    fn instant(ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(ns)
    }

    /// A small system: delays from each guest to each, `NEVER` where no wire is.
    struct System {
        delays: Vec<Vec<u64>>,
        distances: Vec<Vec<u64>>,
    }

    impl System {
        fn new(delays: Vec<Vec<u64>>) -> Self {
            let n = delays.len();
            let mut distances = delays.clone();
            for k in 0..n {
                for i in 0..n {
                    for j in 0..n {
                        distances[i][j] = distances[i][j].min(distances[i][k].saturating_add(distances[k][j]));
                    }
                }
            }
            Self { delays, distances }
        }
    }

    /// One state: of each guest what it has told of itself, where it is, how far it was let run, its timer and its
    /// arrivals, and from where it means to go on; and how many frames and timers there may be yet, and how often the host
    /// wakes somebody.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct State {
        told: Vec<u64>,
        now: Vec<u64>,
        horizons: Vec<u64>,
        events: Vec<Vec<u64>>,
        waking: Vec<Option<u64>>,
        left: u32,
        wakes: u32,
    }

    struct Late;

    impl State {
        fn next(&self, guest: usize) -> u64 {
            self.events[guest].iter().copied().min().unwrap_or(NEVER)
        }
    }

    /// Guests that idle are woken, and tell from where they go on, in the same step or later.
    fn woken(system: &System, state: &State, at_once: bool, found: &mut Vec<State>) {
        for guest in 0..state.told.len() {
            let mut woken = state.clone();
            let wakes_at = if let Some(at) = woken.waking[guest].take() {
                at
            } else if state.wakes > 0 && state.told[guest] == state.next(guest) {
                let others = (0..state.told.len()).filter(|&other| other != guest).map(|other| {
                    let distance = VirtualDuration::from_ns(system.distances[guest][other]);
                    (instant(state.horizons[other]), distance, false)
                });
                woken.wakes -= 1;
                let at = wakes_at(instant(state.now[guest]), instant(state.told[guest]), others).as_ns();
                if !at_once {
                    woken.waking[guest] = Some(at);
                    found.push(woken);
                    continue;
                }
                at
            } else {
                continue;
            };
            woken.told[guest] = wakes_at;
            woken.events[guest].push(wakes_at);
            woken.events[guest].sort_unstable();
            found.push(woken);
        }
    }

    /// All that can come next: some guest tells where it is, or does what is next in it, or is woken.
    fn successors(system: &System, state: &State, at_once: bool) -> Result<Vec<State>, Late> {
        let n = state.told.len();
        let mut found = vec![];
        woken(system, state, at_once, &mut found);
        for guest in (0..n).filter(|&guest| state.waking[guest].is_none()) {
            let next = state.next(guest);
            if state.told[guest] != next {
                let mut told = state.clone();
                told.told[guest] = next;
                found.push(told);
            }
            let reach =
                horizon((0..n).map(|j| (instant(state.told[j]), VirtualDuration::from_ns(system.distances[j][guest]))))
                    .as_ns()
                    .max(state.horizons[guest]);
            if next >= reach {
                continue;
            }
            let mut done = state.clone();
            // It has told no more than where it is when it begins to run.
            done.told[guest] = done.told[guest].min(next);
            done.now[guest] = next;
            done.horizons[guest] = reach;
            let first = done.events[guest].iter().position(|&event| event == next).unwrap();
            done.events[guest].remove(first);
            found.push(done.clone());
            if done.left == 0 {
                continue;
            }
            done.left -= 1;
            let mut timer = done.clone();
            timer.events[guest].push(next + 2);
            timer.events[guest].sort_unstable();
            found.push(timer);
            for to in 0..n {
                if system.delays[guest][to] == NEVER {
                    continue;
                }
                let mut sent = done.clone();
                let arrival = next + system.delays[guest][to];
                if arrival < sent.horizons[to] {
                    return Err(Late);
                }
                sent.events[to].push(arrival);
                sent.events[to].sort_unstable();
                sent.told[to] = sent.told[to].min(arrival);
                found.push(sent);
            }
        }
        Ok(found)
    }

    /// Walks through all that can happen, from timers at `begin`; returns how many states there are.
    fn explore(delays: Vec<Vec<u64>>, begin: &[u64], left: u32) -> usize {
        walk(delays, begin, left, 0, true).unwrap_or_else(|Late| panic!("a frame arrives too late"))
    }

    fn walk(delays: Vec<Vec<u64>>, begin: &[u64], left: u32, wakes: u32, at_once: bool) -> Result<usize, Late> {
        let system = System::new(delays);
        let n = begin.len();
        let events: Vec<Vec<u64>> = begin.iter().map(|&at| if at == NEVER { vec![] } else { vec![at] }).collect();
        let (zeros, waking) = (vec![0; n], vec![None; n]);
        let first = State { told: zeros.clone(), now: zeros.clone(), horizons: zeros, events, waking, left, wakes };
        let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
        while let Some(state) = open.pop() {
            let after = successors(&system, &state, at_once)?;
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

    #[test]
    fn who_is_woken_and_tells_later_sends_into_the_past() {
        let delays = || vec![vec![NEVER, 1], vec![1, NEVER]];
        assert!(walk(delays(), &[5, 3], 1, 1, false).is_err(), "the counterexample of the essay");
        assert!(walk(delays(), &[5, 3], 1, 1, true).is_ok());
    }

    #[test]
    fn guests_that_are_woken_do_not_if_they_tell_in_the_same_step() {
        let mut states = 0;
        let chain = vec![vec![NEVER, 1, NEVER], vec![1, NEVER, 3], vec![NEVER, 2, NEVER]];
        let pairs = [(1, 1), (1, 3), (2, 1)].map(|(there, back)| vec![vec![NEVER, there], vec![back, NEVER]]);
        for (delays, begin) in pairs.into_iter().map(|pair| (pair, vec![3, 5])).chain([(chain, vec![2, 4, 6])]) {
            states += walk(delays, &begin, 2, 2, true).unwrap_or_else(|Late| panic!("a frame arrives too late"));
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
                    states += explore(vec![vec![NEVER, there], vec![back, NEVER]], &begin, 4);
                }
            }
        }
        assert!(states > 1000);
        println!("{states} states");
    }

    #[test]
    fn three_guests_in_a_chain_a_ring_and_a_star_do_not_either() {
        let chain = vec![vec![NEVER, 1, NEVER], vec![1, NEVER, 3], vec![NEVER, 2, NEVER]];
        let ring = vec![vec![NEVER, 1, NEVER], vec![NEVER, NEVER, 2], vec![1, NEVER, NEVER]];
        let mesh = vec![vec![NEVER, 1, 3], vec![2, NEVER, 1], vec![1, 3, NEVER]];
        for delays in [chain, ring, mesh] {
            for begin in [[0, 0, 0], [0, 4, NEVER], [NEVER, 2, 7]] {
                assert!(explore(delays.clone(), &begin, 3) > 100);
            }
        }
    }

    #[test]
    fn nobody_in_reach_means_no_horizon() {
        assert_eq!(horizon(core::iter::empty()), VirtualInstant::NEVER);
        let unreachable = [(instant(5), VirtualDuration::from_ns(u64::MAX))];
        assert_eq!(horizon(unreachable.into_iter()), VirtualInstant::NEVER);
    }

    #[test]
    fn the_nearest_of_all_that_can_be_felt_is_the_horizon() {
        let all = [(instant(100), VirtualDuration::from_ns(1)), (instant(5), VirtualDuration::from_ns(20))];
        assert_eq!(horizon(all.into_iter()), instant(25));
    }
}
