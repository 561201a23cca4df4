"""The course of a run: what happens in it beside processes, and what everything in it waits for."""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Literal

from dilaton.lab.faults.disk import BrokenDisk
from dilaton.lab.faults.fault import Fault
from dilaton.lab.faults.load import Load as LabLoad
from dilaton.lab.model import Lab
from dilaton.lab.segments import is_switch
from dilaton.lab.selectors import Selection
from dilaton.lab.text.moments import read_moment
from dilaton.plan.course.entries import (
    After,
    At,
    Awaited,
    BreakDisk,
    ChangeLink,
    Cut,
    Datagrams,
    ImpairLink,
    Kill,
    Load,
    Partition,
    Pause,
    PowerOff,
    PowerOn,
    Requests,
    SendLoad,
    SetClock,
    SlowCpu,
    Syns,
    TakeMemory,
    Timed,
    WrongDisk,
)
from dilaton.plan.cpu import Cpu
from dilaton.plan.errors import lab_error
from dilaton.plan.links.changes import State, impaired
from dilaton.plan.model import Node

Effect = (
    BreakDisk | ImpairLink | Kill | Partition | Pause | PowerOff | PowerOn | SendLoad | SetClock | SlowCpu | TakeMemory
)
"""What faults do."""


def awaited(text: str, known: Collection[str]) -> Awaited:
    """The moment that is written so, of the entries with these names."""
    name, moment = read_moment(text, known)
    return Awaited(name=name, moment=moment)


def faults(
    lab: Lab,
    states: Sequence[Sequence[State]],
    guest_of: Mapping[str, str],
    nodes: Mapping[str, Node],
    known: Collection[str],
) -> list[Timed]:
    """The entries that faults mean.

    Args:
        lab: Whose; its links have two ends.
        states: All states of each link.
        guest_of: The guest of each node.
        nodes: The plan's nodes, by their names.
        known: The names of all that can be waited for.

    Raises:
        LabError: A fault is of something that its node does not have for itself, or waits for something and is of
            nodes in several guests.
    """
    found = []
    for fault in lab.faults:
        if lack := not_its_own(fault, guest_of, nodes):
            raise lab_error(f"faults[{fault.place}].{fault.action}.{'to' if fault.load else 'node'}", lack)
        effect, words = (impaired(lab, states, fault), fault.words) if fault.changes else effect_of(lab, nodes, fault)
        if apart := begins_apart(fault, effect, guest_of):
            raise lab_error(f"faults[{fault.place}].after", apart)
        found.append(timed(fault, effect, words, known))
    return found


def effect_of(lab: Lab, nodes: Mapping[str, Node], fault: Fault) -> tuple[Effect, str]:
    """What a fault does that is of no link, and the words for that, with what was drawn."""
    if fault.pause is not None:
        return Pause(node=fault.pause.node, process=fault.pause.process), fault.words
    if fault.kill is not None and fault.kill.process is not None:
        return Kill(node=fault.kill.node, process=fault.kill.process), fault.words
    if fault.crash is not None:
        return PowerOff(node=fault.crash, how="crash"), fault.words
    if fault.stop is not None:
        return PowerOff(node=fault.stop, how="stop"), fault.words
    if fault.reboot is not None:
        return PowerOff(node=fault.reboot, how="reboot"), fault.words
    if fault.start is not None:
        return PowerOn(node=fault.start), fault.words
    if fault.disk is not None:
        disk = nodes[fault.disk.node].disk
        assert disk is not None, "a node without a disk, which the lab's check refuses"
        return _break_disk(fault.disk, disk.number, f"{lab.seed} {fault.name}"), fault.words
    if fault.clock is not None:
        clock = fault.clock
        return SetClock(node=clock.node, by_ns=clock.by_ns, every_ns=clock.every_ns), fault.words
    if fault.cpu is not None:
        usual = nodes[fault.cpu.node].cpu
        assert usual is not None, "a node without a share, which is refused before"
        return SlowCpu(node=fault.cpu.node, to=Cpu.of(usual.number, fault.cpu.to), usual=usual), fault.words
    if fault.memory is not None:
        return TakeMemory(node=fault.memory.node, leave_bytes=fault.memory.leave_bytes), fault.words
    if fault.load is not None:
        return SendLoad(node=fault.load.node, load=_load(fault.load, nodes)), fault.words
    assert fault.partition is not None, "a fault that is of no link and does nothing"
    switches = {name for name, node in lab.nodes.items() if is_switch(node)}
    every = [name for name in lab.nodes if name not in switches]
    seed = f"{lab.seed} {fault.name}"
    words, cuts = fault.partition.drawn(Selection(lab, seed, switches).select, every, seed)
    made = [Cut(sources=cut.sources, targets=cut.targets) for cut in cuts]
    return Partition(cuts=made), f"partition {words}"


