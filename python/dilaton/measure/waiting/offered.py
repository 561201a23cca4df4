"""Whether programs sent as fast as they were told to. Pure.

**Problem.** Waits for the CPU are bounded, not measured (`busy_periods.py`), and the bound lets pass what is rare: a
second of overload in a minute is a small share of what happened. But a program that was told to send at a rate says
itself whether it could. A sender of UDP paces itself by the clock, and catches up on what it missed unless it has no
time to. Nothing that the network does to its datagrams slows it down, not even a full queue of its own node, since
links take packets out of their sender's account (`dilaton.plan.links.disciplines`). So one that sent less than it was
told had too little of a CPU, and what its flow met in the network is not what the lab asks for.

**What else slows a sender down.** The lab itself does, where it pauses the node, kills its programs or takes its link
down, and where the node has a share of a CPU, or its guest a TDF of its own, which are to be as slow as that. On the
event drive computing takes no time.

**TCP.** A sender of TCP is slowed down by the network as well, as it should be. It was not where its path can carry
twice of what it was told, nobody else talks over a link of it, nothing was sent again, what it was told to send in a
round trip is less than what receivers offer from the beginning, and the round trips in which a connection starts are
a tenth of its test at most. iperf3 catches up with TCP, too, on what it did not send.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from dilaton.plan.course.entries import ChangeLink, ImpairLink, Kill, Pause, TakeMemory
from dilaton.plan.model import Plan
from dilaton.plan.network.buffers import USUAL
from dilaton.plan.network.conversations import Path, spoken

SHORT_MAX = 0.05
"""The share of what was asked for that may be missing: of a short test a few datagrams are as much as a hundredth."""

FREE = 0.5
"""The share of the slowest link that a sender of TCP may have been told to use, so that nothing waits for that link."""

RECEIVE_BUFFERS = "net/ipv4/tcp_rmem"

START_ROUND_TRIPS = 10
"""Within which a connection comes to send as fast as it likes: ten segments first, then twice as many in each."""

START_SHARE_MAX = 0.1
"""The share of a test that these may take: what is missed in them is caught up with in the rest."""


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
    told = [(node, process, result) for node, process, result in results if result and result.get("told_throughput")]
    if not told:
        return []
    slow = {guest.name for guest in plan.guests if guest.tdf is not None}
    free = {node.name for node in plan.nodes if node.cpu is None and node.guest not in slow} - set(_hindered(plan))
    paths = spoken(plan.processes, plan.hosts, plan.nodes, plan.links, plan.course)
    return [
        Offered(node, process, result["told_throughput"], result["sent_throughput"])
        for node, process, result in told
        if node in free and ("loss" in result or _is_alone(plan, paths, (node, process), free, result))
    ]


def _is_alone(
    plan: Plan,
    paths: Mapping[tuple[str, str], tuple[Path, ...]],
    key: tuple[str, str],
    free: Set[str],
    result: Mapping[str, Any],
) -> bool:
    """Whether neither the network nor its receiver can have held back a sender of TCP; see the head of this file."""
    if len(paths.get(key, ())) != 1 or result.get("retransmits") != 0 or plan.course or plan.traces:
        return False
    (path,), told = paths[key], float(result["told_throughput"])
    others = {each.name for other, ways in paths.items() if other != key for way in ways for each in way.directions}
    if not set(path.ends) <= free or others & {each.name for each in path.directions}:
        return False
    slowest = path.bottleneck()
    is_carried = slowest is None or told <= FREE * (slowest.rate_bit_per_s or 0)
    in_window = told * path.delay_ns / 1e9 <= _window_bits(plan)
    seconds = sum(float(interval["end_s"] - interval["start_s"]) for interval in result["intervals"])
    return is_carried and in_window and START_ROUND_TRIPS * path.delay_ns / 1e9 <= START_SHARE_MAX * seconds


def _window_bits(plan: Plan) -> int:
    """What receivers offer from the beginning, half of their buffer at first; 0 where the lab has settings of TCP."""
    usual = all(guest.sysctls.get(RECEIVE_BUFFERS) == USUAL[RECEIVE_BUFFERS] for guest in plan.guests)
    if not usual or any("/tcp_" in name for node in plan.nodes for name in node.sysctls):
        return 0
    return int(USUAL[RECEIVE_BUFFERS].split()[1]) * 8 // 2


def _hindered(plan: Plan) -> Iterator[str]:
    """The nodes whose programs the lab itself keeps from sending."""
    for effect in (entry.effect for entry in plan.course):
        match effect:
            case Pause() | Kill() | TakeMemory():
                yield effect.node
            case ChangeLink() | ImpairLink():
                yield from (end.node for end in effect.ends if not end.up)
