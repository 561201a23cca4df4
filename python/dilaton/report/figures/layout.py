"""Where a drawing has the nodes of a lab.

A topology that knows its shape says where its nodes are. Nodes that it does not place stand beside their neighbours,
and a lab that places none is laid out by springs as long as the paths between its nodes (Kamada and Kawai, 1989), which
shows symmetry well; beyond a few hundred nodes, by springs along the links only, since the other takes the third power
of their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import networkx

from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans

Position = tuple[float, float]

KAMADA_KAWAI_NODES_MAX = 300
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
"""Successive turns by this angle never come back to the same place."""


def graph_of(lab: Lab) -> networkx.Graph[str]:
    """The nodes of a lab and which of them are linked; a segment is a node of its own."""
    graph: networkx.Graph[str] = networkx.Graph()
    flat = without_lans(lab)
    graph.add_nodes_from(flat.nodes)
    graph.add_edges_from((link.endpoints[0].node, link.endpoints[1].node) for link in flat.links)
    return graph


def positions(lab: Lab) -> dict[str, Position]:
    """The place of each node, x to the right and y up; two neighbours are about 1 apart."""
    graph = graph_of(lab)
    known: Mapping[str, Position] = lab.topology.positions if lab.topology else {}
    placed = {name: known[name] for name in graph if name in known} or _by_springs(graph, lab.seed)
    for number, name in enumerate(name for name in graph if name not in placed):
        beside = [placed[other] for other in graph[name] if other in placed] or list(placed.values())[:1]
        x, y = (sum(place[axis] for place in beside) / len(beside) for axis in (0, 1))
        angle = GOLDEN_ANGLE * number
        placed[name] = (x + 0.6 * math.cos(angle), y + 0.6 * math.sin(angle))
    return placed


def _by_springs(graph: networkx.Graph[str], seed: int) -> dict[str, Position]:
    scale = max(math.sqrt(graph.number_of_nodes()) * 0.8, 1.0)
    found: dict[str, Any]
    if graph.number_of_nodes() <= KAMADA_KAWAI_NODES_MAX and networkx.is_connected(graph):
        found = networkx.kamada_kawai_layout(graph, scale=scale)
    else:
        found = networkx.spring_layout(graph, seed=seed % 2**32, scale=scale)
    return {name: (float(place[0]), float(place[1])) for name, place in found.items()}
