"""`line`: nodes in a row."""

from __future__ import annotations

import itertools
from typing import Annotated

from dilaton.lab.generator import GraphGenerator, count
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """`nodes` nodes, each linked with the next."""

    nodes: Annotated[int, count("a number of nodes", 2)]

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.nodes, self.nodes

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        return self.of_graph(self.nodes, itertools.pairwise(range(self.nodes)), lambda number: (float(number), 0.0))
