"""`containerlab:`: topology files of containerlab, `*.clab.yml`.

Nodes of the kinds linux, host and bridge become nodes, bridges switches; groups are kept, and sysctls, inherited as
there. Nodes run this machine's file tree, so an image is refused unless it is ignored; so is all else that would change
what a node does. Labels say what a node is in a lab: with `dilaton.image: host` its image is for containerlab alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dilaton.lab import syntax, units
from dilaton.lab.importers._importer import Importer, host_name, mapping, read_yaml
from dilaton.lab.kinds import HOST, SWITCH
from dilaton.lab.links import Endpoint, Link
from dilaton.lab.nodes import Node
from dilaton.lab.part import made
from dilaton.lab.topology import Topology

KINDS: dict[str, str | None] = {"linux": None, "host": HOST, "bridge": SWITCH}
"""What each kind of containerlab becomes."""

HARMLESS = frozenset({"kind", "group", "labels", "sysctls"})
"""Fields of a node that are read, or that change nothing."""

NO_MANAGEMENT = ("network-mode", "none")
"""The field of a node, and its value, that has no eth0 of containerlab's in it; a lab never has."""

LABEL = "dilaton."
"""What the names of the labels begin with that are fields of a node in a lab."""

LABELS = ("kind", "image", "outside")
"""The fields that labels can give."""

LEFT_ALONE = frozenset({"name", "prefix", "topology", "mgmt"})
"""Fields of the file that are read, or that are about the machine that containerlab runs on."""


class Source(Importer):
    """A topology file of containerlab."""

    containerlab: str

    def read(self, directory: Path) -> Topology:
        """See `Importer.read`."""
        data = read_yaml(directory / self.containerlab)
        for key in data:
            if key not in LEFT_ALONE:
                self.refuse(key, self.containerlab)
        topology = mapping(data.get("topology"), "topology")
        for key in topology:
            if key not in {"defaults", "kinds", "groups", "nodes", "links"}:
                self.refuse(key, "topology")
        nodes = {
            host_name(name, f"nodes.{name}"): self._node(str(name), mapping(written, f"nodes.{name}"), topology)
            for name, written in mapping(topology.get("nodes"), "nodes").items()
        }
        entries = topology.get("links") or []
        if not isinstance(entries, list):
            raise ValueError(f"topology.links: must be a list, not {units.shown(entries)}")
        links = [self._link(number, entry, nodes) for number, entry in enumerate(entries)]
        return Topology(nodes, links)

    def _node(self, name: str, written: dict[str, Any], topology: dict[str, Any]) -> Node:
        defaults = mapping(topology.get("defaults"), "defaults")
        group = written.get("group", defaults.get("group"))
        by_group = mapping(mapping(topology.get("groups"), "groups").get(str(group)), f"groups.{group}")
        kind = next((layer["kind"] for layer in (written, by_group, defaults) if "kind" in layer), None)
        by_kind = mapping(mapping(topology.get("kinds"), "kinds").get(str(kind)), f"kinds.{kind}")
        place = f"nodes.{name}"
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"{place}.kind: {kind}: a lab has no such nodes; known: {', '.join(KINDS)}")
        layers = (defaults, by_kind, by_group, written)
        labelled = _labelled(layers, place)
        sysctls: dict[str, str] = {}
        for layer in layers:
            for key, value in layer.items():
                if key not in HARMLESS and key not in labelled and (key, value) != NO_MANAGEMENT:
                    self.refuse(key, place, "nodes run this machine's programs, and what runs is written under run:")
            values = mapping(layer.get("sysctls"), f"{place}.sysctls")
            sysctls |= {syntax.parse_sysctl_key(str(key)): str(value) for key, value in values.items()}
        fields: dict[str, Any] = {"kind": KINDS[kind]} if KINDS[kind] else {}
        fields |= labelled
        if group is not None:
            fields["group"] = str(group)
        if sysctls:
            fields["sysctls"] = sysctls
        return made(Node, fields, place)

    def _link(self, number: int, entry: object, nodes: dict[str, Node]) -> Link:
        place = f"links[{number}]"
        link = mapping(entry, place)
        if link.get("type", "veth") != "veth":
            raise ValueError(f"{place}.type: {link['type']}: a lab has only links between two of its nodes")
        for key in link:
            if key not in {"endpoints", "type", "mtu", "labels", "vars"}:
                self.refuse(key, place)
        written = link.get("endpoints")
        if not isinstance(written, list) or len(written) != 2:
            raise ValueError(f"{place}.endpoints: must be two endpoints, such as [a:eth1, b:eth1]")
        ends = tuple(self._end(end, f"{place}.endpoints[{side}]", nodes) for side, end in enumerate(written))
        mtu = {"mtu": units.parse_count(link["mtu"], f"{place}.mtu", 68, 65535)} if "mtu" in link else {}
        return Link(endpoints=ends, **{**mtu, **self.link_fields()})

    def _end(self, end: object, place: str, nodes: dict[str, Node]) -> Endpoint:
        if isinstance(end, dict):
            for key in end:
                if key not in {"node", "interface"}:
                    self.refuse(str(key), place)
            node, interface = str(end.get("node")), str(end.get("interface", ""))
        else:
            node, interface = syntax.parse_endpoint(str(end))
        if node not in nodes:
            raise ValueError(f"{place}: {node}: no node of the file{syntax.did_you_mean(node, nodes)}")
        return Endpoint(node=node, interface=interface)


def _labelled(layers: Sequence[dict[str, Any]], place: str) -> dict[str, str]:
    """The fields of a node that labels give, those of later layers first."""
    labels: dict[str, Any] = {}
    for layer in layers:
        labels |= mapping(layer.get("labels"), f"{place}.labels")
    fields = {str(key).removeprefix(LABEL): str(value) for key, value in labels.items() if str(key).startswith(LABEL)}
    for name in fields:
        if name not in LABELS:
            known = ", ".join(f"{LABEL}{label}" for label in LABELS)
            raise ValueError(f"{place}.labels: {LABEL}{name}: no such field of a node; known: {known}")
    return fields
