"""Blocks are those that networkx finds, and what is behind a vertex is what its removal cuts off."""

from __future__ import annotations

import networkx
from hypothesis import given
from hypothesis import strategies as st

from dilaton.plan.network.blocks import behind, blocks

Edges = list[tuple[int, int]]

edges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=16)


def neighbours(edges: Edges) -> dict[int, list[int]]:
    graph: dict[int, list[int]] = {vertex: [] for vertex in range(10)}
    for one, other in edges:
        graph[one].append(other)
        graph[other].append(one)
    return graph


@given(edges)
def test_blocks_are_those_of_networkx(edges: Edges) -> None:
    graph = networkx.Graph([edge for edge in edges if edge[0] != edge[1]])
    expected = {frozenset(block) for block in networkx.biconnected_components(graph)}
    found = blocks(neighbours(edges))
    assert {frozenset(block.vertices) for block in found} == expected
    assert len(found) == len(expected)


@given(edges, st.sets(st.integers(0, 9)))
def test_behind_a_vertex_is_what_is_reached_over_it_alone(edges: Edges, blocking: set[int]) -> None:
    found = blocks(neighbours(edges))
    sets = behind(
        found, neighbours(edges), {vertex: 1 << vertex for vertex in range(10)}, lambda vertex: vertex not in blocking
    )
    for block, by in zip(found, sets, strict=True):
        inside = set(block.vertices)
        assert by.keys() == inside
        for vertex, bits in by.items():
            graph = networkx.DiGraph()
            graph.add_node(vertex)
            # What blocks is reached, but leads nowhere.
            for ends in edges:
                for one, other in (ends, reversed(ends)):
                    if one not in blocking and not {one, other} <= inside:
                        graph.add_edge(one, other)
            reached = {vertex} | networkx.descendants(graph, vertex)
            assert bits == sum(1 << other for other in reached), (block, vertex)


def test_a_line_longer_than_python_recurses_has_a_block_for_each_link() -> None:
    count = 5000
    graph = {vertex: [near for near in (vertex - 1, vertex + 1) if 0 <= near < count] for vertex in range(count)}
    found = blocks(graph)
    assert len(found) == count - 1
    sets = behind(found, graph, {vertex: 1 << vertex for vertex in range(count)}, lambda _: True)
    assert all(by[min(by)] | by[max(by)] == (1 << count) - 1 for by in sets)
