"""What an interface does to packets, as the lines of tc(8) that would make it."""

from __future__ import annotations

from fractions import Fraction

from dilaton.measure.numbers import counted
from dilaton.plan.links import queues
from dilaton.plan.links.queues import (
    Delivery,
    DropEvery,
    DropGilbertElliott,
    DropPackets,
    DropRandom,
    Drops,
    Egress,
    Netem,
    Qdisc,
)

CLASSFUL = ("hfsc", "htb")


def tc_lines(interface: str, egress: Egress) -> list[str]:
    """The lines, in the order in which they would be typed in the node.

    What tc cannot say (losses that are repeatable, delivery traces) is a comment.
    """
    lines = []
    if egress.drops is not None:
        lines.append(f"# program: {_drops(egress.drops)}")
    if egress.delivery is not None:
        lines.append(f"# program: {_delivery(egress.delivery)}")
    parent = "root"
    for number, qdisc in enumerate(egress.qdiscs, 1):
        handle = f"dev {interface} {parent} handle {number}:"
        if qdisc.kind in CLASSFUL:
            lines.append(f"tc qdisc add {handle} {qdisc.kind} default 1")
            lines.append(f"tc class add dev {interface} parent {number}: classid {number}:1 {_options(qdisc)}")
        else:
            lines.append(f"tc qdisc add {handle} {_options(qdisc)}")
        parent = f"parent {number}:1"
    return lines


def _drops(drops: Drops) -> str:
    match drops:
        case DropEvery(period=period):
            return f"drops every {period}th packet"
        case DropPackets(numbers=listed):
            return f"drops {len(listed)} listed packets"
        case DropRandom(probability=probability):
            return f"drops as netem's loss random {_ratio(probability)}, the same in every run"
        case DropGilbertElliott(p=p, r=r, loss_bad=bad, loss_good=good):
            model = " ".join(map(_ratio, (p, r, bad, good)))
            return f"drops as netem's loss gemodel {model}, the same in every run"


def _delivery(delivery: Delivery) -> str:
    return f"delivers by the trace {delivery.trace}, limit {counted(delivery.limit_packets, 'packet')}"


def _options(qdisc: Qdisc) -> str:
    """A discipline, or the class of a classful one, with its parameters."""
    match qdisc:
        case Netem():
            return _netem(qdisc)
        case queues.Hfsc(rate_bit_per_s=rate):
            return f"hfsc ls rate {_rate(rate)} ul rate {_rate(rate)}"
        case queues.Htb(rate_bit_per_s=rate, burst_bytes=burst):
            return f"htb rate {_rate(rate)} burst {burst}b"
        case queues.Tbf(rate_bit_per_s=rate, burst_bytes=burst):
            return f"tbf rate {_rate(rate)} burst {burst}b limit {2**32 - 1}"
        case queues.Cake(rate_bit_per_s=rate, limit_bytes=limit):
            return f"cake bandwidth {_rate(rate)} memlimit {limit}b"
        case queues.Red():
            return (
                f"red limit {qdisc.limit_bytes}b min {qdisc.min_bytes}b max {qdisc.max_bytes}b "
                f"avpkt {qdisc.average_packet_bytes}b burst {qdisc.burst_packets} "
                f"probability {_ratio(qdisc.probability)} bandwidth {_rate(qdisc.rate_bit_per_s)}{_ecn(qdisc)}"
            )
        case queues.Bfifo(limit_bytes=limit):
            return f"bfifo limit {limit}b"
        case queues.Fq(limit_packets=limit, flow_limit_packets=of_flow):
            return f"fq limit {limit} flow_limit {of_flow} nopacing"
        case _:
            parts = [qdisc.kind, f"limit {qdisc.limit_packets}"]
            parts += [f"flows {qdisc.flows}"] if hasattr(qdisc, "flows") else []
            parts += [f"target {_time(qdisc.target_ns)}"] if hasattr(qdisc, "target_ns") else []
            parts += [f"interval {_time(qdisc.interval_ns)}"] if hasattr(qdisc, "interval_ns") else []
            parts += [f"quantum {qdisc.quantum_bytes}"] if hasattr(qdisc, "quantum_bytes") else []
            return " ".join(parts) + _ecn(qdisc)


def _netem(netem: Netem) -> str:
    parts = [f"netem limit {netem.limit_packets}"]
    if netem.delay_ns or netem.jitter_ns:
        jitter = f" {_time(netem.jitter_ns)}{_correlation(netem.delay_correlation)}" if netem.jitter_ns else ""
        table = f" distribution {netem.table}" if netem.table else ""
        parts.append(f"delay {_time(netem.delay_ns)}{jitter}{table}")
    if netem.loss is not None:
        parts.append(_loss(netem.loss))
    for what in ("duplicate", "corrupt", "reorder"):
        if probability := getattr(netem, what):
            parts.append(f"{what} {_ratio(probability)}{_correlation(getattr(netem, f'{what}_correlation'))}")
    if netem.gap > 1:
        parts.append(f"gap {netem.gap}")
    if netem.rate_bit_per_s:
        parts.append(f"rate {_rate(netem.rate_bit_per_s)}")
    return " ".join(parts)


def _loss(loss: queues.NetemLoss) -> str:
    match loss:
        case queues.RandomLoss(probability=probability, correlation=correlation):
            return f"loss random {_ratio(probability)}{_correlation(correlation)}"
        case queues.GilbertElliottLoss(p=p, r=r, loss_bad=bad, loss_good=good):
            return f"loss gemodel {_ratio(p)} {_ratio(r)} {_ratio(bad)} {_ratio(good)}"
        case queues.StateLoss(p13=p13, p31=p31, p32=p32, p23=p23, p14=p14):
            return "loss state " + " ".join(_ratio(value) for value in (p13, p31, p32, p23, p14))


def _ecn(qdisc: Qdisc) -> str:
    return " ecn" if getattr(qdisc, "ecn", False) else ""


def _correlation(ratio: float) -> str:
    return f" {_ratio(ratio)}" if ratio else ""


def _ratio(ratio: float) -> str:
    return f"{100 * ratio:.9g}%"


def _time(ns: int) -> str:
    """As tc reads it, which knows fractions of a microsecond and nothing finer."""
    return f"{float(Fraction(ns, 1000)):.12g}us"


def _rate(bit_per_s: int) -> str:
    return f"{bit_per_s}bit"