def begins_apart(fault: Fault, effect: Effect | ChangeLink, guest_of: Mapping[str, str]) -> str | None:
    """Why guests could not begin a fault together, if they could not, and what to write."""
    guests = sorted({guest_of[node] for node in nodes_of(effect)})
    if fault.after is None or len(guests) < 2:
        return None
    # Each would hear at another instant of what it waits for.
    return (
        f"{fault.name} is of nodes in the guests {' and '.join(guests)}, which begin it together only at "
        "an instant; write at:, or have these nodes in one guest"
    )


def not_its_own(fault: Fault, guest_of: Mapping[str, Hashable], nodes: Mapping[str, Node]) -> str | None:
    """Why a node lacks what a fault is of, a date of its own, a share of a CPU or an address, and what would help."""
    if fault.cpu is not None and nodes[fault.cpu.node].cpu is None:
        name = fault.cpu.node
        return (
            f"{name} is alone in its guest and has all of its CPU, no share that could be less; have another node in it"
        )
    if fault.load is not None and not _addresses(nodes[fault.load.to]):
        return f"{fault.load.to} has no address to which something could be sent"
    if fault.clock is None:
        return None
    node = fault.clock.node
    others = [name for name, guest in guest_of.items() if guest == guest_of[node] and name != node]
    if not others:
        return None
    some = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
    fix = f"give it one of its own, as in {node}: {{guest: {node}}}"
    return f"{node} shares its kernel, and so its date, with {some}; {fix}"


def _break_disk(wrong: BrokenDisk, number: int, seed: str) -> BreakDisk:
    refuses: Literal["read-only", "full"] | None = "read-only" if wrong.read_only else "full" if wrong.full else None
    made = WrongDisk(
        errors=wrong.errors,
        corrupt=wrong.corrupt,
        delay_ns=wrong.delay_ns,
        stall_ns=wrong.stall_ns,
        refuses=refuses,
        seed=random.Random(seed).getrandbits(63),
    )
    return BreakDisk(node=wrong.node, number=number, wrong=made)


def _load(wanted: LabLoad, nodes: Mapping[str, Node]) -> Load:
    what: Syns | Datagrams | Requests
    match wanted.kind:
        case "syn":
            what = Syns()
        case "udp":
            what = Datagrams(bytes=wanted.size_bytes)
        case "http":
            what = Requests(host=wanted.to, path=wanted.path)
    # As programs prefer it that look the name up; a node without an address has been refused.
    addresses = _addresses(nodes[wanted.to])
    to = next((address for address in addresses if ":" not in address), addresses[0])
    per_s = wanted.per_s
    return Load(to=to, port=wanted.port, what=what, count=per_s.numerator, every_ns=per_s.denominator * 10**9)


def _addresses(node: Node) -> list[str]:
    own = [*node.loopback, *(address for interface in node.interfaces for address in interface.addresses)]
    return [address.partition("/")[0] for address in own]


def nodes_of(effect: Effect | ChangeLink) -> set[str]:
    """The nodes to which something is done."""
    match effect:
        case ChangeLink() | ImpairLink():
            return {end.node for end in effect.ends}
        case Partition():
            return {node for cut in effect.cuts for node in (*cut.sources, *cut.targets)}
        case (
            BreakDisk() | Kill() | Pause() | PowerOff() | PowerOn() | SendLoad() | SetClock() | SlowCpu() | TakeMemory()
        ):
            return {effect.node}


def timed(fault: Fault, effect: Effect, words: str, known: Collection[str]) -> Timed:
    """The entry of a fault, as agents read it; `known` as of `faults`."""
    when = (
        At(at_ns=fault.at_ns or 0)
        if fault.after is None
        else After(awaited=awaited(fault.after, known), wait_ns=fault.wait_ns)
    )
    return Timed(name=fault.name, what=words, when=when, for_ns=fault.lasts_ns, effect=effect)
