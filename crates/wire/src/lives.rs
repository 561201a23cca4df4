//! Threads that live as guests, for tests here and of crates/relay.

use core::sync::atomic::Ordering::Relaxed;
use std::vec;
use std::vec::Vec;

use crate::{Guest, Received, Wire};

/// SplitMix64, as in crates/clock/src/host/entropy.rs.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Instant, way (none for a timer) and first bytes of all that happens in a guest.
pub type History = Vec<(u64, Option<usize>, u64)>;

fn wait(guest: &Guest) {
    loop {
        let watched = guest.watch();
        if guest.may_run() {
            return;
        }
        guest.sleep(watched, None);
    }
}

/// Runs the guest until `end_ns`: timers at random, a frame or none at each event, now and then a stop to tell.
#[must_use]
pub fn live(wire: &Wire, number: usize, seed: u64, end_ns: u64) -> History {
    let guest = Guest::new(wire.clone(), number).unwrap();
    let mut random = Random(seed ^ (number as u64) << 32);
    let ways_out: Vec<usize> =
        (0..wire.ways()).filter(|&way| wire.way(way).sender.load(Relaxed) == number as u64).collect();
    let mut history = vec![];
    let mut timer_ns = random.below(100);
    loop {
        if !guest.pass(timer_ns) {
            wait(&guest);
        }
        let now_ns = timer_ns.min(guest.first_arrival_ns());
        assert!(now_ns < guest.horizon_ns());
        if now_ns >= end_ns {
            guest.leave();
            return history;
        }
        // All arrivals of the instant, by their ways; then the timer.
        let mut events: Vec<(Option<usize>, u64)> = vec![];
        for way in guest.ways_in() {
            let mut bytes = [0_u8; 8];
            let part = [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: 8 }];
            // SAFETY: the part is ours, and so is the way.
            while let Received::Frame { arrival_ns, .. } = unsafe { wire.receive(wire.way(way), now_ns, &part) } {
                assert_eq!(arrival_ns, now_ns, "a guest that idles is given a frame when it arrives");
                events.push((Some(way), u64::from_le_bytes(bytes)));
            }
        }
        if timer_ns == now_ns {
            events.push((None, 0));
            timer_ns = now_ns + 1 + random.below(300);
        }
        assert!(!events.is_empty());
        for (from, value) in events {
            history.push((now_ns, from, value));
            if random.below(3) > 0 && !ways_out.is_empty() {
                let way = wire.way(ways_out[random.below(ways_out.len() as u64) as usize]);
                let mut bytes = random.below(u64::MAX).to_le_bytes();
                let part = [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: 8 }];
                // SAFETY: as above.
                unsafe { guest.send(way, now_ns, &part) }.unwrap();
            }
            if random.below(4) == 0 && guest.tell(now_ns) == now_ns + 1 && !guest.go_on(now_ns) {
                wait(&guest);
            }
        }
    }
}

/// A connected network with some more ways.
#[must_use]
pub fn network(seed: u64) -> (usize, Vec<(usize, usize, u64)>) {
    let mut random = Random(seed);
    let guests = 2 + random.below(4) as usize;
    let mut ways = vec![];
    for one in 1..guests {
        let other = random.below(one as u64) as usize;
        ways.push((one, other, 1 + random.below(200)));
        ways.push((other, one, 1 + random.below(200)));
    }
    for _ in 0..random.below(4) {
        let (from, to) = (random.below(guests as u64) as usize, random.below(guests as u64) as usize);
        if from != to {
            ways.push((from, to, 1 + random.below(200)));
        }
    }
    (guests, ways)
}
