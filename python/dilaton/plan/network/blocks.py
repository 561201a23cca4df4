"""Where a graph hangs together by single vertices: its blocks, and what lies behind each vertex of a block.

Every path from within a block to what lies outside leaves it by one vertex, a cut vertex, so who knows the way to that
one knows the way to all behind it. A line or a tree has a block for each link, so that paths are looked for between
two vertices instead of between all. Blocks are found as by Hopcroft and Tarjan, "Algorithm 447" (1973), with vertices
on the stack in place of edges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Vertex = TypeVar("Vertex", bound=Hashable)


@dataclass(frozen=True)
class Block(Generic[Vertex]):
    """Vertices that no single vertex separates, each two of them joined by an edge or by two paths that share nothing.

    `root` is the vertex by which it hangs on blocks that come later.
    """

    root: Vertex
    others: Sequence[Vertex]

    @property
    def vertices(self) -> list[Vertex]:
        """All of them."""
        return [self.root, *self.others]


def blocks(graph: Mapping[Vertex, Collection[Vertex]]) -> list[Block[Vertex]]:
    """The blocks of a graph, in which each edge is there from both of its ends.

    A block comes after those that hang on its vertices but the root. A vertex without an edge is in none.
    """
    found: list[Block[Vertex]] = []
    depth: dict[Vertex, int] = {}
    lowest: dict[Vertex, int] = {}
    """The least depth that is reached from what hangs on a vertex, by one edge that is not in the tree."""
    for start in graph:
        if start in depth:
            continue
        depth[start] = lowest[start] = 0
        seen = [start]
        # Not by recursion: a line of thousands of nodes is as deep.
        way = [(start, iter(graph[start]))]
        while way:
            vertex, rest = way[-1]
            for other in rest:
                if other not in depth:
                    depth[other] = lowest[other] = len(way)
                    seen.append(other)
                    way.append((other, iter(graph[other])))
                    break
                lowest[vertex] = min(lowest[vertex], depth[other])
            else:
                way.pop()
                if not way:
                    continue
                root = way[-1][0]
                lowest[root] = min(lowest[root], lowest[vertex])
                if lowest[vertex] >= depth[root]:
                    others = [seen.pop()]
                    while others[-1] != vertex:
                        others.append(seen.pop())
                    found.append(Block(root, others))
    return found


def behind(
    found: Sequence[Block[Vertex]],
    graph: Mapping[Vertex, Collection[Vertex]],
    own: Mapping[Vertex, int],
    passes: Callable[[Vertex], bool],
) -> list[dict[Vertex, int]]:
    """What is reached from each block by each of its vertices: of the vertex itself, and of all that hang on it.

    Args:
        found: As `blocks` returns them.
        graph: Of which they are.
        own: The sets of what vertices have themselves, as bits; no two have the same.
        passes: Whether paths lead through a vertex.
    """
    parts = [_parts(block, graph, passes) for block in found]
    around: dict[Vertex, int] = {}
    """What is reached from a vertex by its blocks, those that come later excepted until they were here."""
    reached: list[dict[Vertex, int]] = []
    for block, within in zip(found, parts, strict=True):
        by = {vertex: own.get(vertex, 0) | (around.get(vertex, 0) if passes(vertex) else 0) for vertex in block.others}
        reached.append(by)
        around[block.root] = around.get(block.root, 0) | _inwards(by, within).get(block.root, 0)
    for block, within, by in zip(reversed(found), reversed(parts), reversed(reached), strict=True):
        root = block.root
        # No two branches have anything in common, so what one has is taken away by taking its bits out.
        inwards = _inwards(by, within).get(root, 0)
        by[root] = own.get(root, 0) | (around[root] & ~inwards if passes(root) else 0)
        for vertex, bits in _inwards(by, within).items():
            around[vertex] = around.get(vertex, 0) | bits
    return reached


def _parts(
    block: Block[Vertex], graph: Mapping[Vertex, Collection[Vertex]], passes: Callable[[Vertex], bool]
) -> list[Collection[Vertex]]:
    """What is reached within a block from the vertices that let paths through, those together that reach each other."""
    vertices = set(block.vertices)
    left = {vertex for vertex in vertices if passes(vertex)}
    if len(left) == len(vertices) or len(vertices) == 2:
        return [vertices]
    parts: list[Collection[Vertex]] = []
    while left:
        waiting = [left.pop()]
        part = set(waiting)
        while waiting:
            near = {other for other in graph[waiting.pop()] if other in vertices} - part
            part |= near
            waiting += near & left
            left -= near
        parts.append(part)
    return parts


def _inwards(by: Mapping[Vertex, int], parts: Sequence[Collection[Vertex]]) -> dict[Vertex, int]:
    """What is reached from each vertex by its block, by what is reached from there by each."""
    inwards: dict[Vertex, int] = {}
    for part in parts:
        whole = 0
        for vertex in part:
            whole |= by.get(vertex, 0)
        for vertex in part:
            inwards[vertex] = whole & ~by.get(vertex, 0)
    return inwards
