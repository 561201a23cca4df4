"""What generators have in common: what their links are like, and how their nodes are called.

A network has nodes that pass traffic on, its *fabric*, and *hosts* that hang on them. Links between two nodes of the
fabric and links of hosts may differ in rate and delay. Host links come first, in the order of what they hang on: their
addresses then lie together, and many hosts make one route.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from dilaton.lab.kinds import HOST, ROUTER
from dilaton.lab.parts.impairments import Delay
from dilaton.lab.parts.links import Direction, Endpoint, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import syntax, units
from dilaton.lab.topology import Topology

NODES_MAX = 100_000
"""The most nodes of a generated network; far more than one machine runs, and a bound on what a slip of the finger
costs."""

PARTS_MAX = 200_000
"""Nodes and links of a generated network: hosts on each of many nodes, or links between all, are soon very many."""

Position = tuple[float, float]


def count(what: str, minimum: int, maximum: int = NODES_MAX) -> BeforeValidator:
    """Reads a whole number of something."""
    return BeforeValidator(lambda value: units.parse_count(value, what, minimum, maximum))


def fraction(what: str) -> BeforeValidator:
    """Reads a number above 0 and up to 1."""

    def parse(value: object) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if not 0 < number <= 1:
            raise ValueError(f"{units.shown(value)}: {what} must be a number above 0 and up to 1, such as 0.4")
        return number

    return BeforeValidator(parse)


def _parse_delay(value: object) -> int:
    return units.parse_duration(value, "a delay", units.DELAY_MAX)


class Generator(Direction):
    """The fields of every generator. Those of a link hold for all links, unless one for hosts or the fabric differs."""

    mtu: Annotated[int, count("an MTU", 68, 65535)] = 1500
    offload: Annotated[bool, BeforeValidator(syntax.parse_flag)] = False
    seed: Annotated[int, BeforeValidator(syntax.parse_seed)] | None = None
    """None: the lab's."""
    host_rate_bit_per_s: Annotated[int, BeforeValidator(units.parse_link_rate)] | None = Field(
        default=None, validation_alias="host_rate"
    )
    host_delay_ns: Annotated[int, BeforeValidator(_parse_delay)] | None = Field(
        default=None, validation_alias="host_delay"
    )
    fabric_rate_bit_per_s: Annotated[int, BeforeValidator(units.parse_link_rate)] | None = Field(
        default=None, validation_alias="fabric_rate"
    )
    fabric_delay_ns: Annotated[int, BeforeValidator(_parse_delay)] | None = Field(
        default=None, validation_alias="fabric_delay"
    )

    def build(self, seed: int, directory: Path) -> Topology:
        """The network; `directory` is not used, since generators read nothing."""
        if (parts := self.parts()) > PARTS_MAX:
            own = [name for name in type(self).model_fields if name not in Generator.model_fields]
            sizes = ", ".join(f"{name} {getattr(self, name)}" for name in own)
            raise ValueError(f"{sizes}: it would have {parts} nodes and links; at most {PARTS_MAX}")
        return self.make(self.seed if self.seed is not None else seed)

    def parts(self) -> int:
        """How many nodes and links there are, or about so many; found without making them."""
        raise NotImplementedError

    def make(self, seed: int) -> Topology:
        """The network, as a function of the fields and the seed."""
        raise NotImplementedError

    def host_link(self, a: str, b: str) -> Link:
        """A link of a host."""
        return self._link(a, b, "host")

    def fabric_link(self, a: str, b: str) -> Link:
        """A link between two nodes of the fabric."""
        return self._link(a, b, "fabric")

    def _link(self, a: str, b: str, part: str) -> Link:
        fields: dict[str, Any] = {
            name: getattr(self, name) for name in Link.model_fields if name in self.model_fields_set
        }
        for name in ("rate_bit_per_s", "delay_ns"):
            own = getattr(self, f"{part}_{name}")
            if own is not None:
                fields[name.removesuffix("_ns")] = own if name == "rate_bit_per_s" else Delay(mean_ns=own)
        return Link(endpoints=(Endpoint(node=a), Endpoint(node=b)), **fields)


class GraphGenerator(Generator):
    """A generator whose fabric is a graph of equal nodes `n0`, `n1`, …, each with `hosts` hosts `h0`, `h1`, …."""

    hosts: Annotated[int, count("a number of hosts", 0, 1000)] = 0

    def parts(self) -> int:
        """As for every generator: each host is a node and a link."""
        nodes, links = self.fabric()
        return nodes * (1 + 2 * self.hosts) + links

    def fabric(self) -> tuple[int, int]:
        """How many nodes and links the graph has."""
        raise NotImplementedError

    def of_graph(
        self, size: int, edges: Iterable[tuple[int, int]], place: Callable[[int], Position] | None = None
    ) -> Topology:
        """The network of a graph.

        Args:
            size: How many nodes it has, which are 0, 1, ….
            edges: Which two are linked, each once.
            place: Where a node is drawn, in steps of 1; None: anywhere.
        """
        fabric = Node(kind=ROUTER, group="fabric") if self.hosts else Node()
        nodes = {f"n{number}": fabric for number in range(size)}
        positions = {f"n{number}": place(number) for number in range(size)} if place else {}
        links = []
        for number in range(size):
            own = [f"h{number * self.hosts + host}" for host in range(self.hosts)]
            nodes |= {host: Node(kind=HOST, group="host") for host in own}
            links += [self.host_link(host, f"n{number}") for host in own]
            if place:
                positions |= zip(own, _fan(place(number), self.hosts), strict=True)
        links += [self.fabric_link(f"n{min(a, b)}", f"n{max(a, b)}") for a, b in sorted(map(sorted, edges))]
        return Topology(nodes, links, positions)


def _fan(centre: Position, size: int) -> list[Position]:
    """Places of hosts below what they hang on, spread over a third of a circle."""
    x, y = centre
    angles = [math.pi * (-0.35 + (0.7 * (number + 0.5) / size - 0.35)) for number in range(size)]
    return [(x + 0.45 * math.cos(angle), y + 0.45 * math.sin(angle)) for angle in angles]


def on_circle(size: int) -> Callable[[int], Position]:
    """Places on a circle, clockwise from the top, a step of about 1 apart."""
    radius = max(size / (2 * math.pi), 0.8)
    return lambda number: (
        radius * math.sin(2 * math.pi * number / size),
        radius * math.cos(2 * math.pi * number / size),
    )


def in_layers(*layers: Iterable[str]) -> dict[str, Position]:
    """Places in rows, the first on top, each row as wide as the widest."""
    rows = [list(layer) for layer in layers]
    width = max(max(len(row) for row in rows) - 1, 1)
    height = max(width / (2.5 * max(len(rows) - 1, 1)), 1.0)
    return {
        name: ((place + 0.5) * (width + 1) / len(row) - 0.5, -height * depth)
        for depth, row in enumerate(rows)
        for place, name in enumerate(row)
    }
