"""Cheapest paths: which next hops lead from each node to a target.

The graph is that of OSPF (RFC 2328, section 2.1): forwarding nodes, and for each segment with switches a vertex of its
own, which it costs nothing to leave. A path costs what the interfaces cost by which it leaves nodes. Distances are
computed from the target backwards, once for each target, with the graph reversed; then a hop is one of the cheapest if
the interface's cost and the distance from its other end make up the node's own distance.

Hosts with one interface are no vertices: whoever leads to their segment leads to them.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dilaton.lab.model import Lab
from dilaton.lab.segments import Port, Segment

Vertex = str | int
"""A node by its name, or a segment with switches by its position."""


Edges = dict[Vertex, int]
"""The vertices to which a vertex has an edge, and what each costs."""

Hops = int
"""A set of the hops of a node: bit i stands for the hop number i of `Paths.ways`."""


@dataclass(frozen=True)
class Hop:
    """A way out of a node: its own interface, and the interface of the next node."""

    own: Port
    other: Port


@dataclass(frozen=True)
class _Way:
    """An interface of a node: what it costs, the vertex behind it, and the hops to the nodes there.

    `segment` is the position of its segment if that has switches, else None.
    """

    cost: int
    vertex: Vertex
    segment: int | None
    hops: list[Hop]
    numbered: list[tuple[Hops, str]]
    """Each hop as a set of its own, and the node it leads to."""


class Paths:
    """The graph of a lab."""

    def __init__(self, lab: Lab, segments: Sequence[Segment], forwarding: frozenset[str]) -> None:
        """The paths over these segments, through these nodes."""
        self._costs = [link.cost for link in lab.links]
        self._segments = segments
        self.forwarding = forwarding
        """The nodes that paths may lead through."""
        self.ports: dict[str, list[tuple[Port, int]]] = {name: [] for name in lab.nodes}
        """The interfaces of each node with the positions of their segments, in the order of links."""
        for number, segment in enumerate(segments):
            for port in segment.ports:
                self.ports[port.node].append((port, number))
        for ports in self.ports.values():
            ports.sort(key=lambda entry: entry[0].link)
        self._reversed = self._reverse()
        self._ways = {name: self._ways_of(name) for name in lab.nodes if len(self.ports[name]) > 1}

    def is_stub(self, node: str) -> bool:
        """Whether a node has one interface only."""
        return len(self.ports[node]) == 1

    def ways(self, node: str) -> list[Hop]:
        """All hops that a node has, in the order of links: to who forwards, or is alone at the other end of a link."""
        return [hop for way in self._ways_of(node) for hop in way.hops]

    def target(self, node: str) -> Vertex:
        """The vertex to which paths to a node lead: itself, or for a stub that which its segment is reached by."""
        if node in self.forwarding or not self.is_stub(node):
            return node
        [(own, number)] = self.ports[node]
        segment = self._segments[number]
        return next(port.node for port in segment.ports if port != own) if _is_direct(segment) else number

    def hops(self, target: Vertex) -> dict[str, Hops]:
        """Returns the first hops of the cheapest paths of each node with two interfaces or more."""
        found: dict[str, Hops] = {}
        if target not in self._reversed:
            # A link between two hosts, to which nothing leads.
            return found
        costs = self._distances(target)
        passable = self.forwarding | {target}
        for node, ways in self._ways.items():
            if node == target or (isinstance(target, int) and any(way.segment == target for way in ways)):
                continue
            best: int | None = None
            hops: Hops = 0
            for way in ways:
                rest = costs.get(way.vertex)
                if rest is None or (best is not None and way.cost + rest > best):
                    continue
                nearest: Hops = 0
                for hop, other in way.numbered:
                    if other in passable and costs.get(other) == rest:
                        nearest |= hop
                if nearest and (best is None or way.cost + rest < best):
                    best, hops = way.cost + rest, 0
                hops |= nearest
            if hops:
                found[node] = hops
        return found

    def _distances(self, target: Vertex) -> dict[Vertex, int]:
        if isinstance(target, str) and target not in self.forwarding:
            # It forwards nothing, so no path leads through it; but here all paths begin at it.
            return distances(self._reversed | {target: self._edges_from(target)}, target)
        return distances(self._reversed, target)

    def _reverse(self) -> dict[Vertex, Edges]:
        graph: dict[Vertex, Edges] = {
            name: self._edges_from(name) if name in self.forwarding else {}
            for name in self.ports
            if self._is_vertex(name)
        }
        for number, segment in enumerate(self._segments):
            if not _is_direct(segment):
                graph[number] = {
                    port.node: self._costs[port.link] for port in segment.ports if self._is_vertex(port.node)
                }
        return graph

    def _ways_of(self, node: str) -> list[_Way]:
        ways: list[_Way] = []
        count = 0
        for own, number in self.ports[node]:
            segment = self._segments[number]
            hops = [Hop(own, port) for port in segment.ports if port != own]
            vertex: Vertex = hops[0].other.node if _is_direct(segment) else number
            if vertex == number:
                hops = [hop for hop in hops if self._is_vertex(hop.other.node)]
            numbered = [(1 << place, hop.other.node) for place, hop in enumerate(hops, count)]
            count += len(hops)
            ways.append(_Way(self._costs[own.link], vertex, None if _is_direct(segment) else number, hops, numbered))
        return ways

    def _is_vertex(self, node: str) -> bool:
        return node in self.forwarding or not self.is_stub(node)

    def _edges_from(self, node: str) -> Edges:
        """The reversed edges from a node: who can send to it directly, and at what cost."""
        edges: Edges = {}
        for own, number in self.ports[node]:
            segment = self._segments[number]
            if not _is_direct(segment):
                edges[number] = 0
                continue
            other = segment.ports[0] if segment.ports[1] == own else segment.ports[1]
            if self._is_vertex(other.node):
                edges[other.node] = min(self._costs[other.link], edges.get(other.node, self._costs[other.link]))
        return edges


def distances(graph: Mapping[Vertex, Edges], start: Vertex) -> dict[Vertex, int]:
    """What the cheapest path from `start` costs, for each vertex to which there is one (Dijkstra's algorithm)."""
    found: dict[Vertex, int] = {}
    # The count settles between equal costs, since names and positions cannot be compared.
    counts = itertools.count()
    reached = [(0, next(counts), start)]
    while reached:
        cost, _, vertex = heapq.heappop(reached)
        if vertex in found:
            continue
        found[vertex] = cost
        for other, step in graph[vertex].items():
            if other not in found:
                heapq.heappush(reached, (cost + step, next(counts), other))
    return found


def _is_direct(segment: Segment) -> bool:
    """Whether a segment is a link between two nodes."""
    return not segment.switches and len(segment.ports) == 2
