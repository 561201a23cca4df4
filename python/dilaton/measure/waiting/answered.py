"""Whether the answers to a ping took what their links take. Pure.

**Problem.** Bounds on waits let pass what is shorter than a path notices, and what it notices is a quarter of a round
trip. A host that takes .4 ms for each request and its answer makes every round trip of 5 ms 8 % too long, and no
program has waited.

**The measure.** Over links that nobody else uses there is no queue to wait in, so what an answer takes is known before:
the delays of the links, and what the frame takes on each of them. If half of the answers took more, it was the
machine.

**Where it holds.** Where the links promise a delay, the same all the time and for each packet. Where the way is known,
as there is only one: the links of the lab make no ring. Where nobody else is known to use a link of it, every program
that the run waits for says whom it talks to, and ping does not fill it by itself. And where who asks is not to be slow:
a share of a CPU is for programs, not for the kernel's answers. On the event drive computing takes no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dilaton.measure.results import ping
from dilaton.measure.results.command import unwrap
from dilaton.plan.links.disciplines import ETHERNET_HEADER_BYTES
from dilaton.plan.links.queues import Cake, Netem
from dilaton.plan.model import Link, Plan
from dilaton.plan.network.bounds import WAIT_NS_MIN
from dilaton.plan.network.conversations import Path, spoken

LONGER_MAX = 0.05
"""The share of what its links take by which an answer may be longer, as results may be elsewhere."""

HEADERS_BYTES = ETHERNET_HEADER_BYTES + 40 + 8
"""Of a frame of ping's: of Ethernet, IPv6, and ICMP."""


@dataclass(frozen=True)
class Answered:
    """A ping whose way is known, and nobody else's.

    Attributes:
        node, process: Who asked.
        took_ns: What half of the answers took at least.
        known_ns: What its links take.
        longer_ns_max: By how much that may be longer.
    """

    node: str
    process: str
    took_ns: float
    known_ns: float
    longer_ns_max: float

    @property
    def longer_ns(self) -> float:
        """By how much that is longer, ns; 0 where it is not."""
        return max(0.0, self.took_ns - self.known_ns)


def answered(plan: Plan, results: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> list[Answered]:
    """The pings of a run of which it is known what their answers take; see the head of this file.

    Args:
        plan: What was run.
        results: Node, name and result of each process that ended as it should.
    """
    asked = {(each.node, each.name): of for each in plan.processes if (of := _asked(each.argv)) is not None}
    if not asked or plan.time.drive == "event" or plan.course or _has_ring(plan.links):
        return []
    ways = spoken(plan.processes, plan.hosts, plan.nodes, plan.links, plan.course)
    if any((each.node, each.name) not in ways for each in plan.processes if not each.background):
        return []
    steady, shares = set(_steady(plan)), {node.name for node in plan.nodes if node.cpu is not None}
    users = Counter(name for its in ways.values() for name in {each.name for way in its for each in way.directions})
    found = []
    for node, process, result in results:
        key, took_s = (node, process), ((result or {}).get("rtt") or {}).get("p50")
        if took_s is None or node in shares or key not in asked or len(paths := ways.get(key, ())) != 1:
            continue
        mine = {each.name for each in paths[0].directions}
        is_alone = all(users[name] == 1 for name in mine)
        if is_alone and mine <= steady and (known_ns := _known_ns(paths[0], asked[key])) is not None:
            most_ns = max(LONGER_MAX * known_ns, WAIT_NS_MIN, plan.time.lateness_ns or 0)
            found.append(Answered(node, process, took_s * 1e9, known_ns, most_ns))
    return found


def _asked(argv: Sequence[str]) -> ping.Requests | None:
    program, arguments = unwrap(argv)
    return ping.requests(arguments) if program == "ping" else None


def _has_ring(links: Iterable[Link]) -> bool:
    """Whether some node is reached from another one by more than one way."""
    heads: dict[str, str] = {}

    def head(node: str) -> str:
        while (above := heads.get(node, node)) != node:
            # Ways get shorter as they are gone, or those of a star would be as long as it has leaves.
            heads[node] = heads.get(above, above)
            node = above
        return node

    for link in links:
        one, other = (head(end.node) for end in link.ends)
        if one == other:
            return True
        heads[one] = other
    return False


def _steady(plan: Plan) -> Iterator[str]:
    """The interfaces by which packets leave after the same time each, in guests whose clocks go as the run's."""
    slow = {guest.name for guest in plan.guests if guest.tdf is not None}
    for node in plan.nodes:
        for interface in node.interfaces if node.guest not in slow else ():
            queues = interface.egress.qdiscs
            varies = any(isinstance(one, Cake) or (isinstance(one, Netem) and one.jitter_ns) for one in queues)
            if not varies and interface.egress.delivery is None:
                yield f"{node.name}:{interface.name}"


def _known_ns(path: Path, asked: ping.Requests) -> float | None:
    """What the links of a path take for a request and its answer, ns; None where they promise no delay, or where these
    are cut, or fill a link."""
    if not path.delay_ns:
        return None
    frame_bits = 8 * (HEADERS_BYTES + asked.payload_bytes)
    frames_ns = [frame_bits * 1e9 / each.rate_bit_per_s for each in path.directions if each.rate_bit_per_s]
    if frame_bits > min(each.frame_bits for each in path.directions) or 2 * max(frames_ns, default=0) > asked.every_ns:
        return None
    return path.delay_ns + sum(frames_ns)
