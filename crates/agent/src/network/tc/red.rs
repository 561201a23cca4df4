//! RED's parameters: what tc(8) reckons from the thresholds, after Floyd and Jacobson 1993 (section 4 on the weight of
//! the average, section 7 on its ageing while the queue is idle).

use super::{words, TICK_NS};
use crate::network::netlink::Request;
use crate::plan::queues::Red;

const PARMS: u16 = 1;
const STAB: u16 = 2;
const MAX_P: u16 = 3;
const FLAG_ECN: u8 = 1;
/// Powers of two that the kernel takes.
const LOG_MAX: u8 = 31;
const AGES: usize = 256;

/// Appends the options of a red to a request.
pub fn options(request: Request, red: &Red) -> Request {
    let weight_log = weight_log(red);
    let (cell_log, ages) = ageing(red, weight_log);
    let flags = if red.ecn { FLAG_ECN } else { 0 };
    let mut structure = words([red.limit_bytes, red.min_bytes, red.max_bytes]);
    structure.extend([weight_log, probability_log(red), cell_log, flags]);
    let probability = (red.probability * 2_f64.powi(32)).min(f64::from(u32::MAX)) as u32;
    request.nested(libc::TCA_OPTIONS, |request| {
        request.attribute(PARMS, &structure).attribute(STAB, &ages).attribute(MAX_P, &probability.to_ne_bytes())
    })
}

/// The smallest weight 2^-w with which a burst from an empty queue leaves the average below the lower threshold.
fn weight_log(red: &Red) -> u8 {
    let burst = f64::from(red.burst_packets);
    let beyond = burst + 1.0 - f64::from(red.min_bytes) / f64::from(red.average_packet_bytes);
    (1..LOG_MAX)
        .find(|&log| {
            let weight = 2_f64.powi(-i32::from(log));
            beyond <= (1.0 - (1.0 - weight).powf(burst)) / weight
        })
        .unwrap_or(LOG_MAX)
}

/// -log2 of the probability per byte between the thresholds.
fn probability_log(red: &Red) -> u8 {
    let mut per_byte = red.probability / f64::from(red.max_bytes - red.min_bytes).max(1.0);
    let mut log = 0;
    while per_byte <= 1.0 && log < LOG_MAX {
        per_byte *= 2.0;
        log += 1;
    }
    log
}

/// Returns by how many powers of two the average ages in a time: the logarithm of the table's step, and the table.
fn ageing(red: &Red, weight_log: u8) -> (u8, [u8; AGES]) {
    let bits = u64::from(red.average_packet_bytes) * 8;
    // Whole ticks: fewer than 2^32 of them, since no rate of use is below 1 kbit/s.
    let ticks_per_packet = f64::from((bits * 1_000_000_000 / red.rate_bit_per_s.max(1) / TICK_NS) as u32);
    let per_tick = -(1.0 - 2_f64.powi(-i32::from(weight_log))).log2() / ticks_per_packet.max(1.0);
    let longest = f64::from(LOG_MAX) / per_tick;
    let cell_log = (0..LOG_MAX).find(|&log| longest / 2_f64.powi(i32::from(log)) < 512.0).unwrap_or(LOG_MAX);
    let mut ages = [0; AGES];
    for (cell, age) in (0_u16..).zip(&mut ages) {
        *age = (f64::from(cell) * 2_f64.powi(i32::from(cell_log)) * per_tick).min(f64::from(LOG_MAX)) as u8;
    }
    ages[AGES - 1] = LOG_MAX;
    (cell_log, ages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ages_from_nothing_to_everything() {
        let red = Red {
            limit_bytes: 400_000,
            min_bytes: 30_000,
            max_bytes: 90_000,
            probability: 0.02,
            average_packet_bytes: 1000,
            burst_packets: 55,
            rate_bit_per_s: 10_000_000,
            ecn: false,
        };
        let (_, ages) = ageing(&red, weight_log(&red));
        assert!(ages.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!((ages[0], ages[AGES - 1]), (0, LOG_MAX));
        // The example of tc-red(8) has a weight of 2^-5 to 2^-6.
        assert!((5..=6).contains(&weight_log(&red)), "{}", weight_log(&red));
    }
}
