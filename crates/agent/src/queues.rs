//! Queue disciplines as the plan names them: the mirror of `python/dilaton/plan/queues.py`, where every field is
//! explained.

use serde::Deserialize;

/// Everything that an interface does to the packets that leave by it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
    /// As netem's gemodel, drawn from a stream of its own.
    #[allow(missing_docs)]
    Gemodel { p: f64, r: f64, loss_bad: f64, loss_good: f64, seed: u64 },
}

/// How a delivery trace is followed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Loss {
    Random { probability: f64, correlation: f64 },
    Gemodel { p: f64, r: f64, loss_bad: f64, loss_good: f64 },
    State { p13: f64, p31: f64, p32: f64, p23: f64, p14: f64 },
}

/// The parameters of a netem.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
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

impl Qdisc {
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
