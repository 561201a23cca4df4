//! Machines of guests that are threads, with the hub between them: what happens is what happens on one machine, however
//! late messages come.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use wire::testing::{divide, laid_out};
use wire::Wire;

use crate::carrier::Carrier;
use crate::hub::{Hub, Layout};
use crate::lives::{live, network, History, Random};

/// How long a run may take that takes a second: nobody may wait for ever.
const PATIENCE: Duration = Duration::from_secs(10);

const RING_BYTES: usize = 1 << 20;

type Ways = [(usize, usize, u64)];

fn alone(guests: usize, ways: &Ways, seed: u64, end_ns: u64) -> Vec<History> {
    let wire = laid_out(guests, ways, RING_BYTES);
    let threads: Vec<_> = (0..guests)
        .map(|number| {
            let wire = wire.clone();
            thread::spawn(move || live(&wire, number, seed, end_ns))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Passes messages on, each later than the one before by up to so many microseconds.
fn late<Message: Send + 'static>(mut random: Random, late_us: u64) -> (Sender<Message>, Receiver<Message>) {
    let (sender, slow) = channel();
    let (fast, receiver) = channel();
    thread::spawn(move || {
        for message in slow {
            if late_us > 0 {
                thread::sleep(Duration::from_micros(random.below(late_us)));
            }
            if fast.send(message).is_err() {
                break;
            }
        }
    });
    (sender, receiver)
}

/// The same guests on several machines.
fn divided(homes: &[usize], ways: &Ways, seed: u64, end_ns: u64, late_us: u64) -> Vec<History> {
    let machines = homes.iter().max().unwrap() + 1;
    let layout = Layout { homes: homes.to_vec(), ways: ways.iter().map(|&(from, to, _)| (from, to)).collect() };
    let hub = Arc::new(Mutex::new(Hub::new(layout)));
    let wires: Vec<Wire> = (0..machines)
        .map(|home| {
            let wire = laid_out(homes.len(), ways, RING_BYTES);
            divide(&wire, home, homes);
            wire
        })
        .collect();
    // Whose turn it is, and then what was told: the first is late so that several news make the same tidings.
    let turns: Vec<_> = (0..machines).map(|home| late::<()>(Random(seed + home as u64), late_us)).collect();
    let senders: Vec<_> = turns.iter().map(|(sender, _)| sender.clone()).collect();
    for (home, (_, turns)) in turns.into_iter().enumerate() {
        let (down, tidings) = late::<(Vec<u8>, Vec<u8>)>(Random((seed ^ 0xA5) + home as u64), late_us);
        let asked = Arc::clone(&hub);
        thread::spawn(move || {
            for () in turns {
                let Some(tidings) = asked.lock().unwrap().tidings(home) else { continue };
                let _ = down.send(tidings);
            }
        });
        let carrier = Arc::new(Carrier::new(&wires[home], [7; 32]).unwrap());
        let teller = Arc::clone(&carrier);
        let (up, news) = late::<(Vec<u8>, Vec<u8>)>(Random(seed ^ home as u64), late_us);
        thread::spawn(move || while up.send(teller.news().unwrap()).is_ok() {});
        let (hub, senders) = (Arc::clone(&hub), senders.clone());
        thread::spawn(move || {
            for (news, sealed) in news {
                let mut hub = hub.lock().unwrap();
                for machine in hub.take(home, &news, sealed).unwrap() {
                    let _ = senders[machine].send(());
                }
            }
        });
        thread::spawn(move || {
            for (tidings, mut sealed) in tidings {
                carrier.take(&tidings, &mut sealed).unwrap();
            }
        });
    }
    let (done, histories) = channel();
    for (number, &home) in homes.iter().enumerate() {
        let (wire, done) = (wires[home].clone(), done.clone());
        thread::spawn(move || done.send((number, live(&wire, number, seed, end_ns))).unwrap());
    }
    let mut found = vec![History::new(); homes.len()];
    for _ in homes {
        let (number, history) = histories.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let state = |wire: &Wire, guest: usize| {
                let member = wire.member(guest);
                [&member.state, &member.next_ns, &member.horizon_ns, &member.told_ns, &member.asked_ns]
                    .map(|word| word.load(Relaxed))
            };
            for (home, wire) in wires.iter().enumerate() {
                for (guest, of) in homes.iter().enumerate() {
                    eprintln!("machine {home} guest {guest} of {of}: {:?}", state(wire, guest));
                }
            }
            panic!("seed {seed}: guests on {homes:?} wait for ever");
        });
        found[number] = history;
    }
    for way in wires.iter().flat_map(|wire| (0..ways.len()).map(|way| wire.way(way))) {
        assert_eq!(way.frames_late.load(Relaxed), 0, "seed {seed}");
        assert_eq!(way.frames_disordered.load(Relaxed), 0, "seed {seed}");
    }
    found
}

/// Guests on machines, each of which has some.
fn homes(seed: u64, guests: usize) -> Vec<usize> {
    let mut random = Random(seed ^ 0xA5A5);
    let machines = 2 + random.below(guests as u64 - 1) as usize;
    (0..guests).map(|guest| if guest < machines { guest } else { random.below(machines as u64) as usize }).collect()
}

#[test]
fn what_happens_on_several_machines_is_what_happens_on_one() {
    let mut happened = 0;
    for seed in 0..100 {
        let (guests, ways) = network(seed);
        let expected = alone(guests, &ways, seed, 2000);
        assert_eq!(divided(&homes(seed, guests), &ways, seed, 2000, 0), expected, "seed {seed}");
        happened += expected.iter().map(Vec::len).sum::<usize>();
    }
    assert!(happened > 3000, "{happened}");
}

#[test]
fn however_late_messages_come_it_is_the_same() {
    for seed in 100..500 {
        let (guests, ways) = network(seed);
        let expected = alone(guests, &ways, seed, 1000);
        assert_eq!(divided(&homes(seed, guests), &ways, seed, 1000, 300), expected, "seed {seed}");
    }
}
