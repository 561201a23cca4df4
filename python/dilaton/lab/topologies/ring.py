"""`ring`: nodes in a circle."""

from __future__ import annotations

import itertools
from typing import Annotated

from dilaton.lab.generator import GraphGenerator, count, on_circle
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """`nodes` nodes, each linked with the next, and the last with the first."""

    nodes: Annotated[int, count("a number of nodes", 3)]

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.nodes, self.nodes

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        edges = [*itertools.pairwise(range(self.nodes)), (self.nodes - 1, 0)]
        return self.of_graph(self.nodes, edges, on_circle(self.nodes))
