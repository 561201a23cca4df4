"""`torus`: nodes in a rectangle whose opposite sides are joined."""

from __future__ import annotations

from typing import Annotated

from dilaton.lab.generator import GraphGenerator, Position, count
from dilaton.lab.topology import Topology

BULGE = 0.3
"""How far the middle of a side stands out, in steps."""


class Source(GraphGenerator):
    """`rows` rows of `columns` nodes, numbered row by row, each linked with its four neighbours."""

    rows: Annotated[int, count("a number of rows", 3)]
    columns: Annotated[int, count("a number of columns", 3)]

    def fabric(self) -> tuple[int, int]:
        """Nodes and links of the graph, at most."""
        return self.rows * self.columns, 2 * self.rows * self.columns

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        columns, size = self.columns, self.rows * self.columns
        beside = [(number, number + 1 if (number + 1) % columns else number + 1 - columns) for number in range(size)]
        below = [(number, (number + columns) % size) for number in range(size)]
        return self.of_graph(size, beside + below, self._place)

    def _place(self, number: int) -> Position:
        """Rows and columns bulge, so that the links that close them are not hidden behind the others."""
        row, column = divmod(number, self.columns)
        across, down = (2 * column / (self.columns - 1) - 1, 2 * row / (self.rows - 1) - 1)
        return column - BULGE * (1 - down**2), -row + BULGE * (1 - across**2)
