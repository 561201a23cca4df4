"""What is drawn of a lab: of its plan, which has every route of every node, the small part that a picture of it shows.

A plan of a thousand routers is tens of megabytes, a drawing of it some hundreds of kilobytes. It says what nodes are,
so that nobody who draws guesses that. Of a run it is made when the run is asked for, and kept where no guest writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pydantic import BaseModel

from dilaton.lab.kinds import SWITCH, kind_of
from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans
from dilaton.plan.course.entries import After, ChangeLink
from dilaton.plan.forecast.asked import asked
from dilaton.plan.forecast.cost import Cost
from dilaton.plan.forecast.length import End, Moments, end
from dilaton.plan.links.changes import changes_of_links
from dilaton.plan.model import Interface, Plan, Process


class DrawnNode(BaseModel):
    """A node."""

    name: str
    kind: str
    """host, router, nat, switch, ovs or controller."""
    addresses: list[str]
    """Of all its interfaces, with their prefix length."""
    guest: str = ""
    """The guest that it is in; empty in a drawing of an earlier version."""


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
    """Before which it does not start, whatever it waits for."""
    begin_ns: int | None = None
    """When it starts, as far as can be told; null: that cannot be told."""
    end_ns: int | None = None
    """When it ends; null: when it is stopped, or that cannot be told."""
    is_earliest: bool = False
    """Whether it may start later."""


class DrawnEvent(BaseModel):
    """What is to happen to the network: a change of a link, or a fault."""

    name: str = ""
    """Of the fault; empty: it is a change."""
    link: str = ""
    """That changes; empty: it is a fault."""
    at_ns: int | None
    """When it begins, as far as can be told; null: that cannot be told."""
    is_earliest: bool = False
    """Whether it may begin later."""
    for_ns: int | None
    """How long; null: until something else ends it."""
    what: str


class Forecast(BaseModel):
    """What can be told of a run beforehand."""

    virtual_s: float | None = None
    """How much of virtual time it takes; null: nobody can tell."""
    is_earliest: bool = False
    """Whether it may take more."""
    host_s: float | None = None
    """How long it takes here, within a factor of two; null: nobody can tell."""
    hint: str = ""
    """What makes it take so long, and what would make it shorter."""
    link: str = ""
    """The link that carries most of the packets; empty: nobody can tell."""
    load: float = 0.0
    """Which share of the time that its TDF gives it the run is likely to need, within a factor of two: from 2 on its
    timing cannot be kept. 0 where that keeps no time from being kept, or nobody can tell."""
    tdf: float | None = None
    """The TDF that the run has; null: it is chosen while the run goes on."""


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
    forecast: Forecast = Forecast()


def drawing(lab: Lab, plan: Plan, cost: Cost | None) -> Drawing:
    """What is drawn of a lab that has this plan and, where that is known, costs so much."""
    moments = Moments(plan)
    interfaces = {(node.name, one.name): one for node in plan.nodes for one in node.interfaces}
    return Drawing(
        nodes=[
            DrawnNode(
                name=node.name,
                # The only nodes that a lab does not name are switches of links with more than two endpoints.
                kind=kind_of(lab.nodes[node.name].kind, len(node.interfaces)) if node.name in lab.nodes else SWITCH,
                addresses=[address for one in node.interfaces for address in one.addresses],
                guest=node.guest,
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
        programs=[_program(one, moments) for one in plan.processes],
        course=list(_course(lab, plan, moments)),
        interfaces_period_ns=plan.measure.interfaces_period_ns,
        captures=[DrawnCapture(node=one.node, interface=one.interface, file=one.file) for one in plan.measure.captures],
        checks=[check.text for check in plan.checks],
        stop_after_ns=plan.stop_after_ns,
        forecast=_forecast(plan, cost),
    )


def _program(process: Process, moments: Moments) -> DrawnProgram:
    begin = moments.begin(process)
    is_told = process.stop_ns is not None or (asked(process.argv) is not None and not process.background)
    return DrawnProgram(
        name=process.name,
        node=process.node,
        argv=process.argv,
        start_ns=process.start_ns,
        begin_ns=_told_ns(begin),
        end_ns=_told_ns(moments.end(process)) if is_told else None,
        is_earliest=begin.is_earliest or bool(process.after),
    )


def _course(lab: Lab, plan: Plan, moments: Moments) -> Iterator[DrawnEvent]:
    links = without_lans(lab)
    words = {
        (links.links[number].name, at_ns): ", ".join(change.words for change in changes if change.at_ns == at_ns)
        for number, changes in changes_of_links(links).items()
        for at_ns in {change.at_ns for change in changes}
    }
    for entry in plan.course:
        begin = moments.begin(entry)
        at_ns = _told_ns(begin)
        link = entry.effect.link if isinstance(entry.effect, ChangeLink) else ""
        yield DrawnEvent(
            name=entry.name,
            link=link,
            at_ns=at_ns,
            is_earliest=begin.is_earliest or isinstance(entry.when, After),
            for_ns=entry.for_ns,
            what=entry.what or words.get((link, at_ns or 0), entry.effect.kind),
        )


def _forecast(plan: Plan, cost: Cost | None) -> Forecast:
    length, watch = end(plan), plan.time.watch
    return Forecast(
        virtual_s=length.virtual_s if length else None,
        is_earliest=length.is_earliest if length else False,
        host_s=cost.host_s if cost else None,
        hint=cost.hint if cost else "",
        link=_link_of(plan, cost.busiest) if cost else "",
        # On the event drive computing takes no virtual time.
        load=cost.load if cost and plan.time.drive != "event" and math.isfinite(cost.load) else 0.0,
        tdf=float(plan.time.tdf.ratio) if watch is None or watch.least == watch.most else None,
    )


def _link_of(plan: Plan, interface: str | None) -> str:
    ends = {f"{end.node}:{end.interface}": link.name for link in plan.links for end in link.ends}
    return ends.get(interface, "") if interface is not None else ""


def _told_ns(instant: End) -> int | None:
    return None if math.isinf(instant.virtual_s) else round(instant.virtual_s * 1e9)


def _end(node: str, interface: Interface) -> DrawnEnd:
    rates = [rate for one in interface.egress.qdiscs if (rate := getattr(one, "rate_bit_per_s", None)) is not None]
    return DrawnEnd(
        node=node,
        interface=interface.name,
        rate_bit_per_s=min(rates, default=None),
        delay_ns=interface.delay_ns,
    )
