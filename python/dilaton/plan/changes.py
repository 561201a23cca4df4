"""What links are in the course of time: their state at virtual 0, and each later one with the instant it begins."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dilaton.lab.impairments import Distribution
from dilaton.lab.links import WAYS, Change, Direction, Link, Way, effective, find_link
from dilaton.lab.model import Lab
from dilaton.plan.links import Shape, egress, shape
from dilaton.plan.model import EndChange, LinkChange
from dilaton.plan.queues import Egress
from dilaton.plan.tables import table


@dataclass(frozen=True)
class State:
    """A link from an instant on: what its ends a and b do to the packets that leave by them."""

    at_ns: int
    egress: tuple[Egress, Egress]
    up: bool = True


class Course:
    """What a link is in the course of time, from some instant on.

    Attributes:
        seed: Of the lab.
        shapes: The shape of each direction, the same in all states.
        states: In the order of time.
    """

    def __init__(
        self,
        link: Link,
        changes: Sequence[Change],
        seed: int,
        since_ns: int = 0,
        used: Mapping[Way, Shape] | None = None,
    ) -> None:
        """Plans the states of a link.

        Args:
            link: As the lab has it.
            changes: Its changes, in the order of time; those of one instant in the order in which they count.
            seed: Of the lab.
            since_ns: When the first state begins.
            used: The shapes that the directions have already, which are kept where they serve.
        """
        self.seed = seed
        later = {at for at in (*(change.at_ns for change in changes), *_steps(link)) if at > since_ns}
        instants = [since_ns, *sorted(later)]
        timeline = {way: [_direction(link, changes, way, at) for at in instants] for way in WAYS}
        self.shapes = {way: shape(timeline[way], used[way] if used else None) for way in WAYS}
        self.states: list[State] = []
        for number, at in enumerate(instants):
            now = {way: timeline[way][number] for way in WAYS}
            round_trip_ns = sum(direction.delay_ns for direction in now.values())
            a, b = (
                egress(now[way], self.shapes[way], link.mtu, round_trip_ns, f"{link.name} {way}", seed) for way in WAYS
            )
            state = State(at, (a, b), _is_up(changes, at))
            if not self.states or (self.states[-1].egress, self.states[-1].up) != (state.egress, state.up):
                self.states.append(state)

    def at(self, instant_ns: int) -> State:
        """The state at an instant that is not before the first."""
        return [state for state in self.states if state.at_ns <= instant_ns][-1]


def _is_up(changes: Sequence[Change], at_ns: int) -> bool:
    said = [change.down for change in changes if change.at_ns <= at_ns and change.down is not None]
    return not (said and said[-1])


def _steps(link: Link) -> list[int]:
    """The instants at which schedules of rates have a step."""
    traces = [link.direction(way).trace for way in WAYS]
    return [at for trace in traces if trace is not None and trace.schedule is not None for at, _ in trace.schedule]


def _direction(link: Link, changes: Sequence[Change], way: Way, at_ns: int) -> Direction:
    """The parameters of a direction at an instant, its scheduled rate as a plain one."""
    layers = [layer for change in changes if change.at_ns <= at_ns for layer in change.layers(way)]
    direction = effective(link, getattr(link, way), *layers)
    if direction.trace is None or direction.trace.schedule is None:
        return direction
    rate = [rate for at, rate in direction.trace.schedule if at <= at_ns][-1]
    return direction.model_copy(update={"trace": None, "rate_bit_per_s": rate})


def changes_of_links(lab: Lab) -> dict[int, list[Change]]:
    """The changes of each link that has any, in the order of time, by its position in the lab."""
    changes: dict[int, list[Change]] = {}
    for change in sorted(lab.changes, key=lambda change: change.at_ns):
        changes.setdefault(find_link(change.link, lab.links), []).append(change)
    return changes


def states_of_links(lab: Lab) -> list[list[State]]:
    """The states of each link of a lab."""
    changes = changes_of_links(lab)
    return [Course(link, changes.get(number, []), lab.seed).states for number, link in enumerate(lab.links)]


def link_changes(lab: Lab, found: Sequence[Sequence[State]]) -> list[LinkChange]:
    """The changes of the plan that lead from each state of each link to the next one, in the order of time."""
    changes = (change for link, of_link in zip(lab.links, found, strict=True) for change in changes_of(link, of_link))
    return sorted(changes, key=lambda change: change.at_ns)


def changes_of(link: Link, found: Sequence[State]) -> list[LinkChange]:
    """The changes of the plan that lead from each state of a link to the next one."""
    return [
        LinkChange(
            at_ns=after.at_ns,
            link=link.name,
            ends=[
                EndChange(node=end.node, interface=end.interface, egress=new, up=after.up)
                for end, old, new in zip(link.endpoints, before.egress, after.egress, strict=True)
                if old != new or before.up != after.up
            ],
        )
        for before, after in itertools.pairwise(found)
        if (before.egress, before.up) != (after.egress, after.up)
    ]


def directions_of(lab: Lab) -> Iterator[Direction]:
    """The parameters of every direction as it begins, and what changes write."""
    for link in lab.links:
        yield from (link.direction(way) for way in WAYS)
    for change in lab.changes:
        yield from (effective(*change.layers(way)) for way in WAYS)


def tables_of(directions: Iterable[Direction]) -> dict[str, list[int]]:
    """The tables of all distributions that directions use."""
    used = {direction.delay.distribution for direction in directions}
    if used == {Distribution("uniform")}:
        return {}
    return {one.name: list(one.table or table(one.name)) for one in sorted(used, key=lambda one: one.name)}


def traces_of(directions: Iterable[Direction]) -> dict[str, list[int]]:
    """All delivery traces."""
    traces = [direction.trace.file for direction in directions if direction.trace is not None]
    return {trace.name: list(trace.opportunities_ms) for trace in traces if trace is not None}
