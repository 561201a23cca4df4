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

from collections.abc import Iterator, Sequence
from random import Random

from dilaton.lab.kinds import ROUTER
from dilaton.lab.model import Lab
from dilaton.lab.segments import Segment
from dilaton.plan.model import Hop as PlannedHop
from dilaton.plan.model import Route
from dilaton.plan.network.addresses import BITS, AddressPlan, Prefix, Version, ip
from dilaton.plan.network.paths import Hop, Hops, Paths
from dilaton.plan.network.runs import Need, Unit, Units, places

SHARES = 64
"""About how many equal shares flows are divided into; see `Spread`. The kernel keeps a record of some hundred bytes for
each share of each set of hops."""


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
        units: list[Unit] = []
        for number, segment in enumerate(segments):
            for prefix in plan.prefixes[number].values():
                units += self._units_of(number, segment, prefix)
        for node, addresses in plan.loopbacks.items():
            for version, value in addresses.items():
                units.append(Unit(version, value, value + 1, paths.target(node), None, is_loose=False))
        self._units = Units(units)
        self._reached: dict[str, dict[Hops, int]] = {}
        """What each node reaches by which hops."""
        if lab.routing.policy in ("shortest-path", "ecmp") or any(
            len(paths.ports[name]) > 1 and name not in paths.forwarding for name in lab.nodes
        ):
            self._reached = paths.reach(self._units.of_target)

    def of(self, node: str) -> list[Route]:
        """The routes of a node: one to everything where there is only one way."""
        has_own = self._lab.nodes[node].has_own_routing
        has_daemon = (self._lab.routing.has_daemon or has_own) and node in self._paths.forwarding
        if self._lab.routing.policy == "none" or has_daemon or not self._paths.ports[node]:
            return []
        spread, ways = Spread(self._lab.seed, node), self._paths.ways(node)
        found = (
            [(version, "default", self._chosen((1 << len(ways)) - 1)) for version in self._units.versions]
            if self._paths.is_stub(node)
            else [
                (version, f"{ip(version, start)}/{BITS[version] - size.bit_length() + 1}", hops)
                for version, start, size, hops in self._units.prefixes(self._needs(node))
            ]
        )
        planned = {
            (version, hops): self._plan_hops(members, version)
            for version, hops in {(version, hops) for version, _, hops in found}
            if (members := [ways[number] for number in places(hops)])
            and all(version in self._plan.addresses[hop.other] for hop in members)
        }
        # The kernel takes a hop of an IPv6 route only once, so there it divides the flows itself.
        return [
            Route(
                to=to,
                hops=planned[version, hops],
                shares=spread.shares(len(planned[version, hops])) if version == 4 else [],
            )
            for version, to, hops in found
            if (version, hops) in planned
        ]

    def _chosen(self, hops: Hops) -> Hops:
        return hops if self._is_ecmp else hops & -hops

    def _plan_hops(self, hops: Sequence[Hop], version: Version) -> list[PlannedHop]:
        return [
            PlannedHop(
                via=ip(version, self._plan.addresses[hop.other][version]),
                interface=self._lab.links[hop.own.link].endpoints[hop.own.side].interface,
            )
            for hop in hops
        ]

    def _units_of(self, number: int, segment: Segment, prefix: Prefix) -> Iterator[Unit]:
        """A pair of addresses is a unit each, or a half each of the four of a /30; a larger prefix is one unit."""
        start, size = prefix.start, prefix.size
        nodes = [port.node for port in segment.ports]
        is_loose = not segment.switches and all(self._lab.nodes[name].kind == ROUTER for name in nodes)
        if segment.switches or len(nodes) != 2:
            yield Unit(prefix.version, start, start + size, number, number, is_loose)
            return
        own = None if any(self._paths.is_stub(name) for name in nodes) else number
        if size > 4:
            yield Unit(prefix.version, start, start + size, self._paths.target(nodes[0]), own, is_loose)
            return
        for port in segment.ports:
            half = start + (self._plan.addresses[port][prefix.version] - start) // (size // 2) * (size // 2)
            yield Unit(prefix.version, half, half + size // 2, self._paths.target(port.node), own, is_loose)

    def _needs(self, node: str) -> dict[Need, int]:
        """What a node needs for which units; nothing for those of its own links and for its own."""
        units = self._units
        rest = units.all & ~units.of_target.get(node, 0)
        for _, number in self._paths.ports[node]:
            rest &= ~units.of_segment.get(number, 0)
        needs: dict[Need, int] = {}
        reached = self._reached.get(node, {})
        for hops, bits in reached.items():
            for need, those in (((hops, True), units.loose), ((self._chosen(hops), False), ~units.loose)):
                if found := bits & those & rest:
                    needs[need] = needs.get(need, 0) | found
        for bits in reached.values():
            rest &= ~bits
        return needs | {(0, False): rest}
