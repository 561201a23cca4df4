"""`containerlab:`: topology files of containerlab, `*.clab.yml`.

Nodes of the kinds linux, host and bridge become nodes, bridges switches; groups are kept, and sysctls, inherited as
there. A node's image has to be in the store of images, unless images are ignored; then nodes have this machine's file
tree. Its `binds` are copied into it, as `files:` of a node are. What else would change what a node does is refused
unless it is ignored. Labels say what a node is in a lab: with `dilaton.image: host` its image is for containerlab
alone, and `dilaton.kind: router` makes a router of a node of any kind. Without such a label a node of another kind is
refused, or left out with its links if its kind is to be ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from dilaton.lab.beside.contents import Contents, parse_contents, parse_place
from dilaton.lab.images.find import find_image
from dilaton.lab.importers._importer import Importer, host_name, mapping, read_yaml
from dilaton.lab.kinds import HOST, SWITCH
from dilaton.lab.parts.links import Endpoint, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import made
from dilaton.lab.topology import Topology

KINDS: dict[str, str | None] = {"linux": None, "host": HOST, "bridge": SWITCH}
"""What each kind of containerlab becomes."""

HARMLESS = frozenset({"kind", "group", "labels", "sysctls"})
"""Fields of a node that are read, or that change nothing."""

NO_MANAGEMENT = ("network-mode", "none")
"""The field of a node, and its value, that has no eth0 of containerlab's in it; a lab never has."""

BINDS = "binds"
"""The field of a node with files and directories of the machine, which it sees."""

GIVEN = ("/lib/modules", "/sys", "/dev", "/proc")
"""What topologies bind into nodes, and nodes of a lab have anyway."""

IMAGE = "image"
"""The field of a node with its image, which nodes of the kind linux are made from."""

LABEL = "dilaton."
"""What the names of the labels begin with that are fields of a node in a lab."""

LABELS = ("kind", "image", "outside")
"""The fields that labels can give."""

LEFT_ALONE = frozenset({"name", "prefix", "topology", "mgmt"})
"""Fields of the file that are read, or that are about the machine that containerlab runs on."""


