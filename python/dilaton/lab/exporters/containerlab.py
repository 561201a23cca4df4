"""containerlab: nodes of kind linux, switches of kind bridge, and links with their addresses as planned.
It has no fields for rates, delays and routes.

What containerlab's kinds do not say is in labels, which it gives its containers and our reader knows.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from ipaddress import ip_interface
from typing import Any

from ruamel.yaml import YAML

from dilaton.lab.exporters.configured import Configured
from dilaton.lab.exporters.missing import missing
from dilaton.lab.importers.containerlab import ADDRESSES, KINDS, LABEL, NO_MANAGEMENT
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import Endpoint
from dilaton.lab.parts.nodes import Node
from dilaton.lab.segments import is_switch, without_lans

IMAGE = "alpine:latest"
"""The image of the nodes; containerlab needs one, and a lab has none that it could use."""


def write(lab: Lab, configured: Mapping[str, Configured]) -> tuple[str, list[str]]:
    """The text, and what it lacks."""
    flat = without_lans(lab)
    nodes: dict[str, Any] = {}
    for name, node in flat.nodes.items():
        kind = "bridge" if is_switch(node) else "linux"
        nodes[name] = {"kind": kind}
        if labels := _labels(node, implied=KINDS[kind]):
            nodes[name]["labels"] = labels
        if node.group is not None:
            nodes[name]["group"] = node.group
        if node.sysctls and not is_switch(node):
            nodes[name]["sysctls"] = {key.replace("/", "."): value for key, value in node.sysctls.items()}
    links = []
    for link in flat.links:
        entry: dict[str, Any] = {"endpoints": [f"{end.node}:{end.interface}" for end in link.endpoints]}
        if "mtu" in link.model_fields_set:
            entry["mtu"] = link.mtu
        planned = [_planned(end, configured) for end in link.endpoints]
        entry |= {key: written for key in ADDRESSES if any(written := [ends.get(key, "") for ends in planned])}
        links.append(entry)
    linux = {"image": IMAGE, "labels": {f"{LABEL}image": "host"}, **dict([NO_MANAGEMENT])}
    topology = {"kinds": {"linux": linux}, "nodes": nodes, "links": links}
    stream = io.StringIO()
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 120
    yaml.dump({"name": lab.name, "topology": topology}, stream)
    lacks = missing(lab, {"kind", "group", "outside", "sysctls"}, {"mtu"}, addresses=True)
    if any(len(given) > len(_first(given)) for node in configured.values() for given in node.addresses.values()):
        lacks.insert(0, "further addresses of an interface")
    if any(node.routes for node in configured.values()):
        lacks.insert(0, "routes (and its kind linux takes no addresses from links)")
    return stream.getvalue(), lacks


def _planned(end: Endpoint, configured: Mapping[str, Configured]) -> dict[str, str]:
    """The addresses of an end as planned, the first of each version."""
    node = configured.get(end.node)
    return _first(node.addresses.get(end.interface, ())) if node else {}


def _first(addresses: Sequence[str]) -> dict[str, str]:
    return {ADDRESSES[ip_interface(address).version == 6]: address for address in reversed(addresses)}


def _labels(node: Node, implied: str | None) -> dict[str, str]:
    """What a node of a kind that containerlab's implies has beyond that."""
    labels = {} if node.kind in (None, implied) else {f"{LABEL}kind": node.kind}
    return labels if node.outside is None else labels | {f"{LABEL}outside": node.outside}
