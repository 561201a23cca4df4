"""`full-mesh`: every node linked with every other."""

from __future__ import annotations

import itertools
from typing import Annotated

from dilaton.lab.generator import GraphGenerator, count, on_circle
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """`nodes` nodes and a link between any two of them."""

    nodes: Annotated[int, count("a number of nodes", 2)]

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.nodes, self.nodes * (self.nodes - 1) // 2

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        return self.of_graph(self.nodes, itertools.combinations(range(self.nodes), 2), on_circle(self.nodes))
