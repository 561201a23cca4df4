"""What is wrong with the course of a lab: names that must exist, cycles, faults that cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from dilaton.lab.beside.configs import DirectoryTexts
from dilaton.lab.checks.power import check_power
from dilaton.lab.errors import Finding, Path, unknown
from dilaton.lab.faults.fault import Fault
from dilaton.lab.faults.load import Load
from dilaton.lab.faults.machine import LessMemory, SlowCpu
from dilaton.lab.faults.meeting import meeting
from dilaton.lab.faults.partition import LEAST, Partition
from dilaton.lab.model import Lab
from dilaton.lab.segments import is_switch
from dilaton.lab.selectors import Selection
from dilaton.lab.text import syntax, units
from dilaton.lab.text.moments import read_moment

CONVERGED = "converged"
"""What is waited for where it is to be all routers' routes, unless something of the lab has this name."""

WITHOUT_DAEMONS = "converged: no router here has a routing daemon, so all routes are there from the start; leave it out"


def check_course(lab: Lab) -> Iterator[Finding]:
    """Yields what is wrong with what processes and faults wait for, and with faults."""
    yield from _check_names(lab)
    yield from _check_awaited(lab)
    yield from _check_cycles(lab)
    yield from check_faults(lab)


def check_faults(lab: Lab) -> Iterator[Finding]:
    """Yields what is wrong with faults, but for what they wait for."""
    for fault in lab.faults:
        yield from _check_fault(lab, fault, ("faults", fault.place))
    yield from _check_overlaps(lab)
    yield from check_power(lab)


def names(lab: Lab) -> set[str]:
    """The names of all that something can wait for."""
    return _written(lab) | ({CONVERGED} if has_routing_daemons(lab) else set())


def _written(lab: Lab) -> set[str]:
    return {process.name for process in lab.run} | {fault.name for fault in lab.faults}


def has_routing_daemons(lab: Lab) -> bool:
    """Whether routers find routes themselves, so that something can wait until they have."""
    own = (node.startup is not None or isinstance(node.config, DirectoryTexts) for node in lab.nodes.values())
    return lab.routing.has_daemon or any(own)


def awaits_converged(lab: Lab) -> bool:
    """Whether something waits until all routers have all routes, or expects it of the run."""
    if CONVERGED in _written(lab):
        return False
    awaited = any(text.removesuffix(".end").removesuffix(".begin") == CONVERGED for _, _, text in _awaited(lab))
    return awaited or any(expectation.process == CONVERGED for expectation in lab.expect)


def _check_names(lab: Lab) -> Iterator[Finding]:
    first = {process.name: f"run[{number}]" for number, process in reversed(list(enumerate(lab.run)))}
    for fault in lab.faults:
        path: Path = ("faults", fault.place, "name")
        try:
            syntax.check_entry_name(fault.name, "a fault's name")
        except ValueError as error:
            yield Finding(path, str(error))
        other = first.setdefault(fault.name, f"faults[{fault.place}]")
        if other != f"faults[{fault.place}]":
            yield Finding(path, f"{fault.name} is already the name of {other}; give this one its own with name:")


def _awaited(lab: Lab) -> Iterator[tuple[str, Path, str]]:
    """Who waits for what, and where that is written."""
    for number, process in enumerate(lab.run):
        is_list = len(process.after) > 1
        for place, text in enumerate(process.after):
            yield process.name, ("run", number, "after", place) if is_list else ("run", number, "after"), text
    for fault in lab.faults:
        if fault.after is not None:
            yield fault.name, ("faults", fault.place, "after"), fault.after


def _check_awaited(lab: Lab) -> Iterator[Finding]:
    known = names(lab)
    endless = {fault.name for fault in lab.faults if fault.lasts_ns is None and fault.action not in ("reboot", "start")}
    kills = {fault.name for fault in lab.faults if fault.kill is not None}
    seen: set[tuple[str, str]] = set()
    for name, path, text in _awaited(lab):
        try:
            awaited = read_moment(text, known)
        except ValueError as error:
            yield Finding(path, WITHOUT_DAEMONS if text == CONVERGED else str(error))
            continue
        if awaited.name == name:
            yield Finding(path, f"{name} cannot wait for itself")
        elif (name, text) in seen:
            yield Finding(path, f"{text} is written twice")
        elif awaited.moment == "end" and awaited.name in endless:
            field = "restart" if awaited.name in kills else "for"
            yield Finding(path, f"{text}: {awaited.name} has no end; write {field}: in it")
        seen.add((name, text))


