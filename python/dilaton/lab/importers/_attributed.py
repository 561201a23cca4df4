"""Graphs whose nodes and edges have attributes: what GraphML, GML, JSON and topohub have in common.

The attributes are those of the Internet Topology Zoo: of nodes `label`, `Longitude` and `Latitude`; of edges
`LinkSpeedRaw` (bit/s). Others that are in use: of edges `distance` and `dist` (km), `delay` and `rate` (text with a
unit), `cost` and `endpoints` (`a:eth0 -- b:eth1`, by the ids of nodes); of nodes `kind`, `group` and `pos`. A distance
becomes a delay at the speed of light in glass, 200 km a millisecond; without one, the great circle between the ends is
taken.

In a directed graph two edges, there and back, are one link, whose directions differ as they do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import networkx
from pydantic import BeforeValidator

from dilaton.lab.graphs import node_name
from dilaton.lab.importers._edges import OF_DIRECTIONS, Edge, in_order, there_and_back
from dilaton.lab.importers._importer import Importer, host_name
from dilaton.lab.parts.impairments import Delay
from dilaton.lab.parts.links import Direction, Endpoint, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import syntax, units
from dilaton.lab.topology import Topology

KM_PER_MS = 200
NS_PER_KM = 10**6 // KM_PER_MS
EARTH_RADIUS_KM = 6371
DISTANCES = ("distance", "Distance", "dist")
SHOWN_MAX = 3

PARTS_MAX = 50_000
"""Nodes and edges of a graph, far more than one machine runs; to make nodes of more takes longer than anybody waits."""


def _parse_names(value: object) -> str:
    return syntax.parse_choice(value, "a way to name nodes", ("id", "label"))


def check_size(parts: int, place: object) -> None:
    """Refuses a graph that is too large, before it is made.

    Raises:
        ValueError: it is.
    """
    if parts > PARTS_MAX:
        raise ValueError(f"{place}: {parts} nodes and edges; {PARTS_MAX} are the most that is read")


class AttributedGraph(Importer):
    """The fields of readers of such graphs."""

    names: Annotated[Literal["id", "label"], BeforeValidator(_parse_names)] = "id"
    """What nodes are called by: their number in the file, as n0, or their label, as new-york."""
    distance: str | None = None
    """The attribute of edges that is their length in km; None: the first of `DISTANCES` that there is."""

    def read(self, directory: Path) -> Topology:
        """See `Importer.read`."""
        graph = self.graph(directory)
        names = self._names(graph)
        places = {node: place for node, attributes in graph.nodes(data=True) if (place := _place(attributes))}
        delays = self._delays(graph, places)
        edges = [
            Edge(a, b, attributes, self._fields(f"edge {a!r} -- {b!r}", attributes, delays[number]))
            for number, (a, b, attributes) in enumerate(graph.edges(data=True))
        ]
        ordered = in_order(edges)
        pairs = there_and_back(ordered) if graph.is_directed() else zip(ordered, ordered, strict=True)
        links = [_link(there, back, names) for there, back in pairs]
        said = {name: graph.nodes[node] for node, name in names.items()}
        nodes = {
            name: Node(**{key: said[name][key] for key in ("kind", "group") if key in said[name]}) for name in said
        }
        positions = _drawn({names[node]: place for node, place in places.items()})
        on_earth = {names[node]: place for node, place in places.items() if _is_on_earth(graph.nodes[node], place)}
        return Topology(nodes, links, positions, on_earth)

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph; paths start at `directory`."""
        raise NotImplementedError

    def _names(self, graph: networkx.Graph[Any]) -> dict[Hashable, str]:
        """The name of each node; labels that several have are numbered: oslo, oslo-2."""
        if self.names == "label":
            return _numbered({node: _label(node, attributes) for node, attributes in graph.nodes(data=True)})
        names: dict[Hashable, str] = {}
        owners: dict[str, Hashable] = {}
        for node in graph:
            names[node] = node_name(node)
            if owners.setdefault(names[node].lower(), node) != node:
                both = f"nodes {owners[names[node].lower()]!r} and {node!r}: both would be called {names[node]}"
                raise ValueError(f"{both}; give one another id")
        return names

    def _fields(self, edge: str, attributes: Mapping[str, Any], delay_ns: int) -> dict[str, Any]:
        """The fields of the link of an edge."""
        return {**_rate(attributes, edge), "delay": Delay(mean_ns=delay_ns), **self.link_fields()}

    def _delays(self, graph: networkx.Graph[Any], places: Mapping[Hashable, tuple[float, float]]) -> list[int]:
        """The delay of each edge, in nanoseconds."""
        if "delay" in self.model_fields_set:
            return [self.delay_ns] * graph.number_of_edges()
        found = [self._delay(a, b, attributes, places) for a, b, attributes in graph.edges(data=True)]
        lacking = [f"{a} -- {b}" for (a, b), delay in zip(graph.edges(), found, strict=True) if delay is None]
        if lacking:
            listed = ", ".join(lacking[:SHOWN_MAX]) + (", …" if len(lacking) > SHOWN_MAX else "")
            key = self.distance or "distance"
            places_too = "" if self.distance else ", and their ends no Longitude and Latitude"
            self.refuse_for(
                "delay",
                f"{len(lacking)} of {len(found)} edges have no {key}{places_too} ({listed})",
                "write delay: for all links, as --set topology.delay=5ms does",
            )
        return [delay or 0 for delay in found]

    def _delay(
        self, a: Hashable, b: Hashable, attributes: Mapping[str, Any], places: Mapping[Hashable, tuple[float, float]]
    ) -> int | None:
        edge = f"edge {a!r} -- {b!r}"
        if "delay" in attributes and self.distance is None:
            return units.parse_duration(str(attributes["delay"]), f"{edge}: delay", units.DELAY_MAX)
        keys = (self.distance,) if self.distance else DISTANCES
        length = next((attributes[key] for key in keys if key in attributes), None)
        if length is not None:
            return round(_number(length, f"{edge}: distance") * NS_PER_KM)
        if self.distance is None and a in places and b in places:
            return round(_great_circle_km(places[a], places[b]) * NS_PER_KM)
        return None


