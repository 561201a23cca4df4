"""What takes a whole link, or all of them, to see: contradictions between parameters, and what cannot be held.

A link has a state at the start of the run and another one after each of its changes, and each of them must be possible.
A finding stands where the value that counts was written, be it in the netem text, the link, a direction or a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from dilaton.lab.errors import Finding, Path, unknown
from dilaton.lab.faults.fault import Fault
from dilaton.lab.faults.layers import layers as sets_of_faults
from dilaton.lab.model import Lab
from dilaton.lab.parts.impairments import DISCIPLINES_WITH, BdpLimit, ByteLimit, PacketLimit, Queue, TimeLimit
from dilaton.lab.parts.links import WAYS, BothWays, Change, Direction, Link, Way, effective, find_link
from dilaton.lab.text import units
from dilaton.lab.text.part import Part

WIRE_BYTES_MAX = 6 * 2**30
"""What can be under way in one direction: a guest has at most 16 GiB, and a byte under way costs it 2.5."""

QUEUE_BYTES_MAX = 2**32 - 1
"""The kernel keeps limits in 32 bits."""

BURST_NS_MAX = 2**32 * 64
"""And bursts as times, in steps of 64 ns."""

SFQ_PACKETS = (2, 127 * 128)
"""The limits that sfq takes: at most so many packets of each flow, of so many flows (net/sched/sch_sfq.c)."""

JITTER_NS_MAX = 2**31 - 1
"""netem reckons with jitters in 31 bits."""

Layers: TypeAlias = list[tuple[Path, BothWays]]
"""What sets the parameters of a link up to an instant, with where it is written."""


def check_links(lab: Lab) -> Iterator[Finding]:
    """Yields everything that is wrong with the links of a lab and their changes."""
    used: dict[tuple[str, str], int] = {}
    for number, link in enumerate(lab.links):
        path: Path = ("links", number)
        for side, end in enumerate(link.endpoints):
            here: Path = (*path, "endpoints", side)
            if end.node not in lab.nodes:
                yield Finding(here, unknown("node", end.node, list(lab.nodes)))
                continue
            other = used.setdefault((end.node, end.interface), number)
            if other != number:
                yield Finding(here, f"{end.node}:{end.interface} is already in use by links[{other}]")
        yield from _check_ends(link, path)
    changes: dict[int, list[int]] = {}
    for place, change in sorted(enumerate(lab.changes), key=lambda item: item[1].at_ns):
        path = ("changes", place)
        yield from _check_change(change, path, lab.stop_after_ns)
        try:
            number = find_link(change.link, lab.links)
        except ValueError as error:
            yield Finding((*path, "link"), str(error))
            continue
        changes.setdefault(number, []).append(place)
        if len(lab.links[number].endpoints) > 2:
            yield from check_segment(change, path)
    faults: dict[int, Layers] = {}
    yield from _check_faults(lab, faults)
    found: set[Finding] = set()
    for number, link in enumerate(lab.links):
        placed: Layers = [(("changes", place), lab.changes[place]) for place in changes.get(number, [])]
        of_faults = faults.get(number, [])
        found.update(check_course(link, ("links", number), placed, of_faults))
        found.update(_check_lookahead(link, ("links", number), placed, of_faults))
    yield from sorted(found, key=lambda finding: (str(finding.path), finding.message))


def check_faults(lab: Lab) -> Iterator[Finding]:
    """Yields what is wrong with single faults of links."""
    return _check_faults(lab, {})


def _check_faults(lab: Lab, found: dict[int, Layers]) -> Iterator[Finding]:
    """Finds what faults make of each link, by its number; yields what is wrong with one by itself."""
    together: dict[int, list[tuple[Fault, Change]]] = {}
    for fault in lab.faults:
        path: Path = ("faults", fault.place)
        for change in () if fault.mistake else fault.changes:
            yield from check_change(change, path)
            try:
                number = find_link(change.link, lab.links)
            except ValueError as error:
                yield Finding((*path, *(("flap",) if fault.flap else ()), "link"), str(error))
                continue
            found.setdefault(number, []).append((path, change))
            together.setdefault(number, []).append((fault, change))
            if len(lab.links[number].endpoints) > 2:
                yield from check_segment(change, path)
    for of_link in together.values():
        try:
            sets_of_faults(of_link)
        except ValueError as error:
            yield Finding(("faults",), str(error))


def _states(link: Link, path: Path, changes: Layers, faults: Layers) -> list[Layers]:
    """What sets the parameters of a link in each of its states: first without a fault, in the order of time."""
    plain: list[Layers] = [[(path, link), *changes[:count]] for count in range(len(changes) + 1)]
    return [*plain, *([*state, fault] for fault in faults for state in plain)]


def _check_lookahead(link: Link, path: Path, changes: Layers, faults: Layers) -> Iterator[Finding]:
    if link.lookahead_ns is None:
        return
    states = _states(link, path, changes, faults)
    shortest_ns = min(_effective(state, way).delay_ns for state in states for way in WAYS)
    if link.lookahead_ns > shortest_ns:
        own, shortest = units.format_duration(link.lookahead_ns), units.format_duration(shortest_ns)
        message = f"{own}: more than the link's delay is, or becomes; write at most {shortest}"
        yield Finding((*path, "lookahead"), message)


def check_course(link: Link, path: Path, changes: Layers, faults: Layers) -> Iterator[Finding]:
    """Yields what is wrong with any of the states of a link.

    Args:
        link: The link.
        path: Where it is written.
        changes: Its changes in the order of time, each with where it is written.
        faults: The same of what it suffers, one at a time.
    """
    states = _states(link, path, changes, faults)
    both = [[_effective(layers, way) for layers in states] for way in WAYS]
    round_trips_ns = [sum(direction.delay_ns for direction in of_state) for of_state in zip(*both, strict=True)]
    for way, directions in zip(WAYS, both, strict=True):
        yield from _check_direction(link, states, way, directions, round_trips_ns)


def _check_ends(link: Link, path: Path) -> Iterator[Finding]:
    a, b, *others = (end.node for end in link.endpoints)
    if others:
        yield from check_segment(link, path)
    if not others and a == b:
        yield Finding((*path, "endpoints"), f"a link joins two nodes, and both ends of this are {a}")
    elif others and len({a, b, *others}) != len(link.endpoints):
        twice = next(name for name in (a, b, *others) if [a, b, *others].count(name) > 1)
        yield Finding((*path, "endpoints"), f"{twice} is twice on this segment, which would be a loop")


def check_segment(both: BothWays, path: Path) -> Iterator[Finding]:
    """Yields what of a segment of more than two nodes, or of a change of one, is only of links between two."""
    for way in WAYS:
        if way in both.model_fields_set:
            yield Finding((*path, way), "a segment has no such direction; say it for all of it")
    if "lookahead_ns" in both.model_fields_set:
        yield Finding((*path, "lookahead"), "a segment keeps its nodes in one guest; remove it")
    if isinstance(both.queue.limit, BdpLimit):
        message = "a segment has no bandwidth-delay product; write a limit in packets or bytes"
        yield Finding((*path, "queue", "limit"), message)


def _check_change(change: Change, path: Path, stop_after_ns: int | None) -> Iterator[Finding]:
    at = units.format_duration(change.at_ns)
    if stop_after_ns is not None and change.at_ns >= stop_after_ns:
        end = units.format_duration(stop_after_ns)
        yield Finding((*path, "at"), f"{at}: never comes, since stop_after ends the run at {end}")
    yield from check_change(change, path)


def check_change(change: Change, path: Path) -> Iterator[Finding]:
    """Yields what is wrong with what a change sets, whatever it is a change of."""
    if not {*BothWays.model_fields, "down"} & change.model_fields_set:
        yield Finding(path, "changes nothing; write for example delay: 50ms")
    for here, part in ((path, change), *(((*path, way), getattr(change, way)) for way in WAYS)):
        if "trace" in part.model_fields_set:
            yield Finding((*here, "trace"), "a trace is of the whole run; change the rate: instead")


def _check_direction(
    link: Link, states: list[Layers], way: Way, directions: list[Direction], round_trips_ns: list[int]
) -> Iterator[Finding]:
    has_rate = any(direction.rates_bit_per_s for direction in directions)
    for layers, direction, round_trip_ns in zip(states, directions, round_trips_ns, strict=True):
        place = _Place(layers, way)
        yield from _check_delay(direction, place)
        yield from _check_queue(direction, place, round_trip_ns, has_rate)
        yield from _check_trace(direction, place)
        if direction.trace is None and _is_traced(directions[0]):
            message = "the trace from a file is the rate of the whole run; remove rate:"
            yield Finding(place.of("rate_bit_per_s"), message)
        yield from _check_wire(direction, place)
    if "netem" in link.model_fields_set and link.netem.model_fields_set == set():
        yield Finding((*states[0][0][0], "netem"), "says nothing")


def _effective(layers: Layers, way: Way) -> Direction:
    return effective(*(part for _, both in layers for part in (both, getattr(both, way))))


def _is_traced(direction: Direction) -> bool:
    return direction.trace is not None and direction.trace.file is not None


class _Place:
    """Finds where a value that counts was written."""

    def __init__(self, layers: Layers, way: Way) -> None:
        self.parts: list[tuple[Path, Part]] = []
        for path, both in layers:
            for here, part in ((path, both), ((*path, way), getattr(both, way))):
                self.parts += [((*here, "netem"), part.netem), (here, part)]

    def of(self, *names: str) -> Path:
        """The path of an attribute such as ("delay", "jitter_ns"), at the last place that sets it."""
        for path, part in reversed(self.parts):
            found = self._within(path, part, names)
            if found is not None:
                return found
        return (*self.parts[1][0], names[0])

    def _within(self, path: Path, part: Part, names: tuple[str, ...]) -> Path | None:
        for name in names:
            if name not in part.model_fields_set:
                return None
            path = (*path, str(type(part).model_fields[name].validation_alias or name))
            part = getattr(part, name)
        return path


def _check_delay(direction: Direction, place: _Place) -> Iterator[Finding]:
    delay, loss = direction.delay, direction.loss
    if delay.jitter_ns == 0:
        if delay.distribution.name != "uniform":
            message = f"{delay.distribution.name}: a distribution needs a jitter; write delay: {{mean: …, jitter: 2ms}}"
            yield Finding(place.of("delay", "distribution"), message)
        if delay.correlation:
            yield Finding(place.of("delay", "correlation"), "a correlation needs a jitter; write jitter: 2ms")
    if delay.jitter_ns > JITTER_NS_MAX:
        longest = units.format_duration(JITTER_NS_MAX)
        message = f"{units.format_duration(delay.jitter_ns)}: netem takes a jitter of at most {longest}"
        yield Finding(place.of("delay", "jitter_ns"), message)
    if direction.reorder.probability and direction.delay_ns == 0:
        message = "reordering sends packets at once while others are delayed; write delay: too"
        yield Finding(place.of("reorder", "probability"), message)
    if loss.correlation and loss.random is None:
        yield Finding(place.of("loss", "correlation"), "a correlation belongs to a random loss")
    if loss.seed is not None and (loss.correlation or (loss.random is None and loss.gemodel is None)):
        message = "a seed is of a random loss without correlation, or of gemodel; others cannot be repeated"
        yield Finding(place.of("loss", "seed"), message)


def _check_queue(direction: Direction, place: _Place, round_trip_ns: int, has_rate: bool) -> Iterator[Finding]:
    queue, has_rate_now = direction.queue, bool(direction.rates_bit_per_s)
    if isinstance(queue.limit, BdpLimit | TimeLimit) and not has_rate_now:
        what = "bdp" if isinstance(queue.limit, BdpLimit) else "time"
        message = f"a limit in {what} needs a rate; write rate: too, or a limit in packets or bytes"
        yield Finding(place.of("queue", "limit"), message)
    elif isinstance(queue.limit, BdpLimit) and round_trip_ns == 0:
        message = "a limit in bdp needs a delay; write delay: too, or a limit in packets or bytes"
        yield Finding(place.of("queue", "limit"), message)
    if queue.discipline != "fifo" and not has_rate:
        message = f"{queue.discipline} needs a rate, since without one no queue forms; write rate: too"
        yield Finding(place.of("queue", "discipline"), message)
    yield from _check_size(queue, place, direction.rates_bit_per_s, round_trip_ns)
    for field, disciplines in DISCIPLINES_WITH.items():
        if getattr(queue, field) and queue.discipline not in disciplines:
            message = f"{queue.discipline} knows no such thing; it is of {', '.join(disciplines)}"
            yield Finding(place.of("queue", field), message)
    if queue.min_bytes is not None and queue.max_bytes is not None and not 0 < queue.min_bytes < queue.max_bytes:
        low, high = units.format_size(queue.min_bytes), units.format_size(queue.max_bytes)
        yield Finding(place.of("queue", "min_bytes"), f"{low}: must be more than 0 and less than max, {high}")


def _check_size(queue: Queue, place: _Place, rates: Sequence[int], round_trip_ns: int) -> Iterator[Finding]:
    """A queue that is larger than the kernel's numbers would be a smaller one."""
    here = place.of("queue", "limit")
    for rate in rates:
        match queue.limit:
            case ByteLimit(bytes=size):
                asked, fix = size, units.format_size(QUEUE_BYTES_MAX)
            case TimeLimit(ns=ns):
                asked = rate * ns // (8 * 10**9)
                fix = units.format_duration(QUEUE_BYTES_MAX * 8 * 10**9 // rate)
            case BdpLimit(factor=factor):
                asked = int(factor * rate * round_trip_ns / (8 * 10**9))
                fix = units.format_size(QUEUE_BYTES_MAX)
            case _:
                continue
        if asked > QUEUE_BYTES_MAX:
            most = units.format_size(QUEUE_BYTES_MAX)
            yield Finding(
                here, f"{asked / 1e9:.3g} GB at {units.format_rate(rate)}, and a queue holds {most}; write {fix}"
            )
    burst_ns_max = max((queue.burst_bytes or 0) * 8 * 10**9 // rate for rate in rates) if rates else 0
    if burst_ns_max > BURST_NS_MAX:
        most = units.format_duration(BURST_NS_MAX // 10**9 * 10**9)
        yield Finding(place.of("queue", "burst_bytes"), f"a burst can be at most what the rate sends in {most}")
    if queue.discipline == "sfq" and isinstance(queue.limit, PacketLimit):
        least, most_packets = SFQ_PACKETS
        if not least <= queue.limit.packets <= most_packets:
            message = f"{queue.limit.packets}: sfq takes a limit of {least} to {most_packets} packets, 127 of each flow"
            yield Finding(here, message)


def _check_trace(direction: Direction, place: _Place) -> Iterator[Finding]:
    trace = direction.trace
    if trace is None:
        return
    if direction.rate_bit_per_s is not None:
        yield Finding(place.of("trace"), "a trace is the rate; remove rate:")
    if trace.file is None:
        return
    if direction.queue.discipline != "fifo":
        yield Finding(place.of("queue", "discipline"), "a trace from a file has a fifo queue; remove discipline:")
    for field, name, wanted in (
        ("delay", "jitter_ns", "a constant delay; remove jitter:"),
        ("reorder", "probability", "packets in order; remove reorder:"),
        ("duplicate", "probability", "each packet once; remove duplicate:"),
    ):
        if getattr(getattr(direction, field), name):
            yield Finding(place.of(field, name), f"a trace from a file delivers {wanted}")


def _check_wire(direction: Direction, place: _Place) -> Iterator[Finding]:
    longest_ns = direction.delay_ns + 4 * direction.delay.jitter_ns
    for rate in direction.rates_bit_per_s:
        on_wire = rate * longest_ns // (8 * 10**9)
        if on_wire > WIRE_BYTES_MAX:
            limit_ns = max(WIRE_BYTES_MAX * 8 * 10**9 // rate // 1000 * 1000, 1)
            yield Finding(
                place.of("delay", "mean_ns"),
                f"{units.format_duration(direction.delay_ns)}: at {units.format_rate(rate)} that is "
                f"{on_wire / 1e9:.3g} GB on the wire, and a guest can hold {WIRE_BYTES_MAX / 1e9:.3g} GB; "
                f"at most {units.format_duration(limit_ns)} would do",
            )
