"""`barabasi-albert`: a network that grew by linking new nodes with well-linked ones (Barabási and Albert, 1999)."""

from __future__ import annotations

from typing import Annotated

import networkx

from dilaton.lab.generator import GraphGenerator, count
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """`nodes` nodes; each came with `links` links to earlier ones, drawn in proportion to the links that these had."""

    nodes: Annotated[int, count("a number of nodes", 2, 10_000)]
    links: Annotated[int, count("a number of links of a new node", 1, 1000)] = 2

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.nodes, self.nodes * self.links

    def make(self, seed: int) -> Topology:
        """The network."""
        if self.links >= self.nodes:
            raise ValueError(f"{self.links} links of a new node: must be less than the {self.nodes} nodes")
        graph = networkx.barabasi_albert_graph(self.nodes, self.links, seed=seed)
        return self.of_graph(self.nodes, graph.edges)
