"""`shadow:`: configurations of Shadow: the network graph (GML) and the hosts in it.

A node of the graph becomes a router `n0`, with links to the hosts that are at it, of the rates that the hosts or the
node have. A path has the latency of the edges on it, as in Shadow; the cheapest path is the one of the least latency.
What the hosts run is written under `run:` of the lab, so `processes` are refused unless they are ignored.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx

from dilaton.lab import units
from dilaton.lab.importers._importer import Importer, host_name, mapping, read_text, read_yaml
from dilaton.lab.kinds import HOST, ROUTER
from dilaton.lab.links import Direction, Endpoint, Link
from dilaton.lab.nodes import Node
from dilaton.lab.topology import Topology

COST_MAX = 65535
LEFT_ALONE = frozenset({"general", "experimental", "network", "hosts", "host_option_defaults", "host_defaults"})


class Source(Importer):
    """A configuration of Shadow."""

    shadow: str

    def read(self, directory: Path) -> Topology:
        """See `Importer.read`."""
        path = directory / self.shadow
        data = read_yaml(path)
        for key in data:
            if key not in LEFT_ALONE:
                self.refuse(key, self.shadow)
        graph = self._graph(mapping(mapping(data.get("network"), "network").get("graph"), "network.graph"), path.parent)
        nodes = {f"n{node}": Node(kind=ROUTER, group="network") for node in graph}
        links: list[Link] = []
        users: dict[int, list[str]] = {}
        for name, written in mapping(data.get("hosts"), "hosts").items():
            host = mapping(written, f"hosts.{name}")
            place = f"hosts.{name}"
            number = host.get("network_node_id")
            if not isinstance(number, int) or number not in graph:
                raise ValueError(f"{place}.network_node_id: {number}: no node of the graph")
            for key in host:
                if key not in {"network_node_id", "bandwidth_up", "bandwidth_down"}:
                    self.refuse(key, place, "what runs is written under run:")
            node = host_name(name, place)
            if node in nodes:
                raise ValueError(f"{place}: {node} is the router of a node of the graph; give the host another name")
            nodes[node] = Node(kind=HOST, group="host")
            users.setdefault(number, []).append(node)
            links.append(self._host_link(node, number, {**graph.nodes[number], **_bandwidths(host)}))
        for a, b, attributes in graph.edges(data=True):
            if a != b:
                links.append(self._edge(a, b, attributes))
            elif len(users.get(a, [])) > 1:
                self.refuse("self-loop", f"edge {a} -- {b}", f"give {' and '.join(users[a][:2])} nodes of their own")
        return Topology(nodes, _with_costs(links))

    def _graph(self, written: dict[str, Any], directory: Path) -> networkx.Graph[int]:
        kind = written.get("type")
        if kind != "gml":
            raise ValueError(f"network.graph.type: {kind}: a lab reads the type gml")
        if "inline" in written:
            text = str(written["inline"])
        else:
            text = read_text(directory / str(mapping(written.get("file"), "network.graph.file").get("path")))
        try:
            graph: networkx.Graph[int] = networkx.parse_gml(re.sub(r"#.*", "", text), label="id")
        except (networkx.NetworkXError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"network.graph: not GML: {error}") from error
        if graph.is_directed():
            raise ValueError("network.graph: directed: a link goes both ways; write directed 0")
        return graph

    def _host_link(self, host: str, number: int, node: dict[str, Any]) -> Link:
        rates = {}
        for side, key in (("a_to_b", "bandwidth_up"), ("b_to_a", "bandwidth_down")):
            if f"host_{key}" in node:
                rate = units.parse_link_rate(_quantity(node[f"host_{key}"]))
                rates[side] = Direction(rate_bit_per_s=rate)
        ends = (Endpoint(node=host), Endpoint(node=f"n{number}"))
        return Link(endpoints=ends, **{**rates, **self.link_fields()})

    def _edge(self, a: int, b: int, attributes: dict[str, Any]) -> Link:
        place = f"edge {a} -- {b}"
        fields: dict[str, Any] = {}
        for key, value in attributes.items():
            if key == "latency":
                fields["delay"] = units.parse_duration(_quantity(value), f"{place}: latency", units.DELAY_MAX)
            elif key == "packet_loss":
                fields["loss"] = float(str(value))
            elif key == "jitter" and float(re.sub(r"[^0-9.]", "", str(value)) or 0) > 0:
                self.refuse("jitter", place)
            elif key not in {"jitter", "label"}:
                self.refuse(key, place)
        ends = (Endpoint(node=f"n{a}"), Endpoint(node=f"n{b}"))
        return Link(endpoints=ends, **{**fields, **self.link_fields()})


def _bandwidths(host: dict[str, Any]) -> dict[str, Any]:
    return {f"host_{key}": host[key] for key in ("bandwidth_up", "bandwidth_down") if key in host}


def _quantity(value: object) -> str:
    """A quantity of Shadow as one of ours: `100 Mbit`, `10 milliseconds`."""
    words = {"seconds": "s", "second": "s", "sec": "s", "milliseconds": "ms", "millisecond": "ms", "microseconds": "us"}
    words |= {"microsecond": "us", "nanoseconds": "ns", "nanosecond": "ns", "megabit": "Mbit", "gigabit": "Gbit"}
    number, _, unit = str(value).strip().partition(" ")
    return f"{number} {words.get(unit, unit)}".strip()


def _with_costs(links: list[Link]) -> list[Link]:
    """The links with costs in proportion to their delays."""
    longest = max((link.delay_ns for link in links), default=0)
    step = max(1, -(-longest // COST_MAX))
    return [link.model_copy(update={"cost": max(1, round(link.delay_ns / step))}) for link in links]
