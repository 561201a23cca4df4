"""Which interfaces share a network: what IP addresses and routes are planned by.

A segment is what an Ethernet broadcast reaches: the two ends of a link between hosts or routers, or all that is
attached to switches that are connected with each other. A link of more than two endpoints becomes a switch of its own
with a link to each of them (`without_lans`), so that everything after it knows links of two ends only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from dilaton.lab.kinds import OVS, SWITCH, SWITCHES, is_management
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import Change, Direction, Endpoint, Link, effective, find_link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.union import Union

PORT_FIELDS = frozenset({"rate_bit_per_s", "trace", "queue"})
"""What of a segment's link also holds for what a node receives from it."""


@dataclass(frozen=True)
class Port:
    """An interface with addresses: one end (`side` 0 or 1) of a link, which has a position in the lab."""

    node: str
    link: int
    side: int


@dataclass
class Segment:
    """What a broadcast reaches.

    Attributes:
        ports: The interfaces with addresses, in the order of links.
        switches: The switches between them; none: a point-to-point link.
    """

    ports: list[Port] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)


def without_lans(lab: Lab) -> Lab:
    """The same lab, with a switch and point-to-point links for each link of more than two endpoints.

    Changes and faults of such a link become those of each of its ports, in place.
    """
    if all(len(link.endpoints) == 2 for link in lab.links):
        return lab
    nodes = dict(lab.nodes)
    links: list[Link] = []
    ports: dict[int, list[Link]] = {}
    names = (name for number in range(len(lab.nodes) + len(lab.links)) if (name := f"lan{number}") not in lab.nodes)
    for number, link in enumerate(lab.links):
        if len(link.endpoints) == 2:
            links.append(link)
        else:
            name = next(names)
            nodes[name] = Node(kind=SWITCH)
            ports[number] = list(_ports(link, name))
            links += ports[number]
    changes: list[Change] = []
    for change in lab.changes:
        # What names no link is found by the check of changes.
        with contextlib.suppress(ValueError):
            changed = ports.get(find_link(change.link, lab.links), [])
            changes += [port_change(change, port) for port in changed] or [change]
    faults = []
    for fault in lab.faults:
        on_ports: list[Change] = []
        for change in fault.changes:
            with contextlib.suppress(ValueError):
                on_ports += [port_change(change, port) for port in ports.get(find_link(change.link, lab.links), [])]
        faults.append(fault.on_ports(on_ports) if on_ports else fault)
    return lab.model_copy(update={"nodes": nodes, "links": links, "changes": changes, "faults": faults})


def port_change(change: Change, port: Link) -> Change:
    """What a change of a segment is to one of its ports."""
    own = {name: getattr(change, name) for name in change.model_fields_set & Direction.model_fields.keys()}
    down = {name: value for name, value in own.items() if name in PORT_FIELDS}
    if "rate_bit_per_s" in change.netem.model_fields_set and "rate_bit_per_s" not in down:
        down["rate_bit_per_s"] = change.netem.rate_bit_per_s
    return Change(
        at_ns=change.at_ns,
        link=port.name,
        down=change.down,
        a_to_b=Direction.model_validate(own),
        b_to_a=Direction.model_validate(down),
    ).worded(change.words)


def _ports(link: Link, switch: str) -> Iterator[Link]:
    """A link from each endpoint of a segment to its switch."""
    fields = {name: getattr(link, name) for name in link.model_fields_set - {"a_to_b", "b_to_a"}}
    own = effective(link)
    down = Direction.model_validate(
        {name: getattr(own if name in PORT_FIELDS else Direction(), name) for name in Direction.model_fields}
    )
    for number, end in enumerate(link.endpoints):
        ends = (end, Endpoint(node=switch, interface=f"eth{number}"))
        yield Link.model_validate(fields | {"endpoints": ends, "b_to_a": down})


def is_port_of_switch(lab: Lab, end: Endpoint) -> bool:
    """Whether an end of a link is a port of a switch, which has no address."""
    node = lab.nodes[end.node]
    return is_switch(node) and not (node.kind == OVS and is_management(end.interface))


def is_switch(node: Node) -> bool:
    """Whether a node passes on frames."""
    return node.kind in SWITCHES


def segments(lab: Lab) -> list[Segment]:
    """The segments of a lab whose links have two ends, in the order of their first links."""
    joined = Union()
    switches = [name for name, node in lab.nodes.items() if is_switch(node)]
    for link in lab.links:
        a, b = link.endpoints
        if is_port_of_switch(lab, a) and is_port_of_switch(lab, b):
            joined.join(a.node, b.node)
    switched: dict[object, Segment] = {}
    found: list[Segment] = []
    for number, link in enumerate(lab.links):
        ports = [
            Port(end.node, number, side) for side, end in enumerate(link.endpoints) if not is_port_of_switch(lab, end)
        ]
        between = [end.node for end in link.endpoints if is_port_of_switch(lab, end)]
        if not between:
            found.append(Segment(ports))
            continue
        root = joined.root(between[0])
        if root not in switched:
            switched[root] = Segment()
            found.append(switched[root])
        switched[root].ports += ports
    for name in switches:
        if joined.root(name) in switched:
            switched[joined.root(name)].switches.append(name)
    return found
