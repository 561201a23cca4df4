"""Graphs whose nodes and edges have attributes: what GraphML, GML, JSON and topohub have in common.

The attributes are those of the Internet Topology Zoo: of nodes `label`, `Longitude` and `Latitude`; of edges
`LinkSpeedRaw` (bit/s). Others that are in use: of edges `distance` and `dist` (km), `delay` and `rate` (text with a
unit), `cost`; of nodes `kind`, `group` and `pos`. A distance becomes a delay at the speed of light in glass, 200 km a
millisecond; without one, the great circle between the ends is taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import networkx
from pydantic import BeforeValidator

from dilaton.lab import syntax, units
from dilaton.lab.graphs import node_name
from dilaton.lab.impairments import Delay
from dilaton.lab.importers._importer import Importer, host_name
from dilaton.lab.links import Endpoint, Link
from dilaton.lab.nodes import Node
from dilaton.lab.topology import Topology

KM_PER_MS = 200
NS_PER_KM = 10**6 // KM_PER_MS
EARTH_RADIUS_KM = 6371
DISTANCES = ("distance", "Distance", "dist")
SHOWN_MAX = 3


def _parse_names(value: object) -> str:
    return syntax.parse_choice(value, "a way to name nodes", ("id", "label"))


class AttributedGraph(Importer):
    """The fields of readers of such graphs."""

    names: Annotated[Literal["id", "label"], BeforeValidator(_parse_names)] = "id"
    """What nodes are called by: their number in the file, as n0, or their label, as new-york."""
    distance: str | None = None
    """The attribute of edges that is their length in km; None: the first of `DISTANCES` that there is."""

    def read(self, directory: Path) -> Topology:
        """See `Importer.read`."""
        graph = self.graph(directory)
        if graph.is_directed():
            raise ValueError("the graph is directed; a link goes both ways: make it undirected")
        names = {node: self._name(node, attributes) for node, attributes in graph.nodes(data=True)}
        owners: dict[str, Hashable] = {}
        for node, name in names.items():
            if owners.setdefault(name.lower(), node) != node:
                raise ValueError(
                    f"nodes {owners[name.lower()]!r} and {node!r}: both would be called {name}; write names: id"
                )
        places = {node: place for node, attributes in graph.nodes(data=True) if (place := _place(attributes))}
        delays = self._delays(graph, places)
        links = []
        for number, (a, b, attributes) in enumerate(graph.edges(data=True)):
            if a == b:
                raise ValueError(f"edge {a!r} -- {b!r}: a link joins two nodes, and both ends of this are the same")
            fields = {
                **_rate(attributes, f"edge {a!r} -- {b!r}"),
                "delay": Delay(mean_ns=delays[number]),
                **self.link_fields(),
            }
            if "cost" in attributes:
                fields["cost"] = units.parse_count(attributes["cost"], f"edge {a!r} -- {b!r}: cost", 1, 65535)
            links.append(Link(endpoints=(Endpoint(node=names[a]), Endpoint(node=names[b])), **fields))
        said = {name: graph.nodes[node] for node, name in names.items()}
        nodes = {
            name: Node(**{key: said[name][key] for key in ("kind", "group") if key in said[name]}) for name in said
        }
        return Topology(nodes, links, _drawn({names[node]: place for node, place in places.items()}))

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph; paths start at `directory`."""
        raise NotImplementedError

    def _name(self, node: Hashable, attributes: Mapping[str, Any]) -> str:
        if self.names == "id":
            return node_name(node)
        label = next((attributes[key] for key in ("label", "name") if key in attributes), None)
        if label is None:
            known = ", ".join(attributes) or "none"
            raise ValueError(f"node {node!r}: no attribute label to be called by (it has: {known}); write names: id")
        return host_name(re.sub(r"[^A-Za-z0-9]+", "-", str(label)).strip("-").lower(), f"node {node!r}")

    def _delays(self, graph: networkx.Graph[Any], places: Mapping[Hashable, tuple[float, float]]) -> list[int]:
        """The delay of each edge, in nanoseconds."""
        if "delay" in self.model_fields_set:
            return [self.delay_ns] * graph.number_of_edges()
        found = [self._delay(a, b, attributes, places) for a, b, attributes in graph.edges(data=True)]
        lacking = [f"{a} -- {b}" for (a, b), delay in zip(graph.edges(), found, strict=True) if delay is None]
        if lacking and (self.distance or len(lacking) < len(found)) and "delay" not in self.ignore:
            listed = ", ".join(lacking[:SHOWN_MAX]) + (", …" if len(lacking) > SHOWN_MAX else "")
            key = self.distance or "distance"
            places_too = "" if self.distance else ", and their ends no Longitude and Latitude"
            raise ValueError(
                f"{len(lacking)} of {len(found)} edges have no {key}{places_too} ({listed}); "
                "write delay: for all links, or ignore: [delay] to give these none"
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
