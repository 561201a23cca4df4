"""By how much later iperf3 heard of the end of a flow of UDP than its way explains. Pure.

**Problem.** The rate that `iperf3 -u` says was received is divided by the time until its server hears of the end. It
does so by a connection of TCP, over the queue that the flow itself may have filled: where there is no room for that one
packet it comes again a tenth or a fifth of a second later, of a test of a second 8 to 17 % of what it says. Whether
there is room is decided by fractions of a millisecond, and so by the CPU, though nobody waited for as long as a path
notices: a flood of 5 Mbit/s through a link of 3.1 got 2.98 Mbit/s in each of three runs at TDF 40, and 2.73 in each of
three at 1.09.

**The measure.** What the server counted is what it received by its rate. The time of sending explains that, and a round
trip, and the queues on the way that may be full: those of links that carry less than the flow, or that others talk
over. What is more is time in which nothing came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from dilaton.measure.waiting.asked import HEADER_BYTES
from dilaton.plan.model import Plan
from dilaton.plan.network.conversations import Path, spoken

LATE_END_MAX = 0.05
"""The share of the time that was counted in which nothing may have come: a twentieth, as of everything else."""


@dataclass(frozen=True)
class Ended:
    """How long the server of a flow counted, and how much of that nothing explains, seconds."""

    node: str
    process: str
    counted_s: float
    late_s: float

    @property
    def share(self) -> float:
        """The part of what was counted in which nothing came; below 0 where its way would explain more."""
        return self.late_s / self.counted_s


def ended(plan: Plan, results: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> list[Ended]:
    """How the flows of UDP ended, on the work and wall drive, of a plan whose links stay as they are.

    Args:
        plan: What was run.
        results: Node, name and result of each process that ended as it should.
    """
    done = [(node, process, result) for node, process, result in results if _is_flow(result)]
    if not done or plan.time.drive == "event" or plan.course or plan.traces:
        return []
    paths = spoken(plan.processes, plan.hosts, plan.nodes, plan.links, plan.course)

    def others(key: tuple[str, str]) -> set[str]:
        ways = [path for other, ways in paths.items() if other != key for path in ways]
        return {each.name for path in ways for each in path.directions}

    return [
        _ended(node, process, result, paths[node, process][0], others((node, process)))
        for node, process, result in done
        if result and len(paths.get((node, process), ())) == 1
    ]


def _is_flow(result: Mapping[str, Any] | None) -> bool:
    return bool(result and result.get("datagram_bytes") and result.get("throughput") and result.get("loss") is not None)


def _ended(node: str, process: str, result: Mapping[str, Any], path: Path, others: AbstractSet[str]) -> Ended:
    sent_s = sum(float(interval["end_s"] - interval["start_s"]) for interval in result["intervals"])
    received_bit = float(result["sent_throughput"]) * sent_s * (1 - float(result["loss"]))
    counted_s = received_bit / float(result["throughput"])
    return Ended(node, process, counted_s, counted_s - sent_s - _way_s(path, result, others))


def _way_s(path: Path, result: Mapping[str, Any], others: AbstractSet[str]) -> float:
    """What a round trip takes at most behind what flows leave in queues, seconds."""
    size = result["datagram_bytes"]
    told = float(result["told_throughput"]) * (size + HEADER_BYTES) / size
    queues = [(each.name, each.queue_bits or 0, each.rate_bit_per_s) for each in path.there]
    return path.delay_ns / 1e9 + sum(
        bits / rate for name, bits, rate in queues if rate and (told > rate or name in others)
    )
