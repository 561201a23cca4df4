//! netem's parameters: `struct tc_netem_qopt`, then attributes within the same options.
//!
//! The kernel keeps the old value of an attribute that a change leaves out. So all are there whose value would matter; the
//! plan has a table where one is to be replaced, if only by that of the uniform distribution.

use super::{bytes_per_s, probability, small, words};
use crate::network::netlink::Request;
use crate::plan::queues::{Loss, Netem};

// Attributes, `TCA_NETEM_…` of `linux/pkt_sched.h`.
const CORR: u16 = 1;
const DELAY_DIST: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const RATE64: u16 = 8;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
const PRNG_SEED: u16 = 14;
// Within `LOSS`.
const LOSS_GI: u16 = 1;
const LOSS_GE: u16 = 2;

/// Appends the options of a netem to a request.
pub fn options(request: Request, netem: &Netem, table: Option<&[i16]>) -> Request {
    let (loss, loss_correlation) = match netem.loss {
        Some(Loss::Random { probability, correlation }) => (probability, correlation),
        _ => (0.0, 0.0),
    };
    // Latency, limit, loss, gap, duplicate, jitter; both times are in attributes, finer.
    let structure = [0, netem.limit_packets, probability(loss), netem.gap, probability(netem.duplicate), 0];
    let correlations = [netem.delay_correlation, loss_correlation, netem.duplicate_correlation].map(probability);
    let rate = netem.rate_bit_per_s.map_or(0, bytes_per_s);
    request.nested(libc::TCA_OPTIONS, |request| {
        let request = request
            .structure(&words(structure))
            .attribute(CORR, &words(correlations))
            .attribute(REORDER, &words([netem.reorder, netem.reorder_correlation].map(probability)))
            .attribute(CORRUPT, &words([netem.corrupt, netem.corrupt_correlation].map(probability)))
            // Rate, packet overhead, cell size, cell overhead.
            .attribute(RATE, &words([small(rate), 0, 0, 0]))
            .attribute(RATE64, &rate.to_ne_bytes())
            .attribute(LATENCY64, &netem.delay_ns.to_ne_bytes())
            .attribute(JITTER64, &netem.jitter_ns.to_ne_bytes());
        let request = match table {
            Some(values) => request.attribute(DELAY_DIST, &table_bytes(values)),
            None => request,
        };
        // Kernels that do not know it, before Linux 6.7, pass over it.
        let request = match netem.seed {
            Some(seed) => request.attribute(PRNG_SEED, &seed.to_ne_bytes()),
            None => request,
        };
        match netem.loss {
            Some(Loss::Gemodel { p, r, loss_bad, loss_good }) => {
                let model = [p, r, 1.0 - loss_bad, loss_good].map(probability);
                request.nested(LOSS, |request| request.attribute(LOSS_GE, &words(model)))
            }
            Some(Loss::State { p13, p31, p32, p23, p14 }) => {
                let model = [p13, p31, p32, p14, p23].map(probability);
                request.nested(LOSS, |request| request.attribute(LOSS_GI, &words(model)))
            }
            Some(Loss::Random { .. }) | None => request,
        }
    })
}

fn table_bytes(values: &[i16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}
