"""`graphml:`: files in GraphML, with the attributes of the Internet Topology Zoo (see `_attributed`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx

from dilaton.lab.importers._attributed import AttributedGraph, check_size
from dilaton.lab.importers._importer import read_text

PART = re.compile(r"<(?:\w+:)?(?:node|edge)\b")


class Source(AttributedGraph):
    """A file in GraphML."""

    graphml: str

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph of the file."""
        path = directory / self.graphml
        text = read_text(path)
        if "<!ENTITY" in text:
            raise ValueError(f"{path}: not GraphML: it defines entities, which grow when they are read; write them out")
        check_size(len(PART.findall(text)), path)
        try:
            graph: networkx.Graph[Any] = networkx.parse_graphml(text)
        except (ElementTree.ParseError, networkx.NetworkXError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: not GraphML: {error}") from error
        return graph
