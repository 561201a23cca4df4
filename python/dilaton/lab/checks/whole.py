"""What takes the whole lab to see: names that must exist, cycles, settings that contradict each other."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterator

from dilaton.lab.checks.course import CONVERGED, check_course, has_routing_daemons
from dilaton.lab.checks.links import check_links
from dilaton.lab.checks.network import check_network
from dilaton.lab.errors import Finding, Path, unknown
from dilaton.lab.model import Lab, Process, Time
from dilaton.lab.parts.expect import METRICS, Expectation, no_such_metric
from dilaton.lab.parts.own_metrics import UNITS
from dilaton.lab.pins import check_placement
from dilaton.lab.text import syntax, units

PARSED_PROGRAMS = frozenset().union(*(metric.programs for metric in METRICS.values()))
"""Programs whose output becomes a result."""


def check_lab(lab: Lab, replaced: Container[str] = ()) -> Iterator[Finding]:
    """Yields everything that is wrong with a lab whose fields are right one by one.

    Args:
        lab: The whole of it.
        replaced: Fields whose values are not what the lab's file says; what goes with those there may do nothing.
    """
    yield from check_time(lab.time)
    if "time.tdf" not in replaced:
        yield from _check_auto(lab.time)
    yield from _check_nodes(lab)
    yield from _check_guests(lab)
    yield from check_placement(lab)
    yield from check_links(lab)
    yield from check_network(lab)
    yield from _check_processes(lab)
    yield from check_course(lab)
    yield from _check_expectations(lab)
    yield from _check_captures(lab)


def check_time(time: Time) -> Iterator[Finding]:
    """Yields what is wrong with a lab's `time` as a whole."""
    auto, path = time.auto, ("time", "auto")
    if auto.epoch_ns == 0:
        yield Finding((*path, "epoch"), "0s: must be more than 0")
    if auto.min is not None and auto.min > auto.max:
        yield Finding((*path, "min"), f"{auto.min}: is more than max, {auto.max}")
    elif auto.start is not None and not (auto.min or 0) <= auto.start <= auto.max:
        low = f"from min, {auto.min}, " if auto.min else ""
        yield Finding((*path, "start"), f"{auto.start}: must be {low}up to max, {auto.max}")
    if time.clocks == "apart" and time.drive != "wall":
        message = f"apart: clocks run apart on the wall drive alone; write drive: wall, not {time.drive}"
        yield Finding(("time", "clocks"), message)
    if time.drive != "event":
        return
    why = "the event drive's CPU takes no time, so that there is no load to follow; use work or wall"
    if time.tdf == "auto":
        yield Finding(("time", "tdf"), f"auto: {why}")
    if time.on_violation != "continue":
        yield Finding(("time", "on_violation"), f"{time.on_violation}: {why}")


def _check_auto(time: Time) -> Iterator[Finding]:
    in_vain = written = time.auto.model_fields_set
    if time.on_violation != "continue":
        # Then a TDF that stays is watched, too.
        in_vain = written & {"min", "max", "start"}
    if time.tdf != "auto" and in_vain:
        what = "this" if in_vain == written else ", ".join(sorted(in_vain))
        message = f"the tdf is {time.tdf} and does not follow the load; write tdf: auto, or remove {what}"
        yield Finding(("time", "auto"), message, at_key=True)


def _check_nodes(lab: Lab) -> Iterator[Finding]:
    if not lab.nodes:
        yield Finding(("nodes",), "no nodes; write at least one, as in nodes: {a: {}}")
    seen: dict[str, str] = {}
    for name in lab.nodes:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            message = f"{name} differs from {other} only in case, which host names do not tell apart"
            yield Finding(("nodes", name), message, at_key=True)


def _check_guests(lab: Lab) -> Iterator[Finding]:
    named = {node.guest for node in lab.nodes.values() if node.guest is not None}
    for name in lab.guests:
        if name not in named:
            hint = f"; nodes name {', '.join(sorted(named))}" if named else ""
            yield Finding(("guests", name), f"no node is in it; write guest: {name} on one{hint}", at_key=True)


