"""`shadow:`: configurations of Shadow: the network graph (GML) and the hosts in it.

A node of the graph becomes a router `n0`, with links to the hosts that are at it, of the rates that the hosts or the
node have. A path has the latency of the edges on it, as in Shadow; the cheapest path is the one of the least latency.
If all hosts are at a graph's only node (as at `1_gbit_switch`, which Shadow has by name), that is a switch instead, and
its edge to itself is what a packet meets on its way there. What the hosts run is written under `run:` of the lab, so
`processes` are refused unless they are ignored.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx

from dilaton.lab.importers._importer import Importer, host_name, mapping, read_text, read_yaml
from dilaton.lab.importers.gml import parse_gml
from dilaton.lab.kinds import HOST, ROUTER, SWITCH
from dilaton.lab.parts.impairments import Delay, Loss
from dilaton.lab.parts.links import Direction, Endpoint, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import units
from dilaton.lab.topology import Topology

COST_MAX = 65535
ONE_GBIT_SWITCH = "1_gbit_switch"
ONE_GBIT_SWITCH_GRAPH = """graph [
  node [ id 0 host_bandwidth_up "1 Gbit" host_bandwidth_down "1 Gbit" ]
  edge [ source 0 target 0 latency "1 ms" packet_loss 0.0 ]
]"""
"""What Shadow takes this name for."""

PROCESSES = "what runs is written under run:"
FIXES = {"processes": PROCESSES, "ip_addr": "give hosts their addresses at the endpoints of links of your own"}

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
        # With more nodes, what passes through one meets no edge from it to itself.
        shared = [written for _, _, written in graph.edges(data=True)] if len(graph) == 1 else []
        kind = SWITCH if shared else ROUTER
        sent = self._edge_fields("edge 0 -- 0", shared[0]) if shared else {}
        nodes = {f"n{node}": Node(kind=kind, group="network") for node in graph}
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
                    self.refuse(str(key), place, FIXES.get(str(key), ""))
            node = host_name(name, place)
            if node in nodes:
                raise ValueError(f"{place}: {node} is the router of a node of the graph; give the host another name")
            nodes[node] = Node(kind=HOST, group="host")
            users.setdefault(number, []).append(node)
            links.append(self._host_link(node, number, {**graph.nodes[number], **_bandwidths(host)}, sent))
        for a, b, attributes in graph.edges(data=True):
            if a != b:
                links.append(self._edge(a, b, attributes))
            elif not shared and len(users.get(a, [])) > 1:
                self.refuse("self-loop", f"edge {a} -- {b}", f"give {' and '.join(users[a][:2])} nodes of their own")
        return Topology(nodes, _with_costs(links))

    def _graph(self, written: dict[str, Any], directory: Path) -> networkx.Graph[int]:
        kind = written.get("type")
        if kind not in ("gml", ONE_GBIT_SWITCH):
            raise ValueError(f"network.graph.type: {kind}: a lab reads the types gml and {ONE_GBIT_SWITCH}")
        if kind == ONE_GBIT_SWITCH:
            text = ONE_GBIT_SWITCH_GRAPH
        elif "inline" in written:
            text = str(written["inline"])
        else:
            text = read_text(directory / str(mapping(written.get("file"), "network.graph.file").get("path")))
        graph = parse_gml(re.sub(r"#.*", "", text), "network.graph")
        if graph.is_directed():
            raise ValueError("network.graph: directed: a link goes both ways; write directed 0")
        return graph

    def _host_link(self, host: str, number: int, node: dict[str, Any], sent: dict[str, Any]) -> Link:
        """The link of a host to the node that it is at; `sent` is what it does to what the host sends, besides."""
        given = self.link_fields()
        ways: dict[str, Any] = {}
        for side, key, fields in (("a_to_b", "host_bandwidth_up", sent), ("b_to_a", "host_bandwidth_down", {})):
            rate = {"rate_bit_per_s": units.parse_link_rate(_quantity(node[key]))} if key in node else {}
            own = {name: value for name, value in {**rate, **fields}.items() if name not in given}
            if own:
                ways[side] = Direction(**own)
        ends = (Endpoint(node=host), Endpoint(node=f"n{number}"))
        return Link(endpoints=ends, **ways, **given)

    def _edge(self, a: int, b: int, attributes: dict[str, Any]) -> Link:
        ends = (Endpoint(node=f"n{a}"), Endpoint(node=f"n{b}"))
        return Link(endpoints=ends, **{**self._edge_fields(f"edge {a} -- {b}", attributes), **self.link_fields()})

    def _edge_fields(self, place: str, attributes: dict[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in attributes.items():
            if key == "latency":
                mean_ns = units.parse_duration(_quantity(value), f"{place}: latency", units.DELAY_MAX)
                fields["delay"] = Delay(mean_ns=mean_ns)
            elif key == "packet_loss":
                fields["loss"] = Loss(random=float(str(value)))
            elif key == "jitter" and float(re.sub(r"[^0-9.]", "", str(value)) or 0) > 0:
                self.refuse("jitter", place)
            elif key not in {"jitter", "label"}:
                self.refuse(key, place)
        return fields


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
