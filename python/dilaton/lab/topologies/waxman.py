"""`waxman`: nodes at random places, linked by chance, the nearer the likelier (Waxman, 1988)."""

from __future__ import annotations

import math
from typing import Annotated

import networkx

from dilaton.lab.generator import GraphGenerator, count, fraction
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """`nodes` nodes on the unit square; two at distance d are linked with probability beta * exp(-d / (alpha * L)).

    L is the largest distance. Parts that chance left apart are linked where they are nearest.
    """

    nodes: Annotated[int, count("a number of nodes", 2, 5000)]
    alpha: Annotated[float, fraction("alpha")] = 0.1
    beta: Annotated[float, fraction("beta")] = 0.4

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, about.

        Of nodes anywhere in a unit square, whose largest distance is the square root of 2, those near the one in the
        middle have links with it as often as the integral over the plane says.
        """
        part = self.beta * min(1.0, 4 * math.pi * self.alpha**2)
        return self.nodes, int(part * self.nodes * (self.nodes - 1) / 2)

    def make(self, seed: int) -> Topology:
        """The network."""
        graph = networkx.waxman_graph(self.nodes, beta=self.beta, alpha=self.alpha, seed=seed)
        places: dict[int, tuple[float, float]] = networkx.get_node_attributes(graph, "pos")
        first, *others = sorted((sorted(part) for part in networkx.connected_components(graph)), key=min)
        for part in others:
            pairs = ((a, b) for a in first for b in part)
            graph.add_edge(*min(pairs, key=lambda pair: math.dist(places[pair[0]], places[pair[1]])))
            first += part
        scale = math.sqrt(self.nodes) * 1.5
        return self.of_graph(
            self.nodes, graph.edges, lambda number: (places[number][0] * scale, places[number][1] * scale)
        )
