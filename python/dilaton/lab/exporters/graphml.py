"""GraphML, with the attributes of the Internet Topology Zoo where it has them: LinkSpeedRaw, Longitude, Latitude.

Graphs keep neither which interfaces an edge joins nor in which order edges were written, by which links get their
addresses, so both are attributes of edges.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import networkx

from dilaton.lab.exporters.configured import Configured
from dilaton.lab.exporters.missing import missing
from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans
from dilaton.lab.text import units


def write(lab: Lab, configured: Mapping[str, Configured]) -> tuple[str, list[str]]:
    """The text, and what it lacks. Rates are in bit/s (LinkSpeedRaw), delays in text with their unit (delay)."""
    flat = without_lans(lab)
    graph: networkx.MultiGraph[str] = networkx.MultiGraph()
    places = lab.topology.positions if lab.topology else {}
    for name, node in flat.nodes.items():
        graph.add_node(name, **{key: value for key in ("kind", "group") if (value := getattr(node, key)) is not None})
        if name in places:
            graph.nodes[name].update(Longitude=places[name][0], Latitude=places[name][1])
    for order, link in enumerate(flat.links):
        endpoints = " -- ".join(f"{end.node}:{end.interface}" for end in link.endpoints)
        attributes: dict[str, float | int | str] = {"endpoints": endpoints, "order": order}
        attributes["delay"] = units.format_duration(link.delay_ns)
        if link.rate_bit_per_s is not None:
            attributes["LinkSpeedRaw"] = float(link.rate_bit_per_s)
        if link.cost != 1:
            attributes["cost"] = link.cost
        graph.add_edge(link.endpoints[0].node, link.endpoints[1].node, **attributes)
    stream = io.BytesIO()
    networkx.write_graphml_xml(graph, stream)
    lacks = missing(lab, {"kind", "group"}, {"rate_bit_per_s", "delay.mean_ns", "cost"})
    return stream.getvalue().decode() + "\n", lacks
