"""containerlab: nodes of kind linux, switches of kind bridge, and links. It has no fields for rates and delays.

What containerlab's kinds do not say is in labels, which it gives its containers and our reader knows.
"""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML

from dilaton.lab.exporters.missing import missing
from dilaton.lab.importers.containerlab import KINDS, LABEL, NO_MANAGEMENT
from dilaton.lab.model import Lab
from dilaton.lab.nodes import Node
from dilaton.lab.segments import is_switch, without_lans

IMAGE = "alpine:latest"
"""Of the nodes; containerlab needs one, and a lab has none that it could use."""


def write(lab: Lab) -> tuple[str, list[str]]:
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
        links.append(entry)
    linux = {"image": IMAGE, "labels": {f"{LABEL}image": "host"}, **dict([NO_MANAGEMENT])}
    topology = {"kinds": {"linux": linux}, "nodes": nodes, "links": links}
    stream = io.StringIO()
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 120
    yaml.dump({"name": lab.name, "topology": topology}, stream)
    return stream.getvalue(), missing(lab, {"kind", "outside", "sysctls"}, {"mtu"})


def _labels(node: Node, implied: str | None) -> dict[str, str]:
    """What a node of a kind that containerlab's implies has beyond that."""
    labels = {} if node.kind in (None, implied) else {f"{LABEL}kind": node.kind}
    return labels if node.outside is None else labels | {f"{LABEL}outside": node.outside}
