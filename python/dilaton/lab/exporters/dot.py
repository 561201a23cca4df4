"""Graphviz: a graph in the DOT language, with kinds of nodes as shapes; rates, delays and interfaces are labels."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dilaton.lab.exporters.configured import Configured
from dilaton.lab.exporters.missing import missing
from dilaton.lab.kinds import ROUTER
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import Link
from dilaton.lab.segments import is_switch, without_lans
from dilaton.lab.text import units


def write(lab: Lab, configured: Mapping[str, Configured]) -> tuple[str, list[str]]:
    """The text, and what it lacks."""
    flat = without_lans(lab)
    lines = [f"graph {json.dumps(lab.name)} {{"]
    places = lab.topology.positions if lab.topology else {}
    for name, node in flat.nodes.items():
        shape = "box" if is_switch(node) else "ellipse" if node.kind == ROUTER else "plaintext"
        attributes = [f"shape={shape}"]
        if name in places:
            x, y = places[name]
            attributes.append(f'pos="{72 * x:.1f},{72 * y:.1f}"')
        lines.append(f"  {json.dumps(name)} [{', '.join(attributes)}];")
    for link in flat.links:
        a, b = (json.dumps(end.node) for end in link.endpoints)
        tail, head = (json.dumps(end.interface) for end in link.endpoints)
        attributes = [f"taillabel={tail}", f"headlabel={head}"]
        if label := _label(link):
            attributes.insert(0, f"label={json.dumps(label)}")
        lines.append(f"  {a} -- {b} [{', '.join(attributes)}];")
    return "\n".join([*lines, "}", ""]), missing(lab, {"kind"}, {"rate_bit_per_s", "delay.mean_ns"})


def _label(link: Link) -> str:
    rate = [units.format_rate(link.rate_bit_per_s)] if link.rate_bit_per_s is not None else []
    delay = [units.format_duration(link.delay_ns)] if link.delay_ns else []
    return " ".join(rate + delay)
