"""Who talks to whom in a plan, and over which links: the paths whose round trips, rates and queues results depend on.

A program that names another node, or an address of it, talks to that: `iperf3 -c b`, `curl http://b/`. Where no
program names any, all that have programs may talk to each other. The path between two nodes is one that leads through
routers and ports of switches alone, if there is one; of these one with the fewest links; and of these one with the
least delay. Routes may lead over another one. What a program makes of a host while it runs, a bridge or a router, the
plan does not know: so paths lead through hosts where nothing else does.
"""

from __future__ import annotations

import heapq
import ipaddress
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dilaton.plan.course.entries import ChangeLink, ImpairLink, Timed
from dilaton.plan.kinds.recipe import FORWARDING, FORWARDING_IPV6
from dilaton.plan.links.disciplines import ETHERNET_HEADER_BYTES, held_bytes
from dilaton.plan.links.queues import Egress
from dilaton.plan.model import HostsEntry, Interface, Link, Node, Process

TALKERS_MAX = 32
"""Where programs name nobody, so many nodes are taken to talk to each other: their pairs are a thousand."""

WORD = re.compile(r"[\w.:-]+")


@dataclass(frozen=True)
class Direction:
    """One direction of a link, with all that the lab lets it become.

    Attributes:
        name: Of the interface by which it leaves, as `a:eth0`.
        node, other: From whom to whom.
        guest: Where it leaves.
        delay_ns: Its smallest delay.
        rate_bit_per_s: Its highest rate; None: unlimited.
        least_rate_bit_per_s: Its lowest rate; None: not known, as it is ever unlimited, or a trace's.
        frame_bits: Of a full frame.
        queue_bits: What its queue holds, full frames; None where it has no rate.
        is_transit: Whether it may carry what its node has from another node: as of a router, or by a port of a switch.
    """

    name: str
    node: str
    other: str
    guest: str
    delay_ns: int
    rate_bit_per_s: int | None
    least_rate_bit_per_s: int | None
    frame_bits: int
    queue_bits: int | None
    is_transit: bool


