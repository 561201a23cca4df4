"""XML, as `docs/topology.xsd` describes it: what `topology: {xml: …}` reads."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from dilaton.lab.exporters.configured import Configured
from dilaton.lab.exporters.missing import missing
from dilaton.lab.importers.xml import NAMESPACE
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import WAYS, Direction
from dilaton.lab.text import units

OF_WAY = ("rate_bit_per_s", "delay.mean_ns", "loss.random")
KEPT = {*OF_WAY, "cost", "mtu", *(f"{way}.{name}" for way in WAYS for name in OF_WAY)}


def write(lab: Lab, configured: Mapping[str, Configured]) -> tuple[str, list[str]]:
    """The text, and what it lacks. Addresses are those that the lab has written; others are planned as they are here.

    The format says nothing of nodes that only a run knows, so `configured` is not asked.
    """
    top = Element("topology", {"xmlns": NAMESPACE, "name": lab.name})
    places = lab.topology.positions if lab.topology else {}
    for name, node in lab.nodes.items():
        attributes = {"name": name}
        attributes |= {key: str(value) for key in ("kind", "group") if (value := getattr(node, key)) is not None}
        if name in places:
            attributes |= {axis: f"{place:.9g}" for axis, place in zip("xy", places[name], strict=True)}
        SubElement(top, "node", attributes)
    for link in lab.links:
        attributes = _of_way(link)
        attributes |= {key: str(getattr(link, key)) for key in ("cost", "mtu") if key in link.model_fields_set}
        element = SubElement(top, "link", attributes)
        for end in link.endpoints:
            said = {"node": end.node, "interface": end.interface}
            if end.addresses:
                said["address"] = " ".join(str(address) for address in end.addresses)
            SubElement(element, "end", said)
        for way in WAYS:
            if differing := _of_way(getattr(link, way)):
                SubElement(element, way, differing)
    ElementTree.indent(top)
    lacks = missing(lab, {"kind", "group"}, KEPT, addresses=True, segments=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(top, encoding="unicode")}\n', lacks


def _of_way(said: Direction) -> dict[str, str]:
    """What is written for a direction, or for both, that the format has."""
    found = {}
    if said.rate_bit_per_s is not None:
        found["rate"] = f"{said.rate_bit_per_s}bit"
    if "delay" in said.model_fields_set and "mean_ns" in said.delay.model_fields_set:
        found["delay"] = units.format_duration(said.delay.mean_ns)
    if "loss" in said.model_fields_set and said.loss.random is not None:
        found["loss"] = f"{100 * said.loss.random:.15g}%"
    return found
