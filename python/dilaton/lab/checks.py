"""What takes the whole lab to see: names that must exist, cycles, settings that contradict each other."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Literal

from dilaton.lab import syntax, units
from dilaton.lab.checks_network import check_network
from dilaton.lab.errors import Finding, Path
from dilaton.lab.expect import METRICS, Expectation
from dilaton.lab.model import BdpLimit, Lab, Link, Process

PARSED_PROGRAMS = frozenset().union(*(metric.programs for metric in METRICS.values()))
"""Programs whose output becomes a result."""


def check_lab(lab: Lab) -> Iterator[Finding]:
    """Yields everything that is wrong with a lab whose fields are right one by one."""
    yield from _check_nodes(lab)
    yield from _check_links(lab)
    yield from check_network(lab)
    yield from _check_processes(lab)
    yield from _check_cycles(lab)
    yield from _check_expectations(lab)
    yield from _check_captures(lab)


def _check_nodes(lab: Lab) -> Iterator[Finding]:
    if not lab.nodes:
        yield Finding(("nodes",), "no nodes; write at least one, as in nodes: {a: {}}")
    seen: dict[str, str] = {}
    for name in lab.nodes:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            message = f"{name} differs from {other} only in case, which host names do not tell apart"
            yield Finding(("nodes", name), message, at_key=True)


def _check_links(lab: Lab) -> Iterator[Finding]:
    used: dict[tuple[str, str], int] = {}
    for number, link in enumerate(lab.links):
        path: Path = ("links", number)
        for side, end in enumerate(link.endpoints):
            here: Path = (*path, "endpoints", side)
            if end.node not in lab.nodes:
                yield Finding(here, _unknown("node", end.node, list(lab.nodes)))
                continue
            other = used.setdefault((end.node, end.interface), number)
            if other != number:
                yield Finding(here, f"{end.node}:{end.interface} is already in use by links[{other}]")
        yield from _check_ends(link, path)
        yield from _check_queues(link, path)


def _check_ends(link: Link, path: Path) -> Iterator[Finding]:
    a, b, *others = (end.node for end in link.endpoints)
    if not others and a == b:
        yield Finding((*path, "endpoints"), f"a link joins two nodes, and both ends of this are {a}")
    elif others and len({a, b, *others}) != len(link.endpoints):
        twice = next(name for name in (a, b, *others) if [a, b, *others].count(name) > 1)
        yield Finding((*path, "endpoints"), f"{twice} is twice on this segment, which would be a loop")


def _check_queues(link: Link, path: Path) -> Iterator[Finding]:
    """A bandwidth-delay product needs both factors."""
    found = set()
    directions: tuple[Literal["a_to_b"], Literal["b_to_a"]] = ("a_to_b", "b_to_a")
    for which in directions:
        effective = link.direction(which)
        limit = effective.queue.limit
        if not isinstance(limit, BdpLimit):
            continue
        own = "queue" in getattr(link, which).model_fields_set
        here = (*path, *((which,) if own else ()), "queue", "limit")
        if effective.rate_bit_per_s is None:
            found.add((here, "a limit in bdp needs a rate; write rate: too, or a limit in packets or bytes"))
        elif link.round_trip_ns == 0:
            found.add((here, "a limit in bdp needs a delay; write delay: too, or a limit in packets or bytes"))
    for here, message in sorted(found):
        yield Finding(here, message)


def _check_processes(lab: Lab) -> Iterator[Finding]:
    names = {process.name for process in lab.run}
    first: dict[str, int] = {}
    for number, process in enumerate(lab.run):
        path: Path = ("run", number)
        if process.on not in lab.nodes:
            yield Finding((*path, "on"), _unknown("node", process.on, list(lab.nodes)))
        try:
            syntax.check_process_name(process.name)
        except ValueError as error:
            yield Finding((*path, "name"), str(error))
        other = first.setdefault(process.name, number)
        if other != number:
            message = f"{process.name} is already the name of run[{other}]; give this one its own with name:"
            yield Finding((*path, "name"), message)
        yield from _check_after(process, path, names)
        yield from _check_instants(process, path, lab.stop_after_ns)


def _check_after(process: Process, path: Path, names: set[str]) -> Iterator[Finding]:
    is_list = len(process.after) > 1
    for number, name in enumerate(process.after):
        here: Path = (*path, "after", number) if is_list else (*path, "after")
        if name == process.name:
            yield Finding(here, f"{name} cannot wait for itself")
        elif name not in names:
            yield Finding(here, _unknown("process", name, sorted(names)))
        elif name in process.after[:number]:
            yield Finding(here, f"{name} is written twice")


def _check_instants(process: Process, path: Path, stop_after_ns: int | None) -> Iterator[Finding]:
    start = units.format_duration(process.start_ns)
    if process.stop_ns is not None and process.stop_ns <= process.start_ns:
        stop = units.format_duration(process.stop_ns)
        yield Finding((*path, "stop"), f"{stop}: must be later than the start, {start}")
    if stop_after_ns is not None and process.start_ns >= stop_after_ns:
        end = units.format_duration(stop_after_ns)
        yield Finding((*path, "start"), f"{start}: never comes, since stop_after ends the run at {end}")
    if process.timeout_ns == 0:
        yield Finding((*path, "timeout"), "0s: must be more than 0")
    ready = process.ready
    if ready is None:
        return
    if ready.timeout_ns == 0:
        yield Finding((*path, "ready", "timeout"), "0s: must be more than 0")
    elif ready.delay_ns is not None and ready.delay_ns >= ready.timeout_ns:
        delay, timeout = units.format_duration(ready.delay_ns), units.format_duration(ready.timeout_ns)
        yield Finding((*path, "ready", "delay"), f"{delay}: never comes before the timeout, {timeout}")


def _check_cycles(lab: Lab) -> Iterator[Finding]:
    """Follows `after` from every process in depth; a process met again on the way down closes a cycle."""
    numbers = {process.name: number for number, process in enumerate(lab.run)}
    after = {process.name: [name for name in process.after if name != process.name] for process in lab.run}
    done: set[str] = set()
    for root in after:
        way: list[str] = []
        waiting = [iter([root])]
        while waiting:
            name = next(waiting[-1], None)
            if name is None:
                waiting.pop()
                if way:
                    done.add(way.pop())
            elif name in way:
                cycle = [*way[way.index(name) :], name]
                yield Finding(("run", numbers[name], "after"), f"a cycle: {' after '.join(cycle)}; none could start")
            elif name in after and name not in done:
                way.append(name)
                waiting.append(iter(after[name]))


def _check_expectations(lab: Lab) -> Iterator[Finding]:
    processes = {process.name: process for process in lab.run}
    for number, expectation in enumerate(lab.expect):
        process = processes.get(expectation.process)
        if process is None:
            message = _unknown("process", expectation.process, sorted(processes))
            yield Finding(("expect", number), f"{expectation.text}: {message}")
        elif reason := _no_such_result(expectation, process):
            yield Finding(("expect", number), f"{expectation.text}: {reason}")


def _no_such_result(expectation: Expectation, process: Process) -> str:
    """Why the process cannot have the metric, as far as its command tells; else empty."""
    metric = expectation.metric
    program = posixpath.basename(process.argv[0])
    if not metric.programs or program not in PARSED_PROGRAMS:
        return ""
    if program not in metric.programs:
        return f"{process.name} runs {program}, which has no {metric.name}; {' or '.join(sorted(metric.programs))} has"
    if program == "iperf3" and not any(re.fullmatch(r"--json|-[A-Za-z0-9]*J", word) for word in process.argv[1:]):
        return f"{process.name} has no result, since iperf3 gives one only with -J; add it to exec"
    return ""


def _check_captures(lab: Lab) -> Iterator[Finding]:
    ends = [end for link in lab.links for end in link.endpoints]
    first: dict[str, int] = {}
    for number, capture in enumerate(lab.measure.capture):
        path: Path = ("measure", "capture", number, "interface")
        node, interface = capture.interface.split(":")
        known = [end.interface for end in ends if end.node == node]
        if node not in lab.nodes:
            yield Finding(path, _unknown("node", node, list(lab.nodes)))
        elif interface not in known:
            has = f"it has {', '.join(known)}" if known else "it has none, since no link ends there"
            yield Finding(path, f"{node} has no interface {interface}; {has}")
        elif (other := first.setdefault(capture.interface, number)) != number:
            yield Finding(path, f"{capture.interface} is captured already by measure.capture[{other}]")


def _unknown(what: str, name: str, known: list[str]) -> str:
    hint = syntax.did_you_mean(name, known)
    if not hint:
        listed = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        hint = f"; known: {listed}" if known else f"; there is no {what} at all"
    return f"unknown {what} {name}{hint}"
