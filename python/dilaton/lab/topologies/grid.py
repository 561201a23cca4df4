"""`grid`: nodes in a rectangle."""

from __future__ import annotations

from typing import Annotated

from dilaton.lab.generator import GraphGenerator, count
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """`rows` rows of `columns` nodes, numbered row by row, each linked with those beside, above and below it."""

    rows: Annotated[int, count("a number of rows", 1)]
    columns: Annotated[int, count("a number of columns", 1)]

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.rows * self.columns, 2 * self.rows * self.columns

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        columns, size = self.columns, self.rows * self.columns
        beside = [(number, number + 1) for number in range(size) if (number + 1) % columns]
        below = [(number, number + columns) for number in range(size - columns)]
        return self.of_graph(size, beside + below, lambda number: (float(number % columns), -float(number // columns)))
