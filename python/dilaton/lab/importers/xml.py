"""`xml:`: topologies in XML, as `docs/topology.xsd` describes them.

Elements and attributes have the words of a lab, and their values are written as there. Text between elements says
nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from dilaton.lab.importers._attributed import check_size
from dilaton.lab.importers._importer import Importer, host_name, read_text
from dilaton.lab.importers._xml import Element, read_tree
from dilaton.lab.parts.links import WAYS, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import made
from dilaton.lab.topology import Topology

NAMESPACE = "urn:dilaton:topology"
WHAT = "a topology in XML"

TOPOLOGY = ("name",)
NODE = ("name", "kind", "group", "x", "y")
WAY = ("rate", "delay", "loss")
"""Attributes of what may differ in the two directions of a link."""
LINK = (*WAY, "cost", "mtu")
END = ("node", "interface", "address")


class Source(Importer):
    """A file in XML."""

    xml: str

    def read(self, directory: Path) -> Topology:
        """See `Importer.read`."""
        path = directory / self.xml
        top = read_tree(read_text(path), path, WHAT)
        _check(top, ("topology",), TOPOLOGY)
        check_size(len(top.children), path)
        nodes: dict[str, Node] = {}
        places: dict[str, tuple[float, float]] = {}
        links = []
        for element in top.children:
            _check(element, ("node", "link"), NODE if element.name == "node" else LINK)
            if element.name == "link":
                links.append(self._link(element))
                continue
            name = host_name(_said(element, "name"), element.place)
            if name in nodes:
                raise ValueError(f"{element.place}: node {name}: there is one of this name already")
            fields: dict[str, Any] = {
                key: element.attributes[key] for key in ("kind", "group") if key in element.attributes
            }
            nodes[name] = made(Node, fields, f"{element.place}: node {name}")
            if "x" in element.attributes or "y" in element.attributes:
                places[name] = (_number(element, "x"), _number(element, "y"))
            for inner in element.children:
                _check(inner, (), ())
        for element in (end for link in top.children if link.name == "link" for end in link.children):
            if element.name == "end" and element.attributes["node"] not in nodes:
                hint = syntax.did_you_mean(element.attributes["node"], nodes)
                raise ValueError(f"{element.place}: node {element.attributes['node']}: there is none{hint}")
        return Topology(nodes, links, places)

    def _link(self, element: Element) -> Link:
        for child in element.children:
            _check(child, ("end", *WAYS), END if child.name == "end" else WAY)
            for inner in child.children:
                _check(inner, (), ())
        ends = [_end(child) for child in element.children if child.name == "end"]
        fields: dict[str, Any] = dict(element.attributes)
        for child in element.children:
            if child.name in WAYS:
                if child.name in fields:
                    raise ValueError(f"{child.place}: {child.name}: there is one already")
                fields[child.name] = dict(child.attributes)
        link = made(Link, {"endpoints": ends, **fields}, f"{element.place}: link")
        return link.model_copy(update=dict(self.link_fields()))


def _end(element: Element) -> dict[str, Any]:
    """An end of a link as a lab has it."""
    end: dict[str, Any] = {"node": _said(element, "node")}
    if "interface" in element.attributes:
        end["interface"] = element.attributes["interface"]
    if "address" in element.attributes:
        end["address"] = element.attributes["address"].split()
    return end


def _check(element: Element, names: Collection[str], attributes: Collection[str]) -> None:
    """Refuses an element, or an attribute of it, that the format does not have there."""
    if element.namespace not in ("", NAMESPACE) or element.name not in names:
        allowed = ", ".join(f"<{name}>" for name in names) or "nothing"
        named = f" of {element.namespace}" if element.namespace not in ("", NAMESPACE) else ""
        raise ValueError(f"{element.place}: not {WHAT}: <{element.name}>{named}; {allowed} may be here")
    for name in element.attributes:
        if name not in attributes:
            hint = syntax.did_you_mean(name, attributes) or f"; known: {', '.join(attributes)}"
            raise ValueError(f"{element.place}: <{element.name}> has no attribute {name}{hint}")


def _said(element: Element, name: str) -> str:
    if name not in element.attributes:
        raise ValueError(f"{element.place}: <{element.name}> needs an attribute {name}")
    return element.attributes[name]


def _number(element: Element, name: str) -> float:
    text = _said(element, name)
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not -1e9 <= number <= 1e9:
        raise ValueError(f"{element.place}: {name}: {units.shown(text)}: must be a number from -1e9 to 1e9")
    return number
