"""`jellyfish`: a random regular graph of switches (Singla, Hong, Popa and Godfrey, NSDI'12)."""

from __future__ import annotations

from typing import Annotated

import networkx

from dilaton.lab.generator import GraphGenerator, count
from dilaton.lab.topology import Topology

ATTEMPTS_MAX = 100
"""Graphs that are drawn until one of them is connected; with three links or more at a node nearly all are."""


class Source(GraphGenerator):
    """`nodes` nodes, each with links to `degree` others that are drawn by chance."""

    nodes: Annotated[int, count("a number of nodes", 3, 10_000)]
    degree: Annotated[int, count("a number of links of a node", 2, 1000)]

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.nodes, self.nodes * self.degree // 2

    def make(self, seed: int) -> Topology:
        """The network."""
        if self.degree >= self.nodes or self.degree * self.nodes % 2:
            raise ValueError(
                f"{self.nodes} nodes with {self.degree} links each: there is no such graph; "
                "the degree must be less than the number of nodes, and one of the two even"
            )
        for attempt in range(ATTEMPTS_MAX):
            graph = networkx.random_regular_graph(self.degree, self.nodes, seed=seed + attempt)
            if networkx.is_connected(graph):
                return self.of_graph(self.nodes, graph.edges)
        raise ValueError(
            f"{self.nodes} nodes with {self.degree} links each: no connected graph was drawn; raise degree"
        )
