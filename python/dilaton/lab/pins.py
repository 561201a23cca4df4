"""Which nodes a lab puts on which machine by hand, for a run on several.

A node may be meant by its name, its group and patterns. Its name says most, so it counts whatever the others say; these
must not contradict each other, as neither says more than the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dilaton.lab.errors import Finding
from dilaton.lab.selectors import nodes_of

if TYPE_CHECKING:
    from dilaton.lab.model import Lab


def pinned(lab: Lab) -> dict[str, int]:
    """The machine of each node that has one; the lab is without mistakes."""
    found: dict[str, int] = {}
    # What names most is written last.
    for text, machine in sorted(lab.placement.items(), key=lambda pin: pin[0] in lab.nodes):
        found |= dict.fromkeys(nodes_of(lab, text), machine)
    return found


def check_placement(lab: Lab) -> Iterator[Finding]:
    """Yields what is wrong with a lab's `placement`."""
    first: dict[str, str] = {}
    for text, machine in lab.placement.items():
        try:
            nodes = nodes_of(lab, text)
        except ValueError as error:
            yield Finding(("placement", text), str(error), at_key=True)
            continue
        if text in lab.nodes:
            continue
        for node in nodes:
            other = first.setdefault(node, text)
            if lab.placement[other] != machine and node not in lab.placement:
                message = (
                    f"{machine}: {node} is on machine {lab.placement[other]} by {other}; give {node} a line of its own"
                )
                yield Finding(("placement", text), message)
                break
