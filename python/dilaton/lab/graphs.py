"""Nodes and links as networkx graphs, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import networkx

from dilaton.lab.parts.links import Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import syntax
from dilaton.lab.text.part import made

Positions = Mapping[str, tuple[float, float]]
"""Where a drawing has nodes, by their names: x to the right and y up, in any unit."""


def from_networkx(graph: networkx.Graph[Any]) -> tuple[Mapping[str, Node], list[Link], Positions]:
    """See `Topology.from_networkx`."""
    names = {node: node_name(node) for node in graph}
    owners: dict[str, Any] = {}
    for node, name in names.items():
        if owners.setdefault(name, node) != node:
            raise ValueError(f"nodes {owners[name]!r} and {node!r}: both would be called {name}")
    nodes, positions = {}, {}
    for node, attributes in graph.nodes(data=True):
        fields = dict(attributes)
        if (position := fields.pop("pos", None)) is not None:
            positions[names[node]] = (float(position[0]), float(position[1]))
        nodes[names[node]] = made(Node, fields, f"node {node!r}")
    links = [
        made(Link, {"endpoints": [names[a], names[b]], **attributes}, f"edge {a!r} -- {b!r}")
        for a, b, attributes in graph.edges(data=True)
    ]
    return nodes, links, positions


def to_networkx(nodes: Mapping[str, Node], links: Iterable[Link], positions: Positions) -> networkx.MultiGraph[str]:
    """See `Topology.to_networkx`."""
    graph: networkx.MultiGraph[str] = networkx.MultiGraph()
    for name, node in nodes.items():
        graph.add_node(name, **written(node))
        if name in positions:
            graph.nodes[name]["pos"] = positions[name]
    for number, link in enumerate(links):
        a, b, *others = (end.node for end in link.endpoints)
        attributes = {key: value for key, value in written(link).items() if key != "endpoints"}
        if not others:
            graph.add_edge(a, b, **attributes)
            continue
        segment = f"segment {number}"
        graph.add_node(segment, group="segment")
        graph.add_edges_from((segment, end, attributes) for end in (a, b, *others))
    return graph


def written(part: Node | Link) -> Mapping[str, Any]:
    """What is said of a part, by the names that users write."""
    return part.model_dump(by_alias=True, exclude_unset=True)


def node_name(node: object) -> str:
    """The name that a node of a graph has in a lab: its text; a number gets an n before it.

    Raises:
        ValueError: it cannot be a host name.
    """
    text = str(node)
    return syntax.parse_node_name(f"n{text}" if text.isdecimal() else text)
