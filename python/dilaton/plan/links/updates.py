"""What becomes of a link that is changed while its run goes on.

The plan has told the agent everything that the link will become, each time as a whole. So a change that comes meanwhile
replaces all of that which is still to come: the link's course is planned anew from now on, with the new change among
the others, and a value that it does not name is neither reset now nor by a later change that was planned without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dilaton.lab.parts.links import WAYS, Change, Link, effective
from dilaton.lab.text import units
from dilaton.plan.course.entries import LinkUpdate
from dilaton.plan.guests import kernels as guests
from dilaton.plan.links.changes import Course, State, changes_of, first_under, steps, tables_of
from dilaton.plan.links.wires import RING_BYTES_LEFT, beside_wire, constant_ns, under_way_bytes
from dilaton.plan.model import Wire

BEFORE_ALL = -1
"""An instant for what is so already."""

BY_SCHEDULE = "rate as scheduled"
"""What has changed of a link by a step of its trace."""

FOR_FAULT = "other queues, for a fault by hand"
"""What has changed of one whose queues cannot be what a fault makes of it without being made anew."""


class Became(NamedTuple):
    """What had become of a link: since `at_ns` it was to be so; `what` had changed then; is it `up`."""

    at_ns: int
    what: str
    up: bool


@dataclass(frozen=True)
class SteeredLink:
    """A link of a run that goes on: all its changes in the order of time, and what it becomes by them.

    A link between guests has a wire, whose delays and room stay what they were when the run began.
    """

    link: Link
    changes: tuple[Change, ...]
    course: Course
    wire: Wire | None = None
    faults: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    """What it is under faults, by their names (`lab/faults/layers.py`)."""

    @classmethod
    def planned(
        cls,
        link: Link,
        changes: Iterable[Change],
        seed: int,
        wire: Wire | None = None,
        faults: Mapping[str, tuple[Change, ...]] | None = None,
    ) -> SteeredLink:
        """A link as it was planned, of a lab with this seed."""
        course = Course(link, tuple(changes), seed, faults=faults)
        return cls(link, tuple(changes), course, wire, faults or {})

    @property
    def wire_delays_ns(self) -> tuple[int, int]:
        """The delays of the wires from a to b and from b to a; 0 within a guest."""
        return self.wire.delays_ns if self.wire else (0, 0)

    def beside_wire(self, state: State) -> State:
        """What its ends do of one of its states."""
        return beside_wire(state, self.wire_delays_ns)

    def changed(self, change: Change, now_ns: int) -> SteeredLink:
        """The same link with one more change; the shapes that it has now are kept where they serve."""
        # Of one instant, the later one counts; and it is asked for later.
        changes = tuple(sorted([*self.changes, change], key=lambda one: one.at_ns))
        course = Course(self.link, changes, self.course.seed, now_ns, self.course.shapes, self.faults)
        return replace(self, changes=changes, course=course)

    def suffering(self, faults: Mapping[str, tuple[Change, ...]], now_ns: int) -> SteeredLink:
        """The same link with these faults; the shapes that it has now are kept where they serve."""
        course = Course(self.link, self.changes, self.course.seed, now_ns, self.course.shapes, faults)
        return replace(self, course=course, faults=faults)

    def became(self, t_ns: int) -> Became:
        """What had become of it at `t_ns`."""
        state = self.course.at(t_ns)
        words = [change.words for change in self.changes if change.at_ns == state.at_ns]
        otherwise = BY_SCHEDULE if state.at_ns in steps(self.link) else FOR_FAULT
        return Became(state.at_ns, ", ".join(words) or otherwise, state.up)

    def beyond_wire(self) -> Iterator[str]:
        """Yields what of the link, from now on, its wire cannot be, in words."""
        if self.wire is None:
            return
        a, b = (end.guest for end in self.wire.ends)
        for side, (delay_ns, room) in enumerate(zip(self.wire.delays_ns, self.wire.ring_bytes, strict=True)):
            shortest_ns = min(constant_ns(state.egress[side]) for state in self.course.all_states)
            if shortest_ns < delay_ns:
                shortest, delay = units.format_duration(shortest_ns), units.format_duration(delay_ns)
                fix = f"write lookahead: {shortest} on it in the lab" if shortest_ns else "have both ends in one guest"
                yield (
                    f"a packet from {self.link.endpoints[side].node} could take {shortest}, and the guests {a} and {b} "
                    f"agreed at the start that none takes less than {delay}; {fix}"
                )
            if under_way_bytes(self.course.all_states, side, self.wire.delays_ns) > room - RING_BYTES_LEFT:
                yield (
                    f"more could be under way than the {units.format_size(room)} that {a} and {b} have room for; "
                    "say the highest rate in the lab's changes: beforehand"
                )


def link_update(before: SteeredLink, after: SteeredLink, now_ns: int, modules: Sequence[str]) -> LinkUpdate:
    """What the agent is told of a change.

    Args:
        before: The link without the change.
        after: The link with it, planned from `now_ns` on.
        now_ns: Virtual time since the run's virtual 0.
        modules: Kernel modules that are loaded already.
    """
    changes = (*after.changes, *(change for under in after.faults.values() for change in under))
    written = [effective(*change.layers(way)) for change in changes for way in WAYS]
    # At once, wherever the guest's clock, which counts in steps, is by now.
    later = (state if state.at_ns > now_ns else replace(state, at_ns=0) for state in after.course.all_states)
    known = {"": before.course.states, **before.course.under}
    first = first_under(after.course.all_states)
    # What is new is not there yet; nothing has to change for it.
    now = (before.course.at(now_ns, key) if key in known else state for key, state in first.items())
    present = (replace(state, at_ns=BEFORE_ALL) for state in now)
    states = [after.beside_wire(state) for state in (*present, *later)]
    egress = [one for state in after.course.all_states for one in state.egress]
    return LinkUpdate(
        link=after.link.name,
        modules=[module for module in guests.link_modules(egress) if module not in modules],
        tables=tables_of([*written, *(after.link.direction(way) for way in WAYS)]),
        course=changes_of(after.link, states),
    )
