"""What is drawn of a lab: of its plan, which has every route of every node, the small part that a picture of it shows.

A plan of a thousand routers is tens of megabytes, a drawing of it some hundreds of kilobytes. It says what nodes are,
so that nobody who draws guesses that. Of a run it is made when the run is asked for, and kept where no guest writes.
"""

from __future__ import annotations

from pydantic import BaseModel

from dilaton.lab.kinds import SWITCH, kind_of
from dilaton.lab.model import Lab
from dilaton.plan.course.entries import At
from dilaton.plan.model import Interface, Plan


class DrawnNode(BaseModel):
    """A node."""

    name: str
    kind: str
    """host, router, nat, switch, ovs or controller."""
    addresses: list[str]
    """Of all its interfaces, with their prefix length."""


class DrawnEnd(BaseModel):
    """One end of a link, and what it does to the packets that leave by it, at the start."""

    node: str
    interface: str
    rate_bit_per_s: float | None
    """Null: as fast as can be."""
    delay_ns: int


class DrawnLink(BaseModel):
    """A link. One of more than two endpoints is a switch with a link to each."""

    name: str
    ends: list[DrawnEnd]


class DrawnProgram(BaseModel):
    """A program of a node."""

    name: str
    node: str
    argv: list[str]
    start_ns: int | None
    """When it starts; null: when others have, or at no instant that is known beforehand."""


class DrawnEvent(BaseModel):
    """What happens at an instant that is known beforehand: a change of a link, or a fault."""

    at_ns: int
    for_ns: int | None
    """How long; null: until something else ends it."""
    what: str


class DrawnCapture(BaseModel):
    """Packets that are captured, and the file that has them."""

    node: str
    interface: str
    file: str


class Drawing(BaseModel):
    """What is drawn of a lab, and what is said beside it."""

    nodes: list[DrawnNode]
    links: list[DrawnLink]
    guests: list[str]
    """Whose tables of samples there are."""
    programs: list[DrawnProgram]
    course: list[DrawnEvent]
    interfaces_period_ns: int | None
    """How often interfaces are sampled; null: never."""
    captures: list[DrawnCapture]
    checks: list[str]
    """What the lab expects."""
    stop_after_ns: int | None


def drawing(lab: Lab, plan: Plan) -> Drawing:
    """What is drawn of a lab that has this plan."""
    interfaces = {(node.name, one.name): one for node in plan.nodes for one in node.interfaces}
    return Drawing(
        nodes=[
            DrawnNode(
                name=node.name,
                # The only nodes that a lab does not name are switches of links with more than two endpoints.
                kind=kind_of(lab.nodes[node.name].kind, len(node.interfaces)) if node.name in lab.nodes else SWITCH,
                addresses=[address for one in node.interfaces for address in one.addresses],
            )
            for node in plan.nodes
        ],
        links=[
            DrawnLink(
                name=link.name,
                ends=[_end(end.node, interfaces[end.node, end.interface]) for end in link.ends],
            )
            for link in plan.links
        ],
        guests=[guest.name for guest in plan.guests],
        programs=[
            DrawnProgram(name=one.name, node=one.node, argv=one.argv, start_ns=one.start_ns) for one in plan.processes
        ],
        course=[
            DrawnEvent(at_ns=one.when.at_ns, for_ns=one.for_ns, what=one.what or one.effect.kind)
            for one in plan.course
            if isinstance(one.when, At)
        ],
        interfaces_period_ns=plan.measure.interfaces_period_ns,
        captures=[DrawnCapture(node=one.node, interface=one.interface, file=one.file) for one in plan.measure.captures],
        checks=[check.text for check in plan.checks],
        stop_after_ns=plan.stop_after_ns,
    )


def _end(node: str, interface: Interface) -> DrawnEnd:
    rates = [rate for one in interface.egress.qdiscs if (rate := getattr(one, "rate_bit_per_s", None)) is not None]
    return DrawnEnd(
        node=node,
        interface=interface.name,
        rate_bit_per_s=min(rates, default=None),
        delay_ns=interface.delay_ns,
    )
