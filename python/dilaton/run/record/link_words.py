"""What links do to packets, in a few words, for the terminal and for reports."""

from __future__ import annotations

from dilaton.measure import numbers
from dilaton.plan.links.queues import (
    DropEvery,
    DropGilbertElliott,
    DropPackets,
    DropRandom,
    Egress,
    GilbertElliottLoss,
    Netem,
    RandomLoss,
    StateLoss,
)
from dilaton.plan.model import Link, Plan

NOT_WORTH_SAYING = ("netem", "hfsc", "pfifo", "bfifo")
"""Disciplines by which a plain queue is made."""


def links_of(plan: Plan) -> list[tuple[Link, str]]:
    """The links of a plan, with what they are asked to do at the start: in a line, or in one for each direction."""
    sending = {(node.name, interface.name): interface for node in plan.nodes for interface in node.interfaces}

    def asked(link: Link) -> str:
        ends = [sending[end.node, end.interface] for end in link.ends]
        forth, back = (describe(end.egress, end.wire_delay_ns) for end in ends)
        if forth == back:
            return forth
        first, second = (end.node for end in link.ends)
        return f"{first} to {second}: {forth}\n{second} to {first}: {back}"

    return [(link, asked(link)) for link in plan.links]


def describe(egress: Egress, wire_delay_ns: int = 0) -> str:
    """Rate, delay, losses and discipline of a direction, of whose delay a wire does a part."""
    netems = [one for one in egress.qdiscs if isinstance(one, Netem)]
    parts = [numbers.rate(egress.rate_bit_per_s) if egress.rate_bit_per_s else "no rate limit"]
    if egress.delivery is not None:
        parts = [f"trace {egress.delivery.trace}"]
    jitter_s = sum(one.jitter_ns for one in netems) / 1e9
    varies = f" ± {numbers.duration(jitter_s)}" if jitter_s else ""
    parts.append(f"{numbers.duration((egress.delay_ns + wire_delay_ns) / 1e9)}{varies} one way")
    parts += [text for one in netems for text in _impairments(one)]
    match egress.drops:
        case DropEvery(period=period):
            parts.append(f"every {period}th packet lost")
        case DropPackets(numbers=listed):
            parts.append(f"{len(listed)} listed packets lost")
        case DropRandom(probability=probability):
            parts.append(f"loss {numbers.ratio(probability)}, repeatable")
        case DropGilbertElliott(p=p, r=r):
            parts.append(f"loss by gemodel {numbers.ratio(p)} {numbers.ratio(r)}, repeatable")
    parts += [one.kind for one in egress.qdiscs if one.kind not in NOT_WORTH_SAYING and egress.delivery is None]
    return ", ".join(parts)


def _impairments(netem: Netem) -> list[str]:
    found = []
    match netem.loss:
        case RandomLoss(probability=probability):
            found.append(f"loss {numbers.ratio(probability)}")
        case GilbertElliottLoss(p=p, r=r):
            found.append(f"loss by gemodel {numbers.ratio(p)} {numbers.ratio(r)}")
        case StateLoss(p13=p13):
            found.append(f"loss by state {numbers.ratio(p13)}")
    for what in ("duplicate", "corrupt", "reorder"):
        if probability := getattr(netem, what):
            found.append(f"{what} {numbers.ratio(probability)}")
    return found
