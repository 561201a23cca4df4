"""`gml:`: files in GML, with the attributes of the Internet Topology Zoo (see `_attributed`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx

from dilaton.lab.importers._attributed import AttributedGraph
from dilaton.lab.importers._importer import read_text


class Source(AttributedGraph):
    """A file in GML."""

    gml: str

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph of the file."""
        path = directory / self.gml
        text = read_text(path)
        try:
            graph: networkx.Graph[Any] = networkx.parse_gml(text, label="id")
        except (networkx.NetworkXError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not GML: {error}") from error
        return graph