def _link(there: Edge, back: Edge, names: Mapping[Hashable, str]) -> Link:
    ends = tuple(Endpoint.model_validate({"node": names[node], **interface}) for node, interface in there.ends())
    fields = dict(there.fields)
    if there.cost is not None:
        fields["cost"] = there.cost
    back_fields = {name: value for name in OF_DIRECTIONS if (value := back.fields.get(name)) != there.fields.get(name)}
    if back_fields:
        fields["b_to_a"] = Direction.model_validate(back_fields)
    return Link(endpoints=ends, **fields)


def _label(node: Hashable, attributes: Mapping[str, Any]) -> str:
    """What a node is called by; one whose label says nothing, such as `?`, by its number."""
    label = next((attributes[key] for key in ("label", "name") if key in attributes), None)
    if label is None:
        known = ", ".join(attributes) or "none"
        raise ValueError(f"node {node!r}: no attribute label to be called by (it has: {known}); write names: id")
    text = re.sub(r"[^A-Za-z0-9]+", "-", str(label)).strip("-").lower()
    return host_name(text, f"node {node!r}") if text else node_name(node)


def _numbered(labels: Mapping[Hashable, str]) -> dict[Hashable, str]:
    """Names from labels, of which each but the first of the same gets the next number that is free."""
    taken = set(labels.values())
    seen: set[str] = set()
    names: dict[Hashable, str] = {}
    for node, label in labels.items():
        name, number = label, 1
        if label in seen:
            while name in taken:
                number += 1
                name = f"{label}-{number}"
        names[node] = host_name(name, f"node {node!r}")
        seen.add(label)
        taken.add(name)
    return names


def _number(value: object, what: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{what}: {units.shown(value)}: must be a number from 0")
    return number


def _rate(attributes: Mapping[str, Any], edge: str) -> dict[str, int]:
    if "rate" in attributes:
        return {"rate_bit_per_s": units.parse_link_rate(str(attributes["rate"]))}
    raw = attributes.get("LinkSpeedRaw")
    if raw is None:
        return {}
    return {"rate_bit_per_s": units.parse_link_rate(round(_number(raw, f"{edge}: LinkSpeedRaw")))}


def _place(attributes: Mapping[str, Any]) -> tuple[float, float] | None:
    """Longitude and latitude of a node, in degrees."""
    place = attributes.get("pos") or tuple(attributes.get(key) for key in ("Longitude", "Latitude"))
    try:
        longitude, latitude = (float(part) for part in place)
    except (TypeError, ValueError):
        return None
    return longitude, latitude


def _is_on_earth(attributes: Mapping[str, Any], place: tuple[float, float]) -> bool:
    """Whether a place is one of a map; a `pos` may be of any drawing."""
    longitude, latitude = place
    return "pos" not in attributes and abs(longitude) <= 180 and abs(latitude) <= 90


def _great_circle_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The haversine formula."""
    (x, y), (u, v) = ((math.radians(part) for part in place) for place in (one, other))
    chord = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(chord, 1.0)))


def _drawn(places: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Places on a map, in steps: a network of n nodes is about as large as the square root of n."""
    if len(places) < 2:
        return dict(places)
    middle = math.radians(sum(latitude for _, latitude in places.values()) / len(places))
    flat = {name: (longitude * math.cos(middle), latitude) for name, (longitude, latitude) in places.items()}
    extent = max(
        max(place[axis] for place in flat.values()) - min(place[axis] for place in flat.values()) for axis in (0, 1)
    )
    scale = 2.5 * math.sqrt(len(flat)) / (extent or 1.0)
    return {name: (x * scale, y * scale) for name, (x, y) in flat.items()}
