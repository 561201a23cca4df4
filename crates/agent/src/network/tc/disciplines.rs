//! The parameters of the disciplines other than netem and red.

use super::{bytes_per_s, small, words, TICK_NS};
use crate::error::{Error, Result};
use crate::network::netlink::Request;
use crate::plan::queues::Qdisc;

/// The link layer in `struct tc_ratespec`: Ethernet, so that the kernel reckons without a table.
const LINK_LAYER_ETHERNET: u8 = 1;
/// The class that packets go to: `:1`, the only one.
const DEFAULT_CLASS: u32 = 1;
const HTB_VERSION: u32 = 3;
/// What a class may send in its turn; with one class it says nothing.
const HTB_QUANTUM_BYTES: u32 = 1514;
/// `fq` keeps packets for as long as it can: 2^32 us.
const FQ_HORIZON_US: u32 = u32::MAX;

/// Appends the options of a discipline to a request, which makes it `anew` or changes it.
pub fn options(request: Request, qdisc: &Qdisc, anew: bool) -> Request {
    let with = |structure: &[u8]| Request::empty().structure(structure);
    let us = |ns: u64| (ns / 1000) as u32;
    let payload = match *qdisc {
        Qdisc::Pfifo { limit_packets: limit } | Qdisc::Bfifo { limit_bytes: limit } => with(&limit.to_ne_bytes()),
        Qdisc::Hfsc { .. } => return request.attribute(libc::TCA_OPTIONS, &(DEFAULT_CLASS as u16).to_ne_bytes()),
        // Version, rate to quantum, default class, debugging, packets that met no class.
        Qdisc::Htb { .. } => attributes(&[]).attribute(2, &words([HTB_VERSION, 10, DEFAULT_CLASS, 0, 0])),
        Qdisc::Tbf { rate_bit_per_s, burst_bytes } => {
            let rate = bytes_per_s(rate_bit_per_s);
            // Limit, bucket and MTU; the queue below and the attribute of the burst count instead.
            let structure = [&rate_spec(rate)[..], &[0; 12], &words([u32::MAX, 0, 0])].concat();
            attributes(&[(6, burst_bytes)]).attribute(1, &structure).attribute(4, &rate.to_ne_bytes())
        }
        Qdisc::Codel { limit_packets, target_ns, interval_ns, ecn } => {
            attributes(&[(1, us(target_ns)), (2, limit_packets), (3, us(interval_ns)), (4, u32::from(ecn))])
        }
        Qdisc::FqCodel { limit_packets, flows, target_ns, interval_ns, quantum_bytes, ecn } => {
            let options = attributes(&[
                (1, us(target_ns)),
                (2, limit_packets),
                (3, us(interval_ns)),
                (4, u32::from(ecn)),
                (6, quantum_bytes),
            ]);
            // The kernel takes it of a new one only.
            if anew {
                options.attribute(5, &flows.to_ne_bytes())
            } else {
                options
            }
        }
        Qdisc::Pie { limit_packets, target_ns, ecn } => {
            attributes(&[(1, us(target_ns)), (2, limit_packets), (6, u32::from(ecn))])
        }
        Qdisc::Cake { rate_bit_per_s, limit_bytes } => {
            attributes(&[(10, limit_bytes)]).attribute(2, &bytes_per_s(rate_bit_per_s).to_ne_bytes())
        }
        // Quantum, perturbation, limit, divisor, flows.
        Qdisc::Sfq { limit_packets, quantum_bytes } => with(&words([quantum_bytes, 0, limit_packets, 0, 0])),
        // Limit, limit of a flow, pacing, slack of timers, horizon.
        Qdisc::Fq { limit_packets, flow_limit_packets } => {
            attributes(&[(1, limit_packets), (2, flow_limit_packets), (5, 0), (13, 0), (14, FQ_HORIZON_US)])
        }
        Qdisc::Netem(_) | Qdisc::Red(_) => unreachable!("has a module of its own"),
    };
    request.nested(libc::TCA_OPTIONS, |request| request.append(&payload))
}

/// The options of the only class of a shaper that has classes.
///
/// # Errors
/// The kernel cannot reckon with its rate, as where the guest's clock runs much slower than the lab's.
pub fn class(qdisc: &Qdisc) -> Result<Option<Request>> {
    Ok(match *qdisc {
        Qdisc::Hfsc { rate_bit_per_s } => {
            let rate = u32::try_from(bytes_per_s(rate_bit_per_s)).map_err(|_| {
                Error::new(format!(
                    "hfsc: {rate_bit_per_s} bit/s on the guest's own clock is more than the kernel takes"
                ))
            })?;
            // First slope, its duration, second slope: of a share of the link, of which there is one, and of its upper limit.
            let curve = words([0, 0, rate]);
            Some(attributes(&[]).attribute(2, &curve).attribute(3, &curve))
        }
        Qdisc::Htb { rate_bit_per_s, burst_bytes } => {
            let rate = bytes_per_s(rate_bit_per_s);
            let ticks = u128::from(burst_bytes) * 1_000_000_000 / u128::from(rate.max(1)) / u128::from(TICK_NS);
            let bucket = u32::try_from(ticks.max(1)).unwrap_or(u32::MAX);
            // Buckets of rate and ceiling, quantum, level, priority.
            let rest = words([bucket, bucket, HTB_QUANTUM_BYTES, 0, 0]);
            let structure = [rate_spec(rate), rate_spec(rate), rest].concat();
            let request = attributes(&[]).attribute(1, &structure);
            Some(request.attribute(6, &rate.to_ne_bytes()).attribute(7, &rate.to_ne_bytes()))
        }
        _ => None,
    })
}

/// `struct tc_ratespec`.
fn rate_spec(bytes_per_s: u64) -> Vec<u8> {
    let mut spec = vec![0, LINK_LAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    spec.extend(small(bytes_per_s).to_ne_bytes());
    spec
}

/// Attributes of 32 bits.
fn attributes(values: &[(u16, u32)]) -> Request {
    values.iter().fold(Request::empty(), |request, (kind, value)| request.attribute(*kind, &value.to_ne_bytes()))
}
