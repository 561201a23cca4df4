"""`graphml:`: files in GraphML, with the attributes of the Internet Topology Zoo (see `_attributed`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx

from dilaton.lab.importers._attributed import AttributedGraph, check_size
from dilaton.lab.importers._importer import read_text
from dilaton.lab.importers._xml import Element, scan


class Source(AttributedGraph):
    """A file in GraphML."""

    graphml: str

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph of the file."""
        path = directory / self.graphml
        text = read_text(path)
        parts = 0

        def count(element: Element) -> None:
            nonlocal parts
            parts += element.name in ("node", "edge")
            check_size(parts, path)

        scan(text, path, "GraphML", count, lambda: None)
        try:
            graph: networkx.Graph[Any] = networkx.parse_graphml(text)
        except (ElementTree.ParseError, networkx.NetworkXError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: not GraphML: {error}") from error
        return graph
