"""Which interfaces share a network: what IP addresses and routes are planned by.

A segment is what an Ethernet broadcast reaches: the two ends of a link between hosts or routers, or all that is
attached to switches that are connected with each other. A link of more than two endpoints becomes a switch of its own
with a link to each of them (`without_lans`), so that everything after it knows links of two ends only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dilaton.lab.kinds import OVS, SWITCH, SWITCHES, is_management
from dilaton.lab.links import Direction, Endpoint, Link, effective
from dilaton.lab.model import Lab, Node
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
    """The same lab, with a switch and point-to-point links for each link of more than two endpoints."""
    if all(len(link.endpoints) == 2 for link in lab.links):
        return lab
    nodes = dict(lab.nodes)
    links: list[Link] = []
    names = (name for number in range(len(lab.nodes) + len(lab.links)) if (name := f"lan{number}") not in lab.nodes)
    for link in lab.links:
        if len(link.endpoints) == 2:
            links.append(link)
        else:
            name = next(names)
            nodes[name] = Node(kind=SWITCH)
            links += _ports(link, name)
    return lab.model_copy(update={"nodes": nodes, "links": links})


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
