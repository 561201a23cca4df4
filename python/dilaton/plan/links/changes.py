"""What links are in the course of time: their state at virtual 0, and each later one with the instant it begins."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dilaton.lab.faults.fault import Fault
from dilaton.lab.faults.layers import JOINED, layers
from dilaton.lab.model import Lab
from dilaton.lab.parts.impairments import Distribution
from dilaton.lab.parts.links import WAYS, Change, Direction, Link, Way, effective, find_link
from dilaton.plan.course.entries import At, ChangeLink, EndChange, Flap, ImpairLink, Timed
from dilaton.plan.links.disciplines import Shape, egress, shape
from dilaton.plan.links.queues import Egress
from dilaton.plan.links.tables import table


@dataclass(frozen=True)
class State:
    """A link from an instant on: what its ends a and b do to the packets that leave by them."""

    at_ns: int
    egress: tuple[Egress, Egress]
    up: bool = True
    fault: str = ""
    """The faults under which it is so (`lab/faults/layers.py`); empty: without one."""


class Course:
    """What a link is in the course of time, from some instant on.

    Attributes:
        seed: Of the lab.
        shapes: The shape of each direction, the same in all states.
        states: In the order of time.
        under: The same while faults last, by their names.
    """

    def __init__(
        self,
        link: Link,
        changes: Sequence[Change],
        seed: int,
        since_ns: int = 0,
        used: Mapping[Way, Shape] | None = None,
        faults: Mapping[str, tuple[Change, ...]] | None = None,
    ) -> None:
        """Plans the states of a link.

        Args:
            link: As the lab has it.
            changes: Its changes, in the order of time; those of one instant in the order in which they count.
            seed: Of the lab.
            since_ns: When the first state begins.
            used: The shapes that the directions have already, which are kept where they serve.
            faults: What counts over all changes while faults last, by their names.
        """
        self.seed = seed
        later = {at for at in (*(change.at_ns for change in changes), *steps(link)) if at > since_ns}
        instants = [since_ns, *sorted(later)]
        over = {"": (), **(faults or {})}
        timelines = {
            name: {way: [_direction(link, changes, way, at, of_fault) for at in instants] for way in WAYS}
            for name, of_fault in over.items()
        }
        self.shapes = {
            way: shape([each for of_fault in timelines.values() for each in of_fault[way]], used[way] if used else None)
            for way in WAYS
        }
        found: dict[str, list[State]] = {}
        for name, timeline in timelines.items():
            states = found.setdefault(name, [])
            for number, at in enumerate(instants):
                now = {way: timeline[way][number] for way in WAYS}
                round_trip_ns = sum(direction.delay_ns for direction in now.values())
                a, b = (
                    egress(now[way], self.shapes[way], link.mtu, round_trip_ns, f"{link.name} {way}", seed)
                    for way in WAYS
                )
                state = State(at, (a, b), _is_up(changes, at, over[name]), name)
                if not states or (states[-1].egress, states[-1].up) != (state.egress, state.up):
                    states.append(state)
        self.states = found.pop("")
        self.under = found

    def at(self, instant_ns: int, faults: str = "") -> State:
        """The state at an instant that is not before the first, under a set of faults."""
        return _at(self.under[faults] if faults else self.states, instant_ns)

    @property
    def all_states(self) -> list[State]:
        """All that the link can be: first without a fault in the order of time, then under each."""
        return [*self.states, *(state for states in self.under.values() for state in states)]


def _at(states: Sequence[State], instant_ns: int) -> State:
    return [state for state in states if state.at_ns <= instant_ns][-1]


def _is_up(changes: Sequence[Change], at_ns: int, over: Sequence[Change]) -> bool:
    so_far = [*(change for change in changes if change.at_ns <= at_ns), *over]
    said = [change.down for change in so_far if change.down is not None]
    return not (said and said[-1])


def steps(link: Link) -> list[int]:
    """The instants at which schedules of rates have a step."""
    traces = [link.direction(way).trace for way in WAYS]
    return [at for trace in traces if trace is not None and trace.schedule is not None for at, _ in trace.schedule]


def _direction(link: Link, changes: Sequence[Change], way: Way, at_ns: int, over: Sequence[Change]) -> Direction:
    """The parameters of a direction at an instant, its scheduled rate as a plain one; what is `over` counts most."""
    so_far = [*(change for change in changes if change.at_ns <= at_ns), *over]
    layers = [layer for change in so_far for layer in change.layers(way)]
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


def faults_of_links(lab: Lab, more: Sequence[Fault] = ()) -> dict[int, dict[str, tuple[Change, ...]]]:
    """What links are under the faults that are of them, by the position of the link and the names of the faults.

    Raises:
        ValueError: Too many of them may last together.
    """
    found: dict[int, list[tuple[Fault, Change]]] = {}
    for fault in (*lab.faults, *more):
        for change in fault.changes:
            found.setdefault(find_link(change.link, lab.links), []).append((fault, change))
    return {number: layers(of_link) for number, of_link in found.items()}


def states_of_links(lab: Lab) -> list[list[State]]:
    """All states of each link of a lab: first those without a fault."""
    changes, faults = changes_of_links(lab), faults_of_links(lab)
    return [
        Course(link, changes.get(number, []), lab.seed, faults=faults.get(number)).all_states
        for number, link in enumerate(lab.links)
    ]


def link_changes(lab: Lab, found: Sequence[Sequence[State]]) -> list[Timed]:
    """The entries of the course that lead from each state of each link to the next one, in the order of time."""
    instants = (
        instant for link, of_link in zip(lab.links, found, strict=True) for instant in _changes_of(link, of_link)
    )
    return [change for _, change in sorted(instants, key=lambda pair: pair[0])]


def changes_of(link: Link, found: Sequence[State]) -> list[Timed]:
    """The entries of the course that lead from each state of a link to the next one."""
    return [change for _, change in _changes_of(link, found)]


def change_at(at_ns: int, effect: ChangeLink) -> Timed:
    """The entry that lets a link become something at an instant. The run, which has the lab, says in words what."""
    return Timed(name="", what="", when=At(at_ns=at_ns), for_ns=None, effect=effect)


def _changes_of(link: Link, found: Sequence[State]) -> Iterator[tuple[int, Timed]]:
    of_fault: dict[str, list[State]] = {}
    for state in found:
        of_fault.setdefault(state.fault, []).append(state)
    instants = sorted({state.at_ns for state in found})
    for before, after in itertools.pairwise(instants):
        old, new = ({name: _at(states, at) for name, states in of_fault.items()} for at in (before, after))
        sides = [
            side
            for side in (0, 1)
            if any((old[name].egress[side], old[name].up) != (new[name].egress[side], new[name].up) for name in new)
        ]
        if sides:
            plain, *under = ([_end(link, state, side) for side in sides] for state in new.values())
            effect = ChangeLink(link=link.name, ends=plain, under=dict(zip(list(new)[1:], under, strict=True)))
            yield after, change_at(after, effect)


def _end(link: Link, state: State, side: int) -> EndChange:
    end = link.endpoints[side]
    return EndChange(node=end.node, interface=end.interface, egress=state.egress[side], up=state.up)


def impaired(lab: Lab, found: Sequence[Sequence[State]], fault: Fault) -> ImpairLink:
    """What a fault makes of links of a lab whose states these are."""
    numbers = [find_link(change.link, lab.links) for change in fault.changes]
    first = {number: first_under(found[number]) for number in numbers}
    turns = None if fault.flap is None else Flap(down_ns=fault.flap.down_ns, up_ns=fault.flap.up_ns)
    return impairment([lab.links[number] for number in numbers], list(first.values()), fault.name, turns)


def first_under(found: Iterable[State]) -> dict[str, State]:
    """The first state of a link under each set of faults."""
    first: dict[str, State] = {}
    for state in found:
        first.setdefault(state.fault, state)
    return first


def impairment(links: Sequence[Link], first: Sequence[Mapping[str, State]], name: str, flap: Flap | None) -> ImpairLink:
    """What a fault makes of links, by the first state of each under each set of faults."""
    sets = [key for key in first[0] if name in key.split(JOINED)]
    ends = {
        key: [_end(link, states[key], side) for link, states in zip(links, first, strict=True) for side in (0, 1)]
        for key in sets
    }
    return ImpairLink(links=[link.name for link in links], ends=ends.pop(name), beside=ends, flap=flap)


def directions_of(lab: Lab) -> Iterator[Direction]:
    """The parameters of every direction as it begins, and what changes write."""
    for link in lab.links:
        yield from (link.direction(way) for way in WAYS)
    for change in (*lab.changes, *(change for fault in lab.faults for change in fault.changes)):
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
