"""`gml:`: files in GML, with the attributes of the Internet Topology Zoo (see `_attributed`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx

from dilaton.lab.importers._attributed import AttributedGraph, check_size
from dilaton.lab.importers._importer import read_text

PART = re.compile(r"\b(?:node|edge)\s*\[")


class Source(AttributedGraph):
    """A file in GML."""

    gml: str

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph of the file."""
        path = directory / self.gml
        text = read_text(path)
        return parse_gml(text, str(path))


def parse_gml(text: str, place: str) -> networkx.Graph[Any]:
    """The graph of a GML text.

    Raises:
        ValueError: it is no GML, or larger than what is read.
    """
    check_size(len(PART.findall(text)), place)
    try:
        graph: networkx.Graph[Any] = networkx.parse_gml(text, label="id")
    except RecursionError:
        raise ValueError(f"{place}: not GML: nested too deeply") from None
    except (networkx.NetworkXError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: not GML: {error}") from error
    return graph
