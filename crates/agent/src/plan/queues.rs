//! Queue disciplines as the plan names them: the mirror of `python/dilaton/plan/links/queues.py`, where every field is
//! explained.

use serde::{Deserialize, Serialize};
use virtual_time::Face;

/// Everything that an interface does to the packets that leave by it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Egress {
    /// The loss of certain packets.
    pub drops: Option<Drops>,
    /// The delivery trace that packets follow.
    pub delivery: Option<Delivery>,
    /// A chain, the outermost first.
    pub qdiscs: Vec<Qdisc>,
}

/// Losses that are the same in every run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Drops {
    /// Every n-th packet.
    Every {
        /// n.
        period: u64,
    },
    /// The packets with these numbers, from 1.
    Packets {
        /// Ascending.
        numbers: Vec<u64>,
    },
    /// Each packet with this probability, drawn from a stream of its own.
    #[allow(missing_docs)]
    Random { probability: f64, seed: u64 },
    /// Losses by netem's gemodel, drawn from a stream of its own.
    #[allow(missing_docs)]
    Gemodel { p: f64, r: f64, loss_bad: f64, loss_good: f64, seed: u64 },
}

/// How a delivery trace is followed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Its name in the plan.
    pub trace: String,
    /// What a packet is delayed on its way to the queue.
    pub delay_ns: u64,
    /// Packets that wait at most.
    pub limit_packets: u32,
}

/// How netem loses packets.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Loss {
    Random { probability: f64, correlation: f64 },
    Gemodel { p: f64, r: f64, loss_bad: f64, loss_good: f64 },
    State { p13: f64, p31: f64, p32: f64, p23: f64, p14: f64 },
}

/// The parameters of a netem.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Netem {
    pub delay_ns: i64,
    pub jitter_ns: i64,
    pub delay_correlation: f64,
    pub table: Option<String>,
    pub loss: Option<Loss>,
    pub duplicate: f64,
    pub duplicate_correlation: f64,
    pub corrupt: f64,
    pub corrupt_correlation: f64,
    pub reorder: f64,
    pub reorder_correlation: f64,
    pub gap: u32,
    pub rate_bit_per_s: Option<u64>,
    pub limit_packets: u32,
    pub seed: Option<u64>,
}

/// The parameters of a red.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Red {
    pub limit_bytes: u32,
    pub min_bytes: u32,
    pub max_bytes: u32,
    pub probability: f64,
    pub average_packet_bytes: u32,
    pub burst_packets: u32,
    pub rate_bit_per_s: u64,
    pub ecn: bool,
}

/// A queue discipline.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Qdisc {
    Netem(Netem),
    Hfsc { rate_bit_per_s: u64 },
    Htb { rate_bit_per_s: u64, burst_bytes: u32 },
    Tbf { rate_bit_per_s: u64, burst_bytes: u32 },
    Pfifo { limit_packets: u32 },
    Bfifo { limit_bytes: u32 },
    Red(Red),
    Codel { limit_packets: u32, target_ns: u64, interval_ns: u64, ecn: bool },
    FqCodel { limit_packets: u32, flows: u32, target_ns: u64, interval_ns: u64, quantum_bytes: u32, ecn: bool },
    Pie { limit_packets: u32, target_ns: u64, ecn: bool },
    Cake { rate_bit_per_s: u64, limit_bytes: u32 },
    Sfq { limit_packets: u32, quantum_bytes: u32 },
    Fq { limit_packets: u32, flow_limit_packets: u32 },
}

impl Egress {
    /// These settings for a kernel whose clock reads as `face` says: delays and rates on the run's clock become those on the
    /// kernel's.
    pub fn on(&self, face: Face) -> Self {
        let mut own = self.clone();
        if let Some(delivery) = &mut own.delivery {
            delivery.delay_ns = face.own_ns(delivery.delay_ns);
        }
        own.qdiscs.iter_mut().for_each(|qdisc| qdisc.put_on(face));
        own
    }
}

impl Qdisc {
    fn put_on(&mut self, face: Face) {
        match self {
            Self::Netem(netem) => {
                for ns in [&mut netem.delay_ns, &mut netem.jitter_ns] {
                    *ns = face.own_ns(ns.unsigned_abs()) as i64;
                }
                netem.rate_bit_per_s = netem.rate_bit_per_s.map(|rate| face.own_rate(rate));
            }
            Self::Hfsc { rate_bit_per_s }
            | Self::Htb { rate_bit_per_s, .. }
            | Self::Tbf { rate_bit_per_s, .. }
            | Self::Cake { rate_bit_per_s, .. }
            | Self::Red(Red { rate_bit_per_s, .. }) => *rate_bit_per_s = face.own_rate(*rate_bit_per_s),
            Self::Codel { target_ns, interval_ns, .. } | Self::FqCodel { target_ns, interval_ns, .. } => {
                for ns in [target_ns, interval_ns] {
                    *ns = face.own_ns(*ns);
                }
            }
            Self::Pie { target_ns, .. } => *target_ns = face.own_ns(*target_ns),
            Self::Pfifo { .. } | Self::Bfifo { .. } | Self::Sfq { .. } | Self::Fq { .. } => {}
        }
    }

    /// The name that the kernel knows it by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Netem(_) => "netem",
            Self::Hfsc { .. } => "hfsc",
            Self::Htb { .. } => "htb",
            Self::Tbf { .. } => "tbf",
            Self::Pfifo { .. } => "pfifo",
            Self::Bfifo { .. } => "bfifo",
            Self::Red(_) => "red",
            Self::Codel { .. } => "codel",
            Self::FqCodel { .. } => "fq_codel",
            Self::Pie { .. } => "pie",
            Self::Cake { .. } => "cake",
            Self::Sfq { .. } => "sfq",
            Self::Fq { .. } => "fq",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_whose_clock_runs_at_half_the_rate_delays_half_as_long_and_sends_twice_as_fast() {
        let chain = r#"{"drops": null, "delivery": {"trace": "t", "delay_ns": 600, "limit_packets": 9}, "qdiscs": [
            {"kind": "netem", "delay_ns": 20000, "jitter_ns": 1000, "delay_correlation": 0.0, "table": null, "loss": null,
             "duplicate": 0.0, "duplicate_correlation": 0.0, "corrupt": 0.0, "corrupt_correlation": 0.0, "reorder": 0.0,
             "reorder_correlation": 0.0, "gap": 0, "rate_bit_per_s": 50, "limit_packets": 7, "seed": null},
            {"kind": "htb", "rate_bit_per_s": 1000, "burst_bytes": 1500},
            {"kind": "fq_codel", "limit_packets": 7, "flows": 1024, "target_ns": 500, "interval_ns": 10000, "quantum_bytes": 1514,
             "ecn": false}]}"#;
        let found = serde_json::from_str::<Egress>(chain).unwrap();
        let own = found.on(Face::new(1, 2).unwrap());
        assert_eq!(own.delivery.as_ref().unwrap().delay_ns, 300);
        let Qdisc::Netem(netem) = &own.qdiscs[0] else { panic!("the first is a netem") };
        assert_eq!((netem.delay_ns, netem.jitter_ns, netem.rate_bit_per_s), (10_000, 500, Some(100)));
        assert_eq!(own.qdiscs[1], Qdisc::Htb { rate_bit_per_s: 2000, burst_bytes: 1500 });
        assert!(matches!(own.qdiscs[2], Qdisc::FqCodel { target_ns: 250, interval_ns: 5000, .. }));
        assert_eq!(found.on(Face::PLAIN), found);
    }
}
