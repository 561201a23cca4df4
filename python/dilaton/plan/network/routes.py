"""Static routes by cheapest paths, in few lines.

Every address of the lab belongs to a unit: one address of a point-to-point link (or the half of its prefix in which it
lies), the prefix of a segment, a loopback. For one node each unit has its next hops. Adjacent units with the same hops
make a run, and a run is a few prefixes. Links that are written one after another tend to lie in the same direction, so
a node in a line of n has O(log n) routes instead of O(n).

The units of a node's own links need no route, since the connected prefix is more specific than any that a run makes:
they fit into whatever run surrounds them.

Between paths of the same cost, `shortest-path` takes the one whose first link comes first in the lab; `ecmp` takes all
of them. Each hop brings a packet nearer to the address's node, so no choice can make a loop. What leads to a link
between two nodes of kind router, where traffic passes but does not end, may be any of these paths: such a unit is
loose, and joins a run that any of its hops suits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from dilaton.lab.kinds import ROUTER
from dilaton.lab.model import Lab
from dilaton.lab.segments import Segment
from dilaton.plan.model import Hop as PlannedHop
from dilaton.plan.model import Route
from dilaton.plan.network.addresses import BITS, AddressPlan, Prefix, Version, ip
from dilaton.plan.network.paths import Hop, Hops, Paths, Vertex

SHARES = 64
"""About how many equal shares flows are divided into; see `Spread`. The kernel keeps a record of some hundred bytes for
each share of each set of hops."""

Need = tuple[Hops, bool] | None
"""The hops that a node has to a unit, and whether the unit is loose; None: it needs no route."""


NO_HOPS: tuple[Hops, bool] = (0, False)


@dataclass(frozen=True)
class Unit:
    """Addresses that lie next to each other and are reached alike: from `start` to before `end`."""

    start: int
    end: int
    target: Vertex
    segment: int | None
    """The segment that they are of; None: they are of `target` or of hosts that hang on it alone."""
    is_loose: bool
    """Whether any of the cheapest paths will do."""


class Spread:
    """How a node divides flows among hops of the same cost.

    The kernel divides the range of its hash in order, with one key for all nodes: with two hops at every node, all
    flows that the first node sends by its first hop would be sent by the first hop at the second node too, and half of
    the paths would never be used. So the range is cut into many shares, and each node deals them to its hops in an
    order of its own, which the seed decides.
    """

    def __init__(self, seed: int, node: str) -> None:
        self._random = Random(f"{seed} {node}")
        self._shares: dict[int, list[int]] = {}

    def shares(self, hops: int) -> list[int]:
        """The hop of each share, each of them the same number of times; nothing for a single hop."""
        if hops == 1:
            return []
        if hops not in self._shares:
            dealt = [hop for hop in range(hops) for _ in range(max(SHARES // hops, 1))]
            self._random.shuffle(dealt)
            self._shares[hops] = dealt
        return self._shares[hops]


class Routes:
    """The routes of all nodes of a lab."""

    def __init__(self, lab: Lab, segments: Sequence[Segment], paths: Paths, plan: AddressPlan) -> None:
        """Computes the next hops of every node to every unit."""
        self._lab, self._paths, self._plan = lab, paths, plan
        self._is_ecmp = lab.routing.policy == "ecmp" or lab.routing.has_daemon
        self._units: dict[Version, list[Unit]] = {4: [], 6: []}
        for number, segment in enumerate(segments):
            for prefix in plan.prefixes[number].values():
                self._units[prefix.version] += self._units_of(number, segment, prefix)
        for node, addresses in plan.loopbacks.items():
            for version, value in addresses.items():
                self._units[version].append(Unit(value, value + 1, paths.target(node), None, is_loose=False))
        for version, units in self._units.items():
            self._units[version] = _joined(sorted(units, key=lambda unit: unit.start))
        targets = {unit.target for units in self._units.values() for unit in units}
        self._ways = {name: paths.ways(name) for name in lab.nodes}
        """The hops of each node, by number."""
        self._hops: dict[str, dict[Vertex, Hops]] = {name: {} for name in lab.nodes}
        if lab.routing.policy in ("shortest-path", "ecmp") or any(
            len(paths.ports[name]) > 1 and name not in paths.forwarding for name in lab.nodes
        ):
            for target in sorted(targets, key=str):
                for node, hops in paths.hops(target).items():
                    self._hops[node][target] = hops

    def of(self, node: str) -> list[Route]:
        """The routes of a node: one to everything where there is only one way."""
        has_own = self._lab.nodes[node].has_own_routing
        has_daemon = (self._lab.routing.has_daemon or has_own) and node in self._paths.forwarding
        if self._lab.routing.policy == "none" or has_daemon or not self._paths.ports[node]:
            return []
        spread = Spread(self._lab.seed, node)
        routes = []
        for version in [version for version, units in self._units.items() if units]:
            if self._paths.is_stub(node):
                found = [("default", self._chosen((1 << len(self._ways[node])) - 1))]
            else:
                found = [
                    (f"{ip(version, start)}/{BITS[version] - size.bit_length() + 1}", hops)
                    for start, size, hops in self._prefixes(node, version)
                ]
            planned = {
                hops: self._plan_hops(node, hops, version)
                for hops in {hops for _, hops in found}
                if self._has_addresses(node, hops, version)
            }
            # The kernel takes a hop of an IPv6 route only once, so there it divides the flows itself.
            routes += [
                Route(to=to, hops=planned[hops], shares=spread.shares(len(planned[hops])) if version == 4 else [])
                for to, hops in found
                if hops in planned
            ]
        return routes

    def _chosen(self, hops: Hops) -> Hops:
        return hops if self._is_ecmp else hops & -hops

    def _members(self, node: str, hops: Hops) -> list[Hop]:
        return [hop for number, hop in enumerate(self._ways[node]) if hops >> number & 1]

    def _has_addresses(self, node: str, hops: Hops, version: Version) -> bool:
        members = self._members(node, hops)
        return bool(members) and all(version in self._plan.addresses[hop.other] for hop in members)

    def _plan_hops(self, node: str, hops: Hops, version: Version) -> list[PlannedHop]:
        return [
            PlannedHop(
                via=ip(version, self._plan.addresses[hop.other][version]),
                interface=self._lab.links[hop.own.link].endpoints[hop.own.side].interface,
            )
            for hop in self._members(node, hops)
        ]

    def _units_of(self, number: int, segment: Segment, prefix: Prefix) -> Iterator[Unit]:
        """A pair of addresses is a unit each, or a half each of the four of a /30; a larger prefix is one unit."""
        start, size = prefix.start, prefix.size
        nodes = [port.node for port in segment.ports]
        is_loose = not segment.switches and all(self._lab.nodes[name].kind == ROUTER for name in nodes)
        if segment.switches or len(nodes) != 2:
            yield Unit(start, start + size, number, number, is_loose)
            return
        own = None if any(self._paths.is_stub(name) for name in nodes) else number
        if size > 4:
            yield Unit(start, start + size, self._paths.target(nodes[0]), own, is_loose)
            return
        for port in segment.ports:
            half = start + (self._plan.addresses[port][prefix.version] - start) // (size // 2) * (size // 2)
            yield Unit(half, half + size // 2, self._paths.target(port.node), own, is_loose)

    def _prefixes(self, node: str, version: Version) -> Iterator[tuple[int, int, Hops]]:
        own = {number for _, number in self._paths.ports[node]}
        table = self._hops[node]
        units = self._units[version]
        needs: list[Need] = []
        for unit in units:
            if unit.segment in own or unit.target == node:
                needs.append(None)
            else:
                hops = table.get(unit.target, 0)
                needs.append((hops if unit.is_loose else self._chosen(hops), unit.is_loose))
        for first, last, hops in runs(units, needs):
            place = first
            for start, size in _split(units[first].start, units[last - 1].end):
                is_needed = False
                while place < last and units[place].start < start + size:
                    is_needed |= needs[place] is not None
                    if units[place].end > start + size:
                        break
                    place += 1
                if is_needed:
                    yield start, size, hops


def _joined(units: Iterable[Unit]) -> list[Unit]:
    """The same units, with those in one that lie together and are the same to every node, as the hosts of a router."""
    joined: list[Unit] = []
    for unit in units:
        last = joined[-1] if joined else None
        if (
            last
            and last.segment is None
            and unit.segment is None
            and last.end == unit.start
            and last.target == unit.target
        ):
            joined[-1] = Unit(last.start, unit.end, unit.target, None, last.is_loose and unit.is_loose)
        else:
            joined.append(unit)
    return joined


def runs(units: Sequence[Unit], needs: Sequence[Need]) -> Iterator[tuple[int, int, Hops]]:
    """Ranges of adjacent units that some hops suit, each from and to a unit that needs them, with own ones in between.

    Units without a path (no hops at all) end a run, as a gap between the addresses does.

    Yields:
        The first unit, the one after the last, and the hops.
    """
    first = last = 0
    current = NO_HOPS
    end: int | None = None
    for place, (unit, need) in enumerate(zip(units, needs, strict=True)):
        if current[0] and unit.start != end:
            yield first, last, _taken(current)
            current = NO_HOPS
        end = unit.end
        if need is None:
            continue
        common = current if need == current else _common(current, need)
        if common[0]:
            current = common
        else:
            if current[0]:
                yield first, last, _taken(current)
            first, current = place, need
        last = place + 1
    if current[0]:
        yield first, last, _taken(current)


def _taken(run: tuple[Hops, bool]) -> Hops:
    """The hops that a run takes: the first of them if any will do."""
    hops, is_loose = run
    return hops & -hops if is_loose else hops


def _common(run: tuple[Hops, bool], unit: tuple[Hops, bool]) -> tuple[Hops, bool]:
    """The hops that suit both a run and a unit: a loose one is content with any of its own."""
    (of_run, run_is_loose), (of_unit, unit_is_loose) = run, unit
    if run_is_loose and unit_is_loose:
        return of_run & of_unit, True
    if unit_is_loose:
        return NO_HOPS if of_run & ~of_unit else run
    if run_is_loose:
        return NO_HOPS if of_unit & ~of_run else unit
    return run if of_run == of_unit else NO_HOPS


def _split(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The largest aligned blocks that make up a range, as start and size."""
    while start < end:
        size = start & -start or 1 << (end - 1).bit_length()
        while start + size > end:
            size //= 2
        yield start, size
        start += size
