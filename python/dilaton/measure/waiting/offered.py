"""Whether programs sent as fast as they were told to. Pure.

**Problem.** Waits for the CPU are bounded, not measured (`busy_periods.py`), and the bound lets pass what is rare: a
second of overload in a minute is a small share of what happened. But a program that was told to send at a rate says
itself whether it could. A sender of UDP paces itself by the clock, and catches up on what it missed unless it has no
time to. Nothing that the network does to its datagrams slows it down, not even a full queue of its own node, since
links take packets out of their sender's account (`dilaton.plan.links.disciplines`). So one that sent less than it was
told had too little of a CPU, and what its flow met in the network is not what the lab asks for.

**What else slows a sender down.** The lab itself does, where it pauses the node, kills its programs or takes its link
down, and where the node has a share of a CPU, or its guest a TDF of its own, which are to be as slow as that. On the
event drive computing takes no time. Senders of TCP are slowed down by the network, as they should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dilaton.plan.course.entries import ChangeLink, ImpairLink, Kill, Pause, TakeMemory
from dilaton.plan.model import Plan

SHORT_MAX = 0.05
"""The share of what was asked for that may be missing: of a short test a few datagrams are as much as a hundredth."""


@dataclass(frozen=True)
class Offered:
    """What a program sent, and what it was told to send, bit/s of payload."""

    node: str
    process: str
    told_bit_per_s: float
    sent_bit_per_s: float

    @property
    def short(self) -> float:
        """The part that is missing, 0..1."""
        return max(0.0, 1 - self.sent_bit_per_s / self.told_bit_per_s)


def offered(plan: Plan, results: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> list[Offered]:
    """What programs sent that nothing but a slow CPU could have kept from sending as they were told.

    Args:
        plan: What was run.
        results: Node, name and result of each process that ended as it should.
    """
    if plan.time.drive == "event":
        return []
    slow = {guest.name for guest in plan.guests if guest.tdf is not None}
    free = {node.name for node in plan.nodes if node.cpu is None and node.guest not in slow} - set(_hindered(plan))
    return [
        Offered(node, process, result["told_throughput"], result["sent_throughput"])
        for node, process, result in results
        if node in free and result and result.get("told_throughput")
    ]


def _hindered(plan: Plan) -> Iterator[str]:
    """The nodes whose programs the lab itself keeps from sending."""
    for effect in (entry.effect for entry in plan.course):
        match effect:
            case Pause() | Kill() | TakeMemory():
                yield effect.node
            case ChangeLink() | ImpairLink():
                yield from (end.node for end in effect.ends if not end.up)