def _check_processes(lab: Lab) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for number, process in enumerate(lab.run):
        path: Path = ("run", number)
        if process.on not in lab.nodes:
            yield Finding((*path, "on"), unknown("node", process.on, list(lab.nodes)))
        try:
            syntax.check_entry_name(process.name, "a process name")
        except ValueError as error:
            yield Finding((*path, "name"), str(error))
        other = first.setdefault(process.name, number)
        if other != number:
            message = f"{process.name} is already the name of run[{other}]; give this one its own with name:"
            yield Finding((*path, "name"), message)
        yield from _check_instants(process, path, lab.stop_after_ns)


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
    restart = process.restart
    if restart is not None and restart.delay_ns == 0:
        yield Finding((*path, "restart", "delay"), "0s: must be more than 0")
    if restart is not None and restart.when == "always" and not process.background and process.stop_ns is None:
        message = "always: the run would never end; write background: true too, or on-failure"
        yield Finding((*path, "restart"), message)
    ready = process.ready
    if ready is None:
        return
    if ready.timeout_ns == 0:
        yield Finding((*path, "ready", "timeout"), "0s: must be more than 0")
    elif ready.delay_ns is not None and ready.delay_ns >= ready.timeout_ns:
        delay, timeout = units.format_duration(ready.delay_ns), units.format_duration(ready.timeout_ns)
        yield Finding((*path, "ready", "delay"), f"{delay}: never comes before the timeout, {timeout}")


def _check_expectations(lab: Lab) -> Iterator[Finding]:
    processes = {process.name: process for process in lab.run}
    for number, expectation in enumerate(lab.expect):
        process = processes.get(expectation.process)
        if process is None and expectation.process == CONVERGED and has_routing_daemons(lab):
            metric = expectation.metric
            if metric.is_own or metric.programs or expectation.span or expectation.recovery:
                yield Finding(("expect", number), f"{expectation.text}: {CONVERGED} has start, end and exit alone")
        elif process is None:
            subject = f"{expectation.process}.{expectation.metric.name}"
            meant = max((name for name in processes if subject.startswith(f"{name}.")), key=len, default="")
            message = (
                no_such_metric(subject[len(meant) + 1 :], processes[meant].results)
                if meant
                else unknown("process", expectation.process, sorted(processes))
            )
            yield Finding(("expect", number), f"{expectation.text}: {message}")
        elif reason := _no_such_part(expectation, lab) or _no_such_result(expectation, process):
            yield Finding(("expect", number), f"{expectation.text}: {reason}")


def _no_such_part(expectation: Expectation, lab: Lab) -> str:
    """Why there is no such part of the run; else empty."""
    about = expectation.recovery or expectation.span
    faults = [fault.name for fault in lab.faults]
    if about is None or not about.fault or about.fault in faults:
        return ""
    return unknown("fault", about.fault, faults)


def _no_such_result(expectation: Expectation, process: Process) -> str:
    """Why the process cannot have the metric, as far as its command tells; else empty."""
    metric = expectation.metric
    if expectation.span or expectation.recovery:
        program, has_intervals = posixpath.basename(process.argv[0]), metric.name == "throughput"
        if has_intervals == (program == "iperf3"):
            return ""
        return (
            f"of a part of a run {program} has no {metric.name}, but iperf3 has its throughput, and all others the rest"
        )
    own = process.results.get(metric.name)
    if metric.is_own and own is None:
        return no_such_metric(metric.name, process.results)
    if own is not None:
        unit = "" if own.take == "count" else UNITS[own.unit][0]
        if unit != metric.dimension.value:
            return f"{metric.name} is in {own.unit or 'plain numbers'}; compare it with a value in that"
        return ""
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
            yield Finding(path, unknown("node", node, list(lab.nodes)))
        elif interface not in known:
            has = f"it has {', '.join(known)}" if known else "it has none, since no link ends there"
            yield Finding(path, f"{node} has no interface {interface}; {has}")
        elif (other := first.setdefault(capture.interface, number)) != number:
            yield Finding(path, f"{capture.interface} is captured already by measure.capture[{other}]")
