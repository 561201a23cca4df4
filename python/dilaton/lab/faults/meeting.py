"""Whether two faults do the same to one thing, so that they cannot last at the same time."""

from __future__ import annotations

import contextlib

from dilaton.lab.faults.fault import Fault
from dilaton.lab.parts.links import Link, find_link


def meeting(links: list[Link], first: Fault, second: Fault) -> str | None:
    """What two faults do the same to, or one of them to a part of that, in words; None: nothing."""
    if first.pause is not None and second.pause is not None and first.pause.node == second.pause.node:
        of_both = {first.pause.process, second.pause.process}
        return f"{second.pause} is paused already" if None in of_both or len(of_both) == 1 else None
    if first.kill is not None and first.kill == second.kill:
        return f"{second.kill} is killed already"
    with contextlib.suppress(ValueError):
        shared = {find_link(change.link, links) for change in first.changes} & {
            find_link(change.link, links) for change in second.changes
        }
        if shared:
            return f"link {links[min(shared)].name} is broken already"
    return None
