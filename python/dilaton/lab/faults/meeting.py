"""Whether two faults do the same to one thing, so that they cannot last at the same time."""

from __future__ import annotations

import contextlib

from dilaton.lab.faults.fault import Fault
from dilaton.lab.faults.layers import says
from dilaton.lab.parts.links import Direction, Link, find_link

FIELDS = {name: str(field.validation_alias or name) for name, field in Direction.model_fields.items()}
"""Fields of a link's directions, as users write them."""


def meeting(links: list[Link], first: Fault, second: Fault) -> str | None:
    """What two faults do the same to, or one of them to a part of that, in words; None: nothing."""
    if first.pause is not None and second.pause is not None and first.pause.node == second.pause.node:
        of_both = {first.pause.process, second.pause.process}
        return f"{second.pause} is paused already" if None in of_both or len(of_both) == 1 else None
    if first.kill is not None and first.kill == second.kill:
        return f"{second.kill} is killed already"
    if first.disk is not None and second.disk is not None and first.disk.node == second.disk.node:
        return f"the disk of {second.disk.node} is broken already"
    if first.cpu is not None and second.cpu is not None and first.cpu.node == second.cpu.node:
        return f"the CPU of {second.cpu.node} is slow already"
    if first.memory is not None and second.memory is not None and first.memory.node == second.memory.node:
        return f"memory of {second.memory.node} is taken already"
    with contextlib.suppress(ValueError):
        one, other = ({find_link(change.link, links): change for change in each.changes} for each in (first, second))
        for number in sorted(one.keys() & other.keys()):
            if both := says(one[number]) & says(other[number]):
                field = FIELDS.get(min(both)[1], min(both)[1])
                return f"{field} of link {links[number].name} is said already"
    return None


def takes_away(first: Fault, second: Fault) -> bool:
    """Whether one of two faults switches off the node whose programs the other one is about."""
    nodes = []
    for fault in (first, second):
        subject = fault.pause or fault.kill or fault.cpu or fault.memory or fault.load
        nodes.append(fault.node or (subject.node if subject is not None else None))
    return nodes[0] is not None and nodes[0] == nodes[1] and (first.node is not None or second.node is not None)