ADDRESSES = ("ipv4", "ipv6")
"""Fields of a link with the addresses of its ends."""


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
        every = {
            host_name(name, f"nodes.{name}"): self._node(
                str(name), mapping(written, f"nodes.{name}"), topology, (directory / self.containerlab).parent
            )
            for name, written in mapping(topology.get("nodes"), "nodes").items()
        }
        entries = topology.get("links") or []
        if not isinstance(entries, list):
            raise ValueError(f"topology.links: must be a list, not {units.shown(entries)}")
        nodes = {name: node for name, node in every.items() if node is not None}
        links = [self._link(number, entry, every) for number, entry in enumerate(entries)]
        return Topology(nodes, [link for link in links if all(end.node in nodes for end in link.endpoints)])

    def _node(self, name: str, written: dict[str, Any], topology: dict[str, Any], directory: Path) -> Node | None:
        """The node; None: it is of a kind that is refused, or left out."""
        defaults = mapping(topology.get("defaults"), "defaults")
        group = written.get("group", defaults.get("group"))
        by_group = mapping(mapping(topology.get("groups"), "groups").get(str(group)), f"groups.{group}")
        kind = next((layer["kind"] for layer in (written, by_group, defaults) if "kind" in layer), None)
        by_kind = mapping(mapping(topology.get("kinds"), "kinds").get(str(kind)), f"kinds.{kind}")
        place = f"nodes.{name}"
        layers = (defaults, by_kind, by_group, written)
        labelled = _labelled(layers, place)
        if not isinstance(kind, str) or (kind not in KINDS and "kind" not in labelled):
            fix = f"known: {', '.join(KINDS)}; give the node the label {LABEL}kind: router, or what else it is to be"
            self.refuse(str(kind), f"{place}.kind", fix)
            return None
        sysctls: dict[str, str] = {}
        for layer in layers:
            for key, value in layer.items():
                if key not in {*HARMLESS, IMAGE, BINDS} and key not in labelled and (key, value) != NO_MANAGEMENT:
                    self.refuse(key, place, "nodes run this machine's programs, and what runs is written under run:")
            values = mapping(layer.get("sysctls"), f"{place}.sysctls")
            sysctls |= {syntax.parse_sysctl_key(str(key)): str(value) for key, value in values.items()}
        implied = KINDS.get(kind)
        fields: dict[str, Any] = {"kind": implied} if implied else {}
        if KINDS.get(kind, kind) is None and IMAGE not in self.ignore:
            fields |= self._image(layers, labelled, place, directory)
        try:
            if BINDS not in self.ignore and (files := _files(name, layers, place, directory)):
                fields["files"] = files
        except ValueError as error:
            self.refuse_for(BINDS, str(error))
        fields |= labelled
        if group is not None:
            fields["group"] = str(group)
        if sysctls:
            fields["sysctls"] = sysctls
        return made(Node, fields, place)

    def _image(
        self, layers: Sequence[dict[str, Any]], labelled: Collection[str], place: str, directory: Path
    ) -> dict[str, object]:
        """The image of a node, found in the store; nothing where there is none, or a label says what to take."""
        name = next((layer[IMAGE] for layer in reversed(layers) if layer.get(IMAGE)), None)
        if name is None or IMAGE in labelled:
            return {}
        try:
            return {IMAGE: find_image(str(name), directory)}
        except ValueError as error:
            self.refuse(IMAGE, place, str(error))
            return {}

    def _link(self, number: int, entry: object, nodes: Collection[str]) -> Link:
        place = f"links[{number}]"
        link = mapping(entry, place)
        if link.get("type", "veth") != "veth":
            raise ValueError(f"{place}.type: {link['type']}: a lab has only links between two of its nodes")
        for key in link:
            if key not in {"endpoints", "type", "mtu", "labels", "vars", *ADDRESSES}:
                self.refuse(key, place)
        written = link.get("endpoints")
        if not isinstance(written, list) or len(written) != 2:
            raise ValueError(f"{place}.endpoints: must be two endpoints, such as [a:eth1, b:eth1]")
        given = [_at(link, key, place) for key in ADDRESSES]
        ends = tuple(
            self._end(end, f"{place}.endpoints[{side}]", nodes, [pair[side] for pair in given])
            for side, end in enumerate(written)
        )
        mtu = {"mtu": units.parse_count(link["mtu"], f"{place}.mtu", 68, 65535)} if "mtu" in link else {}
        return Link(endpoints=ends, **{**mtu, **self.link_fields()})

    def _end(self, end: object, place: str, nodes: Collection[str], addresses: list[object]) -> Endpoint:
        if isinstance(end, dict):
            for key in end:
                if key not in {"node", "interface", *ADDRESSES}:
                    self.refuse(str(key), place)
            node, interface = str(end.get("node")), str(end.get("interface", ""))
            addresses = [end.get(key) for key in ADDRESSES]
        else:
            node, interface = syntax.parse_endpoint(str(end))
        if node not in nodes:
            raise ValueError(f"{place}: {node}: no node of the file{syntax.did_you_mean(node, nodes)}")
        fields: dict[str, Any] = {"node": node, "interface": interface}
        if written := [str(address) for address in addresses if address]:
            fields["address"] = written
        return made(Endpoint, fields, place)


def _at(link: dict[str, Any], key: str, place: str) -> tuple[object, object]:
    """The addresses that a link gives its two ends under this key, where it does."""
    listed = link.get(key) or []
    if not isinstance(listed, list) or len(listed) > 2:
        raise ValueError(f"{place}.{key}: must be a list of at most two addresses, those of the endpoints")
    a, b, *_ = (*listed, None, None)
    return a, b


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


def _files(name: str, layers: Sequence[dict[str, Any]], place: str, directory: Path) -> dict[str, Contents]:
    """What a node is to see of the machine's files, by where; of two at one place the later layer's."""
    found: dict[str, Contents] = {}
    for layer in layers:
        listed = layer.get(BINDS) or []
        if not isinstance(listed, list):
            raise ValueError(f"{place}.{BINDS}: must be a list, such as [frr.conf:/etc/frr/frr.conf]")
        for number, bind in enumerate(listed):
            where = f"{place}.{BINDS}[{number}]"
            source, colon, rest = str(bind).partition(":")
            target = rest.partition(":")[0]
            if source.rstrip("/") in GIVEN:
                continue
            if not colon or not target:
                raise ValueError(f"{where}: {bind}: must be source:target, as in frr.conf:/etc/frr/frr.conf")
            for variable, value in (("__clabDir__", "."), ("__clabNodeName__", name)):
                source = source.replace(variable, value)
            try:
                found[parse_place(target)] = parse_contents(source, directory)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error
    return found
