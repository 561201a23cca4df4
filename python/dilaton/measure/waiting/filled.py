"""Whether all that a run measured is flows that filled their bottlenecks. Pure.

**Problem.** That programs waited for the CPU for longer than a path notices says that results may be wrong, not that
they are. A flow of TCP over a bottleneck of 18 Mbit/s and .6 ms, at a TDF of .2, did all that it was woken up for too
late, by the bound of a round trip, and carried 17.2 Mbit/s, as at a TDF of 40: the kernel sends and acknowledges from
buffers meanwhile. No bound of the plan tells such a flow from one that was kept from sending.

**The measure.** Its result does. Who waits sends or acknowledges later: the bottleneck runs empty, or bursts overflow
its queue and are sent again. Either way less arrives, and never more than a bottleneck lets through. So a flow that
carried what its bottleneck can carry was kept from nothing, and a program that shared it took nothing.

**Where it holds.** Where nothing else was measured: round trips beside such a flow depend on how full the queue was,
and that on bursts. So every program that the run waits for has to be such a flow, of TCP and one way, and each alone as
much as its bottleneck carries in all: how flows divide a link, waits may well decide. Each interval but the first, in
which it starts, has to be as full as the whole, and nobody looks at packets, queues or connections.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from dilaton.plan.links.disciplines import ETHERNET_HEADER_BYTES
from dilaton.plan.model import Plan
from dilaton.plan.network.conversations import Direction, Path, spoken

FULL = 0.95
"""The share of what a bottleneck can carry; a result may be off by the rest."""

Key = tuple[str, str]
"""A program: its node and name."""

HEADER_BYTES = 40
"""Of TCP over IPv4 at least, in a full frame."""


@dataclass(frozen=True)
class Filled:
    """Which programs of a run measured flows that filled their bottlenecks.

    Attributes:
        measured: The programs that talk or that the run waits for, by node and name, with the nodes that they concern.
        full: Those of these that are such flows.
    """

    measured: Mapping[Key, frozenset[str]]
    full: frozenset[Key]

    @classmethod
    def of(cls, plan: Plan, results: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> Filled:
        """See the head of this file.

        Args:
            plan: What was run.
            results: Node, name and result of each process that ended as it should.
        """
        ways = spoken(plan.processes, plan.hosts, plan.nodes, plan.links, plan.course)
        awaited = {(process.node, process.name) for process in plan.processes if not process.background}
        measured = {
            key: frozenset({key[0], *(end for path in ways.get(key, ()) for end in path.ends)})
            for key in awaited | ways.keys()
        }
        known = {(node, name): result or {} for node, name, result in results}
        measure = plan.measure
        if measure.captures or measure.interfaces_period_ns or measure.tcp_period_ns or measure.nodes_period_ns:
            return cls(measured, frozenset())
        full = (key for key, each in ways.items() if len(each) == 1 and _fills(each[0], known.get(key, {})))
        return cls(measured, frozenset(full))

    def all(self) -> bool:
        """Whether that is all that was measured."""
        return bool(self.full) and self.full >= self.measured.keys()

    def all_of(self, nodes: Set[str]) -> bool:
        """Whether it is all that was measured on these nodes, or between them and others."""
        concerned = {key for key, ends in self.measured.items() if ends & nodes}
        return bool(concerned) and self.full >= concerned


def _fills(path: Path, result: Mapping[str, Any]) -> bool:
    """Whether a path was full of what a program says was carried, whichever way that went."""
    # Only of iperf3 it is known what its throughput is of, and when.
    if not result.keys() >= {"throughput", "retransmits", "intervals"} or result.keys() & {"loss", "reverse"}:
        return False
    most = [_most(way) for way in (path.there, path.back)]
    seen = [result["throughput"], *(interval["throughput"] for interval in result["intervals"][1:])]
    return all(min(seen) >= FULL * rate for rate in most)


def _most(way: Iterable[Direction]) -> float:
    """The most of payload that a way can carry, bit/s."""
    headers_bits = 8 * (ETHERNET_HEADER_BYTES + HEADER_BYTES)
    limited = [each.rate_bit_per_s * (1 - headers_bits / each.frame_bits) for each in way if each.rate_bit_per_s]
    return min(limited, default=math.inf)
