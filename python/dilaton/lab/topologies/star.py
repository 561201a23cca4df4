"""`star`: nodes around a hub."""

from __future__ import annotations

from typing import Annotated

from dilaton.lab.generator import GraphGenerator, count, on_circle
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """A hub `n0` with `leaves` nodes around it."""

    leaves: Annotated[int, count("a number of leaves", 1)]

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.leaves + 1, self.leaves

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        around = on_circle(self.leaves)
        edges = [(0, leaf) for leaf in range(1, self.leaves + 1)]
        return self.of_graph(self.leaves + 1, edges, lambda number: around(number - 1) if number else (0.0, 0.0))
