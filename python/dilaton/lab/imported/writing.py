"""A topology, node by node and link by link, as the text of a lab."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from dilaton.lab.images.find import Image
from dilaton.lab.parts.links import WAYS, Endpoint, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import units
from dilaton.lab.text.document import MAIN_FIELDS
from dilaton.lab.text.part import Part
from dilaton.lab.topology import Topology, parse_topology

WIDTH = 10_000
"""So that each node and each link stays in its line, however long its names are."""


def lab_text(name: str, topology: Topology, heading: str) -> str:
    """The text of a lab that has this name and these nodes and links; files of nodes are not in it.

    Args:
        name: Of the lab.
        topology: What it has.
        heading: Its first line, a comment.
    """
    groups: dict[str, Any] = {node.group: {} for node in topology.nodes.values() if node.group is not None}
    written = written_of(topology)
    lab = {"name": name} | ({"groups": _flow(groups)} if groups else {}) | {"nodes": written["nodes"]}
    if topology.links:
        lab["links"] = written["links"]
    return f"# {heading}\n{_dumped(lab)}"


def written_out(text: str, directory: Path) -> tuple[str, Topology]:
    """A lab whose network is read from a file, with that network in its text, and nothing else of it changed.

    Args:
        text: Of the lab; it says a `topology:`.
        directory: Where the file is.

    Raises:
        ValueError: the network cannot be read; or the lab says something of nodes or groups that the file has.
    """
    lab = YAML().load(text)
    topology = parse_topology(dict(lab["topology"]), lab.get("seed", 1), directory)
    if any(node.group is not None for node in topology.nodes.values()):
        raise ValueError("the nodes of the file are in groups")
    if both := topology.nodes.keys() & (lab.get("nodes") or {}):
        raise ValueError(f"{', '.join(sorted(both))}: the file has a node of that name, too")
    written = written_of(topology)
    # In its place, so that what follows stays below it.
    place = list(lab).index("topology")
    del lab["topology"]
    lab.insert(place, "nodes", {**written["nodes"], **(lab.pop("nodes", None) or {})})
    lab.insert(place + 1, "links", [*written["links"], *(lab.pop("links", None) or [])])
    return _dumped(lab), topology


def written_of(topology: Topology) -> dict[str, Any]:
    """The nodes and links of a topology as a lab says them, each in its line."""
    return {
        "nodes": {known: _flow(_node(node)) for known, node in topology.nodes.items()},
        "links": [_flow(_link(link)) for link in topology.links],
    }


def _dumped(lab: dict[str, Any]) -> str:
    yaml = YAML()
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(lab, stream)
    return stream.getvalue()


def _flow(said: dict[str, Any]) -> CommentedMap:
    """In one line."""
    line = CommentedMap(said)
    line.fa.set_flow_style()
    return line


def _node(node: Node) -> dict[str, Any]:
    fields = _fields(node)
    if node.sysctls:
        fields["sysctls"] = {_dotted(key): value for key, value in node.sysctls.items()}
    return {name: value for name, value in fields.items() if value is not None and name != "files"}


def _dotted(key: str) -> str:
    """The name of a sysctl as people write it, unless a part of it has dots of its own."""
    return key if "." in key else key.replace("/", ".")


def _link(link: Link) -> dict[str, Any]:
    said = _fields(link)
    ends = [_end(end) for end in link.endpoints]
    # What is as if nothing were written is left out; of one direction it may undo what is written for both.
    plain = {name for name in link.model_fields_set - {*WAYS} if getattr(link, name) == Link.model_fields[name].default}
    left = {_word(Link, name) for name in plain}
    return {"endpoints": ends} | {name: value for name, value in said.items() if name not in {"endpoints", *left}}


def _end(end: Endpoint) -> object:
    written = _fields(end)
    return written if end.addresses else f"{end.node}:{end.interface}".rstrip(":")


def _fields(part: Part) -> dict[str, Any]:
    """What is written in a part, in the order in which the language has it."""
    return {
        _word(type(part), name): _value(name, getattr(part, name))
        for name in type(part).model_fields
        if name in part.model_fields_set
    }


def _value(name: str, value: object) -> object:
    """A value as it is written; the end of its field's name says what it is."""
    if isinstance(value, Part):
        fields = _fields(value)
        alone = next(iter(fields)) if len(fields) == 1 else ""
        return fields[alone] if alone in (*MAIN_FIELDS, "packets") else fields
    if isinstance(value, list | tuple):
        return [_value("", one) for one in value]
    if isinstance(value, Image):
        return value.name
    if isinstance(value, float):
        return units.format_ratio(value)
    if isinstance(value, int) and name.endswith("_bit_per_s"):
        return units.format_rate(value)
    if isinstance(value, int) and name.endswith("_ns"):
        return units.format_duration(value)
    return value if value is None or isinstance(value, bool | int | dict) else str(value)


def _word(model: type[Part], name: str) -> str:
    """What a field is called where it is written."""
    return str(model.model_fields[name].validation_alias or name)
