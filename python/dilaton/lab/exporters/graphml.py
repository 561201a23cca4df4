"""GraphML, with the attributes of the Internet Topology Zoo where it has them: LinkSpeedRaw, Longitude, Latitude."""

from __future__ import annotations

import io

import networkx

from dilaton.lab import units
from dilaton.lab.exporters.missing import missing
from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans


def write(lab: Lab) -> tuple[str, list[str]]:
    """The text, and what it lacks. Rates are in bit/s (LinkSpeedRaw), delays in text with their unit (delay)."""
    flat = without_lans(lab)
    graph: networkx.MultiGraph[str] = networkx.MultiGraph()
    places = lab.topology.positions if lab.topology else {}
    for name, node in flat.nodes.items():
        graph.add_node(name, **{key: value for key in ("kind", "group") if (value := getattr(node, key)) is not None})
        if name in places:
            graph.nodes[name].update(Longitude=places[name][0], Latitude=places[name][1])
    for link in flat.links:
        attributes: dict[str, float | int | str] = {"delay": units.format_duration(link.delay_ns)}
        if link.rate_bit_per_s is not None:
            attributes["LinkSpeedRaw"] = float(link.rate_bit_per_s)
        if link.cost != 1:
            attributes["cost"] = link.cost
        graph.add_edge(link.endpoints[0].node, link.endpoints[1].node, **attributes)
    stream = io.BytesIO()
    networkx.write_graphml_xml(graph, stream)
    return stream.getvalue().decode() + "\n", missing(lab, {"kind"}, {"rate_bit_per_s", "delay.mean_ns", "cost"})
