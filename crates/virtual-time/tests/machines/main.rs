//! Guests of several machines, the machines and the hub in every order in which they can act (`src/transit.rs`).

mod hub;
mod system;

use system::{Manner, System, Wrong, NEVER};

fn chain(first: u64, second: u64) -> Vec<Vec<u64>> {
    vec![vec![NEVER, first, NEVER], vec![first, NEVER, second], vec![NEVER, second, NEVER]]
}

fn states(manner: Manner, delays: Vec<Vec<u64>>, homes: &[usize], begin: &[u64], left: u32) -> usize {
    System::new(manner, delays, homes.to_vec()).explore(begin, left, 0).unwrap()
}

#[test]
fn the_naive_mirror_sends_into_the_past() {
    let mirror = System::new(Manner::Mirror, chain(1, 1), vec![0, 1, 2]);
    assert_eq!(mirror.explore(&[0, NEVER, 4], 2, 0), Err(Wrong::Late), "the counterexample of the essay");
}

#[test]
fn who_is_not_told_that_its_frame_counts_waits_for_its_receiver_for_ever() {
    let uncounted = |manner| System::new(manner, chain(1, 1), vec![0, 1, 0]).explore(&[0, 5, 4], 1, 0);
    assert_eq!(uncounted(Manner::Uncounted), Err(Wrong::Stuck), "whose word is the same before the frame and after it");
    assert!(uncounted(Manner::OnDemand).is_ok());
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
fn who_is_woken_and_goes_on_from_there_passes_over_what_arrives_before() {
    let woken = |manner| System::new(manner, vec![vec![NEVER, 1], vec![1, NEVER]], vec![0, 1]).explore(&[1, 6], 1, 1);
    assert_eq!(woken(Manner::PassesOver), Err(Wrong::PassedOver));
    assert!(woken(Manner::OnDemand).is_ok());
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
        found += system.explore(&begin, 1, 1).unwrap();
    }
    println!("{found} states");
    assert!(found > 1000);
}
