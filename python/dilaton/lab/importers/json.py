"""`json:`: graphs in networkx's node-link JSON, with attributes as in GraphML (see `_attributed`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
from pydantic import Field

from dilaton.lab.importers._attributed import AttributedGraph, check_size
from dilaton.lab.importers._importer import mapping, read_text


class Source(AttributedGraph):
    """A file in node-link JSON."""

    json_: str = Field(validation_alias="json")

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph of the file."""
        path = directory / self.json_
        try:
            data = mapping(json.loads(read_text(path)), str(path))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
        except ValueError as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
        except RecursionError:
            raise ValueError(f"{path}: not JSON: nested too deeply") from None
        return node_link_graph(data, str(path))


def node_link_graph(data: dict[str, Any], place: str) -> networkx.Graph[Any]:
    """The graph of node-link data, whose edges may be called `links`, as networkx did before version 3.4.

    Raises:
        ValueError: it is no such data.
    """
    edges = next((key for key in ("edges", "links") if key in data), None)
    if edges is None or not isinstance(data.get("nodes"), list) or not isinstance(data[edges], list):
        raise ValueError(f"{place}: not a node-link graph: it needs lists of nodes and edges")
    check_size(len(data["nodes"]) + len(data[edges]), place)
    try:
        graph: networkx.Graph[Any] = networkx.node_link_graph(data, edges=edges)
    except (networkx.NetworkXError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{place}: not a node-link graph: {error!r}") from error
    if len(graph) > len(data["nodes"]):
        # networkx adds the nodes of which only edges know.
        unknown = list(graph)[len(data["nodes"])]
        raise ValueError(f"{place}: not a node-link graph: an edge ends at {unknown}, which is not among the nodes")
    return graph