def _check_cycles(lab: Lab) -> Iterator[Finding]:
    """Follows `after` from every entry in depth; an entry met again on the way down closes a cycle."""
    known = names(lab)
    places: dict[str, Path] = {fault.name: ("faults", fault.place) for fault in lab.faults}
    places |= {process.name: ("run", number) for number, process in enumerate(lab.run)}
    after: dict[str, list[str]] = {name: [] for name in places}
    for name, _, text in _awaited(lab):
        try:
            awaited = read_moment(text, known).name
        except ValueError:
            continue
        if awaited != name and awaited in places:
            after[name].append(awaited)
    done: set[str] = set()
    for root in after:
        way: list[str] = []
        waiting = [iter([root])]
        while waiting:
            name = next(waiting[-1], "")
            if not name:
                waiting.pop()
                if way:
                    done.add(way.pop())
            elif name in way:
                cycle = [*way[way.index(name) :], name]
                yield Finding((*places[name], "after"), f"a cycle: {' after '.join(cycle)}; none could start")
            elif name not in done:
                way.append(name)
                waiting.append(iter(after[name]))


def _check_fault(lab: Lab, fault: Fault, path: Path) -> Iterator[Finding]:
    if fault.mistake is not None:
        where, said = fault.mistake
        yield Finding((*path, *where), said)
        return
    if fault.for_ns == 0:
        yield Finding((*path, "for"), "0s: must be more than 0")
    end_ns = lab.stop_after_ns
    if fault.at_ns is not None and end_ns is not None:
        end = units.format_duration(end_ns)
        if fault.at_ns >= end_ns:
            begin = units.format_duration(fault.at_ns)
            yield Finding((*path, "at"), f"{begin}: never comes, since stop_after ends the run at {end}")
        elif fault.lasts_ns is not None and fault.at_ns + fault.lasts_ns > end_ns:
            last = units.format_duration(fault.at_ns + fault.lasts_ns)
            yield Finding(
                (*path, "for" if fault.kill is None else "restart"),
                f"ends at {last}, after stop_after has ended the run at {end}",
            )
    if fault.down is False:
        yield Finding((*path, "down"), "false: a fault has a link down, or does not speak of it")
    if fault.partition is not None:
        yield from _check_partition(lab, fault.partition, (*path, "partition"), fault.name)
    if fault.node is not None and fault.node not in lab.nodes:
        yield Finding((*path, fault.action), unknown("node", fault.node, list(lab.nodes)))
    if fault.disk is not None:
        at = (*path, "disk", "node")
        if fault.disk.node not in lab.nodes:
            yield Finding(at, unknown("node", fault.disk.node, list(lab.nodes)))
        elif lab.nodes[fault.disk.node].disk is None:
            name = fault.disk.node
            yield Finding(at, f"{name} has no disk, but memory; give it one, as in {name}: {{disk: ssd-sata}}")
    if fault.clock is not None and fault.clock.node not in lab.nodes:
        yield Finding((*path, "clock", "node"), unknown("node", fault.clock.node, list(lab.nodes)))
    if fault.memory is not None:
        yield from _check_memory(lab, fault.memory, (*path, "memory"))
    if fault.load is not None:
        yield from _check_load(lab, fault.load, (*path, "load"))
    if fault.cpu is not None:
        yield from _check_cpu(lab, fault.cpu, (*path, "cpu"))
    subject = fault.pause or fault.kill
    if subject is None:
        return
    at = (*path, fault.action)
    if subject.node not in lab.nodes:
        yield Finding(at, unknown("node", subject.node, list(lab.nodes)))
        return
    of_node = [process.name for process in lab.run if process.on == subject.node]
    if fault.kill is not None and subject.process is None:
        yield Finding(at, f"{subject}: a kill is of a process; write one of its processes, such as {subject}/server")
    elif subject.process is not None and subject.process not in of_node:
        yield Finding(at, unknown(f"process of {subject.node}:", subject.process, of_node))


