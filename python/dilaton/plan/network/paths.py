"""Cheapest paths: which next hops lead from each node to a target.

The graph is that of OSPF (RFC 2328, section 2.1): forwarding nodes, and for each segment with switches a vertex of its
own, which it costs nothing to leave. A path costs what the interfaces cost by which it leaves nodes. Distances are
computed from the target backwards, once for each target, with the graph reversed; then a hop is one of the cheapest if
the interface's cost and the distance from its other end make up the node's own distance.

Paths are looked for in one block of the graph at a time (`blocks`): who knows the way to a vertex by which a block
hangs on others knows the way to all behind it. That is a set, which costs the same for one and for many.

Hosts with one interface are no vertices: whoever leads to their segment leads to them.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dilaton.lab.model import Lab
from dilaton.lab.segments import Port, Segment
from dilaton.plan.network.blocks import Block, behind, blocks

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
        self._vertices = [[port for port in segment.ports if self._is_vertex(port.node)] for segment in segments]
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

    def reach(self, own: Mapping[Vertex, int]) -> dict[str, dict[Hops, int]]:
        """What each node with two interfaces or more reaches, by the first hops of the cheapest paths to it.

        What is on a segment that a node has an interface on is left out: no hop leads there.

        Args:
            own: What vertices have, as sets of bits; no two have the same.
        """
        reached: dict[str, dict[Hops, int]] = {name: {} for name in self._ways}
        graph = self._joined()
        found = blocks(graph)
        sets = behind(found, graph, own, lambda vertex: isinstance(vertex, int) or vertex in self.forwarding)
        for block, by in zip(found, sets, strict=True):
            inside = _Inside(self, block)
            for target, bits in by.items():
                if bits:
                    for node, hops in inside.hops(target).items():
                        reached[node][hops] = reached[node].get(hops, 0) | bits
        return reached

    def _joined(self) -> dict[Vertex, list[Vertex]]:
        """The graph that blocks are made of: an edge for each link, and all vertices of a segment in one block.

        A hop over a segment with switches depends on the node that it leads to, so such a segment must not be what a
        block hangs on another by. It is none if its nodes are joined in a row too.
        """
        graph: dict[Vertex, list[Vertex]] = {vertex: [] for vertex in self._reversed}
        for number, ports in enumerate(self._vertices):
            names: list[Vertex] = [port.node for port in ports]
            edges = list(itertools.pairwise(names))
            if number in graph:
                edges += [(number, name) for name in names]
            for one, other in edges:
                graph[one].append(other)
                graph[other].append(one)
        return graph

    def _reverse(self) -> dict[Vertex, Edges]:
        graph: dict[Vertex, Edges] = {
            name: self.edges_from(name) if name in self.forwarding else {}
            for name in self.ports
            if self._is_vertex(name)
        }
        for number, segment in enumerate(self._segments):
            if not _is_direct(segment):
                graph[number] = {port.node: self._costs[port.link] for port in self._vertices[number]}
        return graph

    def _ways_of(self, node: str) -> list[_Way]:
        ways: list[_Way] = []
        count = 0
        for own, number in self.ports[node]:
            segment = self._segments[number]
            others = segment.ports if _is_direct(segment) else self._vertices[number]
            hops = [Hop(own, port) for port in others if port != own]
            vertex: Vertex = hops[0].other.node if _is_direct(segment) else number
            numbered = [(1 << place, hop.other.node) for place, hop in enumerate(hops, count)]
            count += len(hops)
            ways.append(_Way(self._costs[own.link], vertex, None if _is_direct(segment) else number, hops, numbered))
        return ways

    def _is_vertex(self, node: str) -> bool:
        return node in self.forwarding or not self.is_stub(node)

    def edges_from(self, node: str) -> Edges:
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

    def block_ways(self, block: Collection[Vertex]) -> dict[str, list[_Way]]:
        """The interfaces, of nodes of a block that have two or more, that lead to another vertex of the block."""
        nodes = (vertex for vertex in block if isinstance(vertex, str) and vertex in self._ways)
        return {node: [way for way in self._ways[node] if way.vertex in block] for node in nodes}

    def block_graph(self, block: Collection[Vertex]) -> dict[Vertex, Edges]:
        """The reversed graph within a block."""
        return {
            vertex: {other: cost for other, cost in self._reversed[vertex].items() if other in block}
            for vertex in block
        }


class _Inside:
    """The paths within a block."""

    def __init__(self, paths: Paths, block: Block[Vertex]) -> None:
        self._paths = paths
        self._vertices = dict.fromkeys(block.vertices)
        self._reversed = paths.block_graph(self._vertices)
        self._ways = paths.block_ways(self._vertices)
        self._forwarding = self._vertices.keys() & paths.forwarding

    def hops(self, target: Vertex) -> dict[str, Hops]:
        """Returns the first hops of the cheapest paths of each node with two interfaces or more."""
        found: dict[str, Hops] = {}
        costs = self._distances(target)
        passable = self._forwarding | {target}
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
        if isinstance(target, str) and target not in self._forwarding:
            # It forwards nothing, so no path leads through it; but here all paths begin at it.
            edges = {other: cost for other, cost in self._paths.edges_from(target).items() if other in self._vertices}
            return distances(self._reversed | {target: edges}, target)
        return distances(self._reversed, target)


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
