//! Queue disciplines as netlink requests: a chain of netem, each the child of the one before it.
//!
//! The layout is that of `linux/pkt_sched.h`: `struct tc_netem_qopt`, then attributes within the same options.

use crate::netlink::Request;
use crate::plan::Qdisc;

/// `TC_H_ROOT` of `linux/pkt_sched.h`: the parent of an interface's first queue discipline.
const ROOT: u32 = 0xFFFF_FFFF;
const NETEM_RATE: u16 = 6;
const NETEM_RATE64: u16 = 8;
const NETEM_LATENCY64: u16 = 10;
const BITS_PER_BYTE: u64 = 8;

/// The request that puts `qdisc` at `position` (0: the root) of the chain on interface number `index`.
pub fn request(index: u32, position: usize, qdisc: &Qdisc) -> Request {
    let Qdisc::Netem { delay_ns, rate_bit_per_s, loss, limit_packets } = qdisc;
    let mut header = [0; 20]; // struct tcmsg
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&handle(position).to_ne_bytes());
    header[12..16].copy_from_slice(&parent(position).to_ne_bytes());
    let mut options = [0; 24]; // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter
    options[4..8].copy_from_slice(&limit_packets.to_ne_bytes());
    options[8..12].copy_from_slice(&probability(*loss).to_ne_bytes());
    Request::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .structure(&header)
        .text(libc::TCA_KIND, "netem")
        .nested(libc::TCA_OPTIONS, |request| {
            let request = request.structure(&options).attribute(NETEM_LATENCY64, &delay_ns.to_ne_bytes());
            match rate_bit_per_s {
                Some(rate) => with_rate(request, rate.div_ceil(BITS_PER_BYTE)),
                None => request,
            }
        })
}

fn with_rate(request: Request, bytes_per_s: u64) -> Request {
    let mut rate = [0; 16]; // struct tc_netem_rate: rate, packet overhead, cell size, cell overhead
    let small = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    rate[0..4].copy_from_slice(&small.to_ne_bytes());
    let request = request.attribute(NETEM_RATE, &rate);
    if bytes_per_s > u64::from(u32::MAX) {
        request.attribute(NETEM_RATE64, &bytes_per_s.to_ne_bytes())
    } else {
        request
    }
}

/// Handles count from `1:`.
fn handle(position: usize) -> u32 {
    (position as u32 + 1) << 16
}

/// The only class of the one before it, as `1:1`.
fn parent(position: usize) -> u32 {
    match position {
        0 => ROOT,
        _ => handle(position - 1) | 1,
    }
}

/// A ratio 0..=1 as the kernel's 32 bit probability.
fn probability(ratio: f64) -> u32 {
    (ratio * f64::from(u32::MAX)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_hangs_each_discipline_below_the_one_before() {
        assert_eq!((handle(0), parent(0)), (0x1_0000, ROOT));
        assert_eq!((handle(1), parent(1)), (0x2_0000, 0x1_0001));
    }

    #[test]
    fn probabilities_span_the_whole_range() {
        assert_eq!(probability(0.0), 0);
        assert_eq!(probability(0.5), 1 << 31);
        assert_eq!(probability(1.0), u32::MAX);
    }
}
