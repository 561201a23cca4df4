"""`torus`: nodes in a rectangle whose opposite sides are joined."""

from __future__ import annotations

from typing import Annotated

import networkx

from dilaton.lab.topologies._generator import NODES_MAX, GraphGenerator, count
from dilaton.lab.topology import Topology


class Source(GraphGenerator):
    """`rows` rows of `columns` nodes, numbered row by row, each linked with its four neighbours."""

    rows: Annotated[int, count("a number of rows", 3)]
    columns: Annotated[int, count("a number of columns", 3)]

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        if self.rows * self.columns > NODES_MAX:
            raise ValueError(f"{self.rows} rows of {self.columns} columns: at most {NODES_MAX} nodes")
        grid = networkx.grid_2d_graph(self.rows, self.columns, periodic=True)
        graph = networkx.convert_node_labels_to_integers(grid, ordering="sorted")
        columns = self.columns
        return self.of_graph(graph, lambda number: (float(number % columns), -float(number // columns)))
