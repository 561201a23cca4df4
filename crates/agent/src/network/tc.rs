//! Queue disciplines as netlink requests: a chain, each the child of the one before it.
//!
//! A chain is changed where it differs. A discipline that stays what it is gets its new parameters while it keeps its
//! packets; from the first one on that becomes another kind (or cannot be changed) the chain is made anew, and the
//! packets in that part of it are lost. The layouts are those of `linux/pkt_sched.h`.

mod disciplines;
mod netem;
mod red;

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::network::netlink::Request;
use crate::plan::queues::Qdisc;

/// `TC_H_ROOT` of `linux/pkt_sched.h`: the parent of an interface's first queue discipline.
const ROOT: u32 = 0xFFFF_FFFF;
const BITS_PER_BYTE: u64 = 8;
/// `PSCHED_SHIFT` of the kernel: its unit of time for queue disciplines is 64 ns.
const TICK_NS: u64 = 64;

/// The distribution tables of the plan.
pub type Tables = BTreeMap<String, Vec<i16>>;

/// The requests that turn the chain `old` of interface number `index` into `new`, each with what it is about.
///
/// # Errors
/// A table that the plan does not have, or a rate that the kernel cannot reckon with.
pub fn requests(index: u32, old: &[Qdisc], new: &[Qdisc], tables: &Tables) -> Result<Vec<(Request, String)>> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let anew = old.iter().zip(new).take_while(|(old, new)| old == new || can_become(old, new)).count();
    let anew = if old.len() > new.len() { anew.min(new.len().saturating_sub(1)) } else { anew };
    let mut found = Vec::new();
    if anew < old.len() {
        let request = Request::new(libc::RTM_DELQDISC, 0).structure(&header(index, 0, parent(anew)));
        found.push((request, format!("removal of {}", old[anew].kind())));
    }
    for (position, qdisc) in new.iter().enumerate().skip(same.min(anew)) {
        // What hangs below a change is told its parameters again, as a tbf sets the limit of a plain queue below it to its own.
        if position < anew && !can_become(&old[position], qdisc) {
            continue;
        }
        let flags = if position < anew { 0 } else { libc::NLM_F_CREATE | libc::NLM_F_EXCL };
        let class = disciplines::class(qdisc)?;
        // A shaper with one class has its parameters there.
        if flags != 0 || class.is_none() {
            let header = header(index, handle(position), parent(position));
            let request = Request::new(libc::RTM_NEWQDISC, flags).structure(&header).text(libc::TCA_KIND, qdisc.kind());
            found.push((options(request, qdisc, tables, flags != 0)?, qdisc.kind().to_owned()));
        }
        if let Some(class) = class {
            let header = header(index, handle(position) | 1, handle(position));
            let request = Request::new(libc::RTM_NEWTCLASS, flags).structure(&header);
            let request = request.text(libc::TCA_KIND, qdisc.kind()).nested(libc::TCA_OPTIONS, |it| it.append(&class));
            found.push((request, format!("class of {}", qdisc.kind())));
        }
    }
    Ok(found)
}

/// Whether a discipline can take the parameters of another one while it holds packets.
fn can_become(old: &Qdisc, new: &Qdisc) -> bool {
    match (old, new) {
        (Qdisc::Sfq { .. }, _) => false,
        (Qdisc::FqCodel { flows: old, .. }, Qdisc::FqCodel { flows: new, .. }) => old == new,
        _ => old.kind() == new.kind(),
    }
}

fn options(request: Request, qdisc: &Qdisc, tables: &Tables, anew: bool) -> Result<Request> {
    match qdisc {
        Qdisc::Netem(netem) => {
            let table = match &netem.table {
                None => None,
                Some(name) => {
                    Some(tables.get(name).ok_or_else(|| Error::new(format!("plan.json: no table {name}")))?.as_slice())
                }
            };
            Ok(netem::options(request, netem, table))
        }
        Qdisc::Red(red) => Ok(red::options(request, red)),
        other => Ok(disciplines::options(request, other, anew)),
    }
}

