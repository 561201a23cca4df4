"""Graphviz: a graph in the DOT language, with the kinds of nodes as shapes and rates and delays as labels."""

from __future__ import annotations

import json

from dilaton.lab import units
from dilaton.lab.kinds import ROUTER
from dilaton.lab.links import Link
from dilaton.lab.model import Lab
from dilaton.lab.segments import is_switch, without_lans


def write(lab: Lab) -> tuple[str, list[str]]:
    """The text; it shows the network, so that nothing is missed in it."""
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
        label = _label(link)
        lines.append(f"  {a} -- {b}{f' [label={json.dumps(label)}]' if label else ''};")
    return "\n".join([*lines, "}", ""]), []


def _label(link: Link) -> str:
    rate = [units.format_rate(link.rate_bit_per_s)] if link.rate_bit_per_s is not None else []
    delay = [units.format_duration(link.delay_ns)] if link.delay_ns else []
    return " ".join(rate + delay)