def _check_cpu(lab: Lab, slow: SlowCpu, path: Path) -> Iterator[Finding]:
    if slow.node not in lab.nodes:
        yield Finding((*path, "node"), unknown("node", slow.node, list(lab.nodes)))
        return
    usual = lab.nodes[slow.node].cpu
    if lab.time.drive == "event":
        yield Finding(path, "on the event drive CPUs take no time; use the work drive")
    elif usual is None:
        fix = f"give it one, as in {slow.node}: {{cpu: 1}}"
        yield Finding((*path, "node"), f"{slow.node} has no CPU whose speed is known; {fix}")
    elif slow.to >= usual:
        yield Finding((*path, "to"), f"{float(slow.to):g}: {slow.node} has {float(usual):g}; write less")


def _check_memory(lab: Lab, less: LessMemory, path: Path) -> Iterator[Finding]:
    if less.node not in lab.nodes:
        yield Finding((*path, "node"), unknown("node", less.node, list(lab.nodes)))
        return
    usual = lab.nodes[less.node].memory_bytes
    if usual is not None and less.leave_bytes >= usual:
        left, whole = map(units.format_size, (less.leave_bytes, usual))
        yield Finding((*path, "leave"), f"{left}: {less.node} has {whole}; write less")


def _check_load(lab: Lab, load: Load, path: Path) -> Iterator[Finding]:
    hosts = [name for name, node in lab.nodes.items() if not is_switch(node)]
    for field, name in (("from", load.node), ("to", load.to)):
        if name not in hosts:
            yield Finding((*path, field), unknown("node", name, hosts))
    if load.node == load.to:
        yield Finding((*path, "to"), f"{load.to} is the node that sends; a load is of two nodes")


def _check_partition(lab: Lab, partition: Partition, path: Path, name: str) -> Iterator[Finding]:
    seen: dict[str, Path] = {}
    selection = Selection(lab, f"{lab.seed} {name}", [name for name, node in lab.nodes.items() if is_switch(node)])
    for place, written in partition.written:
        here = (*path, *place)
        try:
            nodes = selection.select(written)
        except ValueError as error:
            yield Finding(here, str(error))
            continue
        for node in nodes:
            if is_switch(lab.nodes[node]):
                message = f"{node} is a switch and has no address; break its links with link: or flap:"
                yield Finding(here, message)
            elif node in seen:
                yield Finding(here, f"{node} is on both sides")
            seen[node] = here
        least = LEAST.get(str(place[0]), 1)
        if len(nodes) < least:
            yield Finding(here, f"{', '.join(nodes)}: {place[0]} needs at least {least} nodes")
    if partition.isolate is not None and len(seen) == len(lab.nodes) == 1:
        yield Finding((*path, "isolate"), f"{next(iter(seen))} is the only node")


def _check_overlaps(lab: Lab) -> Iterator[Finding]:
    """Two faults of one thing at one time, as far as their instants are known beforehand; others fail in the run."""
    known = [
        (fault.place, fault, fault.at_ns, fault.at_ns + _lasts_ns(lab, fault))
        for fault in lab.faults
        if fault.at_ns is not None and fault.mistake is None
    ]
    for (one, first, begin_ns, end_ns), (other, second, other_begin_ns, other_end_ns) in combinations(known, 2):
        if begin_ns >= other_end_ns or other_begin_ns >= end_ns:
            continue
        if message := meeting(lab.links, first, second):
            yield Finding(("faults", other, second.action), f"{message} by {first.name}, faults[{one}], at that time")


def _lasts_ns(lab: Lab, fault: Fault) -> float:
    """How long its thing suffers it; a process that is started again by a rule of its own may be killed again."""
    if fault.lasts_ns is not None:
        return fault.lasts_ns
    again = fault.kill is not None and any(
        process.restart is not None for process in lab.run if process.name == fault.kill.process
    )
    return 0 if again else float("inf")
