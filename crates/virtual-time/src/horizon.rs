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
//! The tests walk through every order in which small systems can run.

use crate::{VirtualDuration, VirtualInstant};

/// The horizon of a guest, from the next instant of every guest and its distance from there; never, where nothing can
/// reach it.
#[must_use]
pub fn horizon(all: impl Iterator<Item = (VirtualInstant, VirtualDuration)>) -> VirtualInstant {
    all.map(|(next, distance)| next.plus(distance)).min().unwrap_or(VirtualInstant::NEVER)
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

    /// One state: of each guest what it has told of itself, how far it was let run, its timer and its arrivals; and how
    /// many frames and timers there may be yet.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct State {
        told: Vec<u64>,
        horizons: Vec<u64>,
        events: Vec<Vec<u64>>,
        left: u32,
    }

    impl State {
        fn next(&self, guest: usize) -> u64 {
            self.events[guest].iter().copied().min().unwrap_or(NEVER)
        }
    }

    /// All that can come next: some guest tells where it is, or does what is next in it.
    fn successors(system: &System, state: &State) -> Vec<State> {
        let n = state.told.len();
        let mut found = vec![];
        for guest in 0..n {
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
                assert!(arrival >= sent.horizons[to], "a frame arrives at {arrival}, before {}", sent.horizons[to]);
                sent.events[to].push(arrival);
                sent.events[to].sort_unstable();
                sent.told[to] = sent.told[to].min(arrival);
                found.push(sent);
            }
        }
        found
    }

    /// Walks through all that can happen, from timers at `begin`; returns how many states there are.
    fn explore(delays: Vec<Vec<u64>>, begin: &[u64], left: u32) -> usize {
        let system = System::new(delays);
        let n = begin.len();
        let events: Vec<Vec<u64>> = begin.iter().map(|&at| if at == NEVER { vec![] } else { vec![at] }).collect();
        let first = State { told: vec![0; n], horizons: vec![0; n], events, left };
        let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
        while let Some(state) = open.pop() {
            let after = successors(&system, &state);
            let over = state.events.iter().all(Vec::is_empty);
            assert!(over || !after.is_empty(), "somebody may always go on");
            for next in after {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen.len()
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