@dataclass(frozen=True)
class Path:
    """The way from one node to another and back.

    Attributes:
        ends: The two nodes.
        there, back: Its links in both directions, in the order of the way.
    """

    ends: tuple[str, str]
    there: tuple[Direction, ...]
    back: tuple[Direction, ...]

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Both."""
        return self.there + self.back

    @property
    def delay_ns(self) -> int:
        """The round trip without queues."""
        return sum(direction.delay_ns for direction in self.directions)

    def frame_ns(self) -> float:
        """What a full frame takes on all links of one way at their highest rates; the lesser of both ways."""
        ways = (
            [way.frame_bits * 1e9 / way.rate_bit_per_s for way in one if way.rate_bit_per_s]
            for one in (self.there, self.back)
        )
        return min(map(sum, ways))

    def bottleneck(self) -> Direction | None:
        """The slowest direction; None where no link has a rate."""
        limited = [direction for direction in self.directions if direction.rate_bit_per_s]
        return min(limited, key=lambda direction: direction.rate_bit_per_s or 0, default=None)

    def shortest_queue(self) -> tuple[float, Direction] | None:
        """The shortest time in which what the bottleneck lets through fills a queue of it, ns; None without one."""
        slowest = self.bottleneck()
        if slowest is None or not slowest.rate_bit_per_s:
            return None
        rate = slowest.rate_bit_per_s
        queues = [(each.queue_bits * 1e9 / rate, each.name, each) for each in self.directions if each.queue_bits]
        found = min(queues, default=None)
        return None if found is None else (found[0], found[2])


Egresses = Mapping[tuple[str, str], Sequence[Egress]]
"""What interfaces become, by node and name."""


def egresses(course: Iterable[Timed]) -> Egresses:
    """What a course makes of interfaces."""
    later: dict[tuple[str, str], list[Egress]] = defaultdict(list)
    for effect in (entry.effect for entry in course):
        if isinstance(effect, ChangeLink | ImpairLink):
            under = effect.under.values() if isinstance(effect, ChangeLink) else ()
            for end in itertools.chain(effect.ends, *under):
                later[end.node, end.interface].append(end.egress)
    return later


def directions(nodes: Iterable[Node], links: Iterable[Link], later: Egresses) -> list[Direction]:
    """All directions of links between these nodes, which later become what is given."""
    known = {(node.name, interface.name): (node, interface) for node in nodes for interface in node.interfaces}
    found = []
    for link in links:
        for own, other in (link.ends, link.ends[::-1]):
            node, interface = known[own.node, own.interface]
            states = [interface.egress, *later.get((own.node, own.interface), [])]
            found.append(_direction(node, interface, states, other.node))
    return found


def _direction(node: Node, interface: Interface, states: Sequence[Egress], other: str) -> Direction:
    frame_bytes = interface.mtu + ETHERNET_HEADER_BYTES
    rates = [state.rate_bit_per_s for state in states]
    held = [
        held_bytes(state, frame_bytes) - (state.rate_bit_per_s or 0) * state.delay_ns // (8 * 10**9)
        for state in states
        if state.rate_bit_per_s
    ]
    return Direction(
        name=f"{node.name}:{interface.name}",
        node=node.name,
        other=other,
        guest=node.guest,
        delay_ns=min(state.delay_ns for state in states) + interface.wire_delay_ns,
        rate_bit_per_s=None if None in rates else max(rate for rate in rates if rate),
        least_rate_bit_per_s=None if None in rates else min(rate for rate in rates if rate),
        frame_bits=frame_bytes * 8,
        queue_bits=min(held) * 8 if held else None,
        is_transit=_is_router(node) or not interface.addresses,
    )


def _is_router(node: Node) -> bool:
    return any(node.sysctls.get(name) == on for name, on in (FORWARDING | FORWARDING_IPV6).items())


def paths(known: Sequence[Direction], pairs: Iterable[tuple[str, str]]) -> Iterator[Path]:
    """The path of each pair of nodes that has one."""
    ways: dict[str, list[Direction]] = defaultdict(list)
    for direction in known:
        ways[direction.node].append(direction)
    others: dict[str, set[str]] = defaultdict(set)
    for one, other in pairs:
        others[one].add(other)
    for one, wanted in sorted(others.items()):
        last = _last_links(ways, one, set(wanted))
        for other in sorted(wanted & last.keys()):
            there: list[Direction] = []
            at = other
            while at != one:
                there.append(last[at])
                at = last[at].node
            there.reverse()
            back = tuple(_reverse(ways, direction) for direction in reversed(there))
            yield Path((one, other), tuple(there), back)


def _last_links(ways: Mapping[str, Sequence[Direction]], start: str, wanted: set[str]) -> dict[str, Direction]:
    """Maps each node on the way to those wanted to the direction by which the shortest path from `start` comes to
    it."""
    last: dict[str, Direction] = {}
    done: set[str] = set()
    missing = wanted - {start}
    open_: list[tuple[int, int, int, str, str, Direction | None]] = [(0, 0, 0, start, "", None)]
    while open_ and missing:
        hosts, hops, delay_ns, node, _, by = heapq.heappop(open_)
        if node in done:
            continue
        done.add(node)
        missing.discard(node)
        if by is not None:
            last[node] = by
        by_transit = by is None or _reverse(ways, by).is_transit
        for way in ways[node]:
            if way.other not in done:
                through = hosts + (by is not None and not (by_transit and way.is_transit))
                heapq.heappush(open_, (through, hops + 1, delay_ns + way.delay_ns, way.other, way.name, way))
    return last


def _reverse(ways: Mapping[str, Sequence[Direction]], direction: Direction) -> Direction:
    back = [way for way in ways[direction.other] if way.other == direction.node]
    return min(back, key=lambda way: (way.delay_ns, way.name))


def spoken(
    processes: Sequence[Process],
    hosts: Iterable[HostsEntry],
    nodes: Sequence[Node],
    links: Iterable[Link],
    course: Iterable[Timed],
) -> dict[tuple[str, str], tuple[Path, ...]]:
    """The paths to the nodes that a program names, by its node and name; none where no link leads to one of them."""
    named = sorted(talks(processes, hosts, nodes))
    known = directions(nodes, links, egresses(course))
    found = {path.ends: path for path in paths(known, {(one, other) for _, one, other in named})}
    over: dict[tuple[str, str], tuple[Path, ...]] = {}
    for process, one, other in named:
        path = found.get((one, other))
        over[one, process] = over.get((one, process), ()) + ((path,) if path else ())
    return over


def talks(
    processes: Sequence[Process], hosts: Iterable[HostsEntry], nodes: Sequence[Node]
) -> set[tuple[str, str, str]]:
    """Which program, of which node, names which other node."""
    there = {node.name for node in nodes}
    named = {name: name for name in there}
    for entry in hosts:
        owner = next((name for name in entry.names if name in there), None)
        if owner is not None:
            named |= dict.fromkeys([entry.address, *entry.names], owner)
    for node in nodes:
        for interface in node.interfaces:
            named |= {str(ipaddress.ip_interface(address).ip): node.name for address in interface.addresses}
    return {
        (process.name, process.node, other)
        for process in processes
        for word in WORD.findall(" ".join(process.argv))
        if (other := named.get(word) or named.get(word.split(":")[0])) is not None and other != process.node
    }


def pairs(named: Iterable[tuple[str, str, str]], processes: Iterable[Process]) -> set[tuple[str, str]]:
    """Who talks to whom, of what programs name, as `talks` says; see the head of this file."""
    if found := {(one, other) for _, one, other in named}:
        return found
    some = list(dict.fromkeys(process.node for process in processes))[:TALKERS_MAX]
    return {(one, other) for number, one in enumerate(some) for other in some[number + 1 :]}