/// `struct tcmsg`.
pub fn header(index: u32, handle: u32, parent: u32) -> [u8; 20] {
    let mut header = [0; 20];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    header
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

/// A rate in bytes per second, rounded up.
fn bytes_per_s(rate_bit_per_s: u64) -> u64 {
    rate_bit_per_s.div_ceil(BITS_PER_BYTE)
}

/// What fits of a rate into 32 bits; the whole of it goes into an attribute of its own.
fn small(bytes_per_s: u64) -> u32 {
    u32::try_from(bytes_per_s).unwrap_or(u32::MAX)
}

/// A ratio 0..=1 as the kernel's 32 bit probability.
fn probability(ratio: f64) -> u32 {
    (ratio * f64::from(u32::MAX)).round() as u32
}

/// Structures of 32 bit words.
fn words<const N: usize>(values: [u32; N]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(old: &[Qdisc], new: &[Qdisc]) -> Vec<String> {
        requests(2, old, new, &Tables::new()).unwrap().into_iter().map(|(_, what)| what).collect()
    }

    const SHAPER: Qdisc = Qdisc::Hfsc { rate_bit_per_s: 1000 };
    const FASTER: Qdisc = Qdisc::Hfsc { rate_bit_per_s: 2000 };
    const QUEUE: Qdisc = Qdisc::Pfifo { limit_packets: 5 };
    const BYTES: Qdisc = Qdisc::Bfifo { limit_bytes: 5 };

    #[test]
    fn a_chain_hangs_each_discipline_below_the_one_before() {
        assert_eq!((handle(0), parent(0)), (0x1_0000, ROOT));
        assert_eq!((handle(1), parent(1)), (0x2_0000, 0x1_0001));
        assert_eq!(about(&[], &[SHAPER, QUEUE]), ["hfsc", "class of hfsc", "pfifo"]);
    }

    #[test]
    fn a_change_of_parameters_touches_only_what_differs_and_what_hangs_below() {
        assert_eq!(about(&[SHAPER, QUEUE], &[SHAPER, QUEUE]), [""; 0]);
        assert_eq!(about(&[SHAPER, QUEUE], &[FASTER, QUEUE]), ["class of hfsc", "pfifo"]);
    }

    #[test]
    fn fq_codel_keeps_its_packets_unless_its_number_of_flows_changes() {
        let fq_codel = |flows, target_ns| Qdisc::FqCodel {
            limit_packets: 5,
            flows,
            target_ns,
            interval_ns: 9,
            quantum_bytes: 1514,
            ecn: false,
        };
        assert_eq!(about(&[fq_codel(8, 1)], &[fq_codel(8, 2)]), ["fq_codel"]);
        assert_eq!(about(&[fq_codel(8, 1)], &[fq_codel(9, 1)]), ["removal of fq_codel", "fq_codel"]);
    }

    #[test]
    fn a_discipline_that_cannot_be_changed_stays_as_it_is_below_one_that_is() {
        let sfq = |limit_packets| Qdisc::Sfq { limit_packets, quantum_bytes: 1514 };
        assert_eq!(about(&[SHAPER, sfq(9)], &[FASTER, sfq(9)]), ["class of hfsc"]);
        assert_eq!(about(&[SHAPER, sfq(9)], &[FASTER, sfq(8)]), ["removal of sfq", "class of hfsc", "sfq"]);
    }

    #[test]
    fn from_the_first_other_kind_on_a_chain_is_made_anew() {
        assert_eq!(about(&[SHAPER, QUEUE], &[SHAPER, BYTES]), ["removal of pfifo", "bfifo"]);
        assert_eq!(about(&[SHAPER, QUEUE], &[QUEUE]), ["removal of hfsc", "pfifo"]);
        assert_eq!(about(&[SHAPER], &[SHAPER, QUEUE]), ["pfifo"]);
        assert_eq!(about(&[SHAPER, QUEUE], &[]), ["removal of hfsc"]);
        assert_eq!(about(&[SHAPER, QUEUE], &[SHAPER]), ["removal of hfsc", "hfsc", "class of hfsc"]);
    }

    #[test]
    fn a_rate_beyond_what_hfsc_reckons_with_is_refused_and_not_cut_off() {
        let shaper = |rate_bit_per_s| [Qdisc::Hfsc { rate_bit_per_s }];
        let most = 8 * u64::from(u32::MAX);
        assert!(requests(2, &[], &shaper(most), &Tables::new()).is_ok());
        assert!(requests(2, &[], &shaper(most + 1), &Tables::new()).is_err());
    }

    #[test]
    fn probabilities_span_the_whole_range() {
        assert_eq!(probability(0.0), 0);
        assert_eq!(probability(0.5), 1 << 31);
        assert_eq!(probability(1.0), u32::MAX);
    }
}
