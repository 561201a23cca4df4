"""Static routes: shortest paths by hop count, in few lines.

Every address of the lab is a position in 10.0.0.0/8 (see `addresses`), and for one node each of them has a next hop.
Consecutive positions with the same next hop make a run, and a run is a few prefixes. Links that are written one after
another tend to lie in the same direction, so a node in a line of n has O(log n) routes instead of O(n).

The addresses of a node's own links need no route, since the connected /31 is more specific than any prefix that a run
makes: they fit into whatever run surrounds them.

Between paths of the same length, the link that comes first in the lab wins. Each hop brings a packet nearer to the
address's node, so no choice can make a loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_OWN = -1
"""Stands for the next hop to an address of a node's own link."""

_NETWORK_SIZE = 1 << 24


@dataclass(frozen=True)
class Prefix:
    """Positions in 10.0.0.0/8 that share a next hop: `size` of them, a power of two, from `start`."""

    start: int
    size: int
    link: int
    """The link to the next hop."""

    @property
    def length(self) -> int:
        """The prefix length."""
        return 33 - self.size.bit_length()


class Topology:
    """The graph of a lab: nodes and links by their positions."""

    def __init__(self, nodes: int, links: Sequence[tuple[int, int]]) -> None:
        """A graph of `nodes` nodes; each link is the positions of its nodes a and b."""
        self.links = links
        self.owners = [node for ends in links for node in ends]
        """The node that has each address, by its position."""
        self.adjacent: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        """For each node, its neighbours with the links to them, in the order of links."""
        for number, (a, b) in enumerate(links):
            self.adjacent[a].append((b, number))
            self.adjacent[b].append((a, number))

    def first_links(self, source: int) -> list[int | None]:
        """For each node, the first link of the shortest path to it; None for `source` and where no path leads."""
        first: list[int | None] = [None] * len(self.adjacent)
        seen = [False] * len(self.adjacent)
        seen[source] = True
        waiting = deque([source])
        while waiting:
            node = waiting.popleft()
            for neighbour, link in self.adjacent[node]:
                if not seen[neighbour]:
                    seen[neighbour] = True
                    first[neighbour] = link if node == source else first[node]
                    waiting.append(neighbour)
        return first

    def prefixes(self, source: int) -> Iterator[Prefix]:
        """The routes of a node to the addresses of all nodes that it can reach."""
        first = self.first_links(source)
        hops = [first[owner] for owner in self.owners]
        for _, link in self.adjacent[source]:
            hops[2 * link] = hops[2 * link + 1] = _OWN
        for start, end, hop in _runs(hops):
            for position, size in _split(start, end):
                if any(inner != _OWN for inner in hops[position : position + size]):
                    yield Prefix(position, size, hop)


def _runs(hops: Sequence[int | None]) -> Iterator[tuple[int, int, int]]:
    """Ranges with the same next hop, each from and to an address that needs it, with own addresses in between."""
    start = end = 0
    current: int | None = None
    for position, hop in enumerate(hops):
        if hop == _OWN:
            continue
        if hop != current:
            if current is not None:
                yield start, end, current
            start, current = position, hop
        end = position + 1
    if current is not None:
        yield start, end, current


def _split(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The largest aligned blocks that make up a range, as start and size."""
    while start < end:
        size = start & -start or _NETWORK_SIZE
        while start + size > end:
            size //= 2
        yield start, size
        start += size
