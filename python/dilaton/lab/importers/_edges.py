"""Edges of graphs on their way to links."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dilaton.lab.text import syntax, units

OF_DIRECTIONS = ("rate_bit_per_s", "delay")
"""The fields of links that edges give, in which the directions may differ."""


@dataclass(frozen=True)
class Edge:
    """An edge from `a` to `b`, what the file says of it, and that as fields of a link."""

    a: Hashable
    b: Hashable
    attributes: Mapping[str, Any]
    fields: Mapping[str, Any]

    @property
    def place(self) -> str:
        """How messages call it."""
        return f"edge {self.a!r} -- {self.b!r}"

    @property
    def cost(self) -> int | None:
        """What a path over it costs, if that is said."""
        if "cost" not in self.attributes:
            return None
        return units.parse_count(self.attributes["cost"], f"{self.place}: cost", 1, 65535)

    def ends(self) -> list[tuple[Hashable, dict[str, str]]]:
        """The two nodes with their interfaces, as `endpoints` says, as fields of endpoints; none without it.

        Raises:
            ValueError: `endpoints` is about other nodes, or the edge joins a node with itself.
        """
        if self.a == self.b:
            raise ValueError(f"{self.place}: a link joins two nodes, and both ends of this are the same")
        written = self.attributes.get("endpoints")
        if written is None:
            return [(self.a, {}), (self.b, {})]
        known = {str(node): node for node in (self.a, self.b)}
        found = [syntax.parse_endpoint(text.strip()) for text in str(written).split("--")]
        if len(found) != len(known) or {node for node, _ in found} != known.keys():
            example = f"{self.a}:eth0 -- {self.b}:eth0"
            raise ValueError(f"{self.place}: endpoints: {units.shown(written)}: write for example {example}")
        return [(known[node], {"interface": interface} if interface else {}) for node, interface in found]


def in_order(edges: list[Edge]) -> list[Edge]:
    """The edges in the order that they say themselves, if all do, since graphs keep none."""
    orders = [edge.attributes.get("order") for edge in edges]
    numbers = [order for order in orders if isinstance(order, int)]
    if len(numbers) < len(edges):
        return edges
    return [edge for _, edge in sorted(zip(numbers, edges, strict=True), key=lambda pair: pair[0])]


def there_and_back(edges: Iterable[Edge]) -> list[tuple[Edge, Edge]]:
    """The edges of a directed graph in pairs that are links, in the order of the first of each.

    Raises:
        ValueError: one has none back, or another cost than that.
    """
    waiting: dict[tuple[Hashable, Hashable], list[Edge]] = {}
    backs: dict[int, Edge] = {}
    firsts: list[Edge] = []
    for edge in edges:
        if opposite := waiting.get((edge.b, edge.a)):
            there = opposite.pop(0)
            if there.cost != edge.cost:
                raise ValueError(f"{edge.place}: costs {edge.cost} there and {there.cost} back; a link has one cost")
            backs[id(there)] = edge
        else:
            waiting.setdefault((edge.a, edge.b), []).append(edge)
            firsts.append(edge)
    for edge in firsts:
        if id(edge) not in backs:
            raise ValueError(
                f"edge {edge.a!r} -> {edge.b!r}: the graph is directed and has no edge back; a link goes both ways: "
                "add that edge, or make the graph undirected"
            )
    return [(edge, backs[id(edge)]) for edge in firsts]
