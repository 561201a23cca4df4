"""Costs of cheapest paths are those that networkx finds."""

from __future__ import annotations

import networkx
from hypothesis import given
from hypothesis import strategies as st

from dilaton.plan.network.paths import Edges, Vertex, distances

VERTICES: list[Vertex] = ["a", "b", "c", 0, 1, 2]

graphs = st.fixed_dictionaries(
    {vertex: st.dictionaries(st.sampled_from(VERTICES), st.integers(0, 5)) for vertex in VERTICES}
)


@given(graphs)
def test_every_cheapest_path_costs_what_it_costs_by_networkx(graph: dict[Vertex, Edges]) -> None:
    weighted = networkx.DiGraph()
    weighted.add_weighted_edges_from((a, b, cost) for a, edges in graph.items() for b, cost in edges.items())
    weighted.add_nodes_from(graph)
    for start in VERTICES:
        assert distances(graph, start) == networkx.single_source_dijkstra_path_length(weighted, start)
