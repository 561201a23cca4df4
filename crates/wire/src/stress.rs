//! Guests as threads: each does what the seed says, at instants of its own, as fast as it can. What is promised of frames
//! is looked at for every frame, and what happens must not depend on who was faster.

use core::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::vec::Vec;

use crate::lives::{live, network, History};
use crate::testing::laid_out;

fn run(guests: usize, ways: &[(usize, usize, u64)], seed: u64, end_ns: u64) -> Vec<History> {
    let wire = laid_out(guests, ways, 1 << 20);
    let threads: Vec<_> = (0..guests)
        .map(|number| {
            let wire = wire.clone();
            thread::spawn(move || live(&wire, number, seed, end_ns))
        })
        .collect();
    let histories = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for way in 0..wire.ways() {
        let way = wire.way(way);
        assert_eq!(way.frames_late.load(Relaxed), 0, "seed {seed}");
        assert_eq!(way.frames_disordered.load(Relaxed), 0, "seed {seed}");
        assert!(way.frames_received.load(Relaxed) <= way.frames_sent.load(Relaxed));
    }
    histories
}

#[test]
fn a_thousand_random_networks_run_to_their_end_with_every_frame_in_time_and_in_order() {
    let mut happened = 0;
    for seed in 0..1000 {
        let (guests, ways) = network(seed);
        happened += run(guests, &ways, seed, 2000).iter().map(Vec::len).sum::<usize>();
    }
    assert!(happened > 30_000, "{happened}");
}

#[test]
fn what_happens_does_not_depend_on_who_is_faster() {
    for seed in 0..10 {
        let (guests, ways) = network(seed);
        let first = run(guests, &ways, seed, 20_000);
        for _ in 0..3 {
            assert_eq!(run(guests, &ways, seed, 20_000), first, "seed {seed}");
        }
    }
}
