"""Scaling a lab down, as DieCast does: which guests hold its machines, at which TDF, and what that cannot preserve.

A *machine* is a node that computes: a host. M machines in a guest share its one CPU, so virtual time has to pass slowly
enough for all of them to have theirs: the TDF is the sum of the speeds of their CPUs, and each machine has the share
speed / TDF. Network and disks need nothing: their times are virtual anyway, which is DieCast's scaling by the same
factor. What the guest does for all, forwarding above all, is charged to nobody, so some room is left. On the work drive
room costs nothing, since what virtual time takes of the host is its work.

What is a share of one CPU is right in time, not in size: there is one memory for all, and one set of caches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dilaton.lab.kinds import HOST, kind_of
from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans
from dilaton.lab.text import units
from dilaton.plan.guests.disks import DISKS_MAX
from dilaton.plan.guests.kernels import MEMORY_MAX, MEMORY_PER_NODE
from dilaton.plan.machine import Machine
from dilaton.plan.network.network import Network

ROOM = Fraction(5, 4)
"""The TDF, over the sum of the machines' CPUs."""


@dataclass(frozen=True)
class Part:
    """A guest of the lab that was scaled."""

    guest: str
    machines: tuple[str, ...]
    cpu: Fraction
    """The CPUs of its machines in sum, in cores of the host."""
    memory_bytes: int
    """The memory that its machines may take, in sum."""


@dataclass(frozen=True)
class Proposal:
    """How a lab is scaled down."""

    parts: tuple[Part, ...]
    tdf: int
    cpus: dict[str, Fraction]
    """The CPU of each machine, in cores of the host."""
    losses: tuple[str, ...]
    """What it does not preserve, a sentence each."""

    @property
    def machines_per_guest_max(self) -> int:
        """How many machines are in the fullest guest."""
        return max(len(part.machines) for part in self.parts)

    def host_s_max(self, virtual_s: float, cores: int) -> float:
        """Host seconds that a duration takes when all guests are busy for all of it, on so many cores of the host."""
        return virtual_s * self.tdf * max(1.0, len(self.parts) / cores)


def machines(lab: Lab) -> list[str]:
    """The nodes of a lab that compute: hosts, and those of no kind that only forward unless a program runs on them."""
    links = Counter(end.node for link in lab.links for end in link.endpoints)
    busy = {process.on for process in lab.run}
    return [
        name
        for name, node in lab.nodes.items()
        if kind_of(node.kind, links[name]) == HOST or (node.kind is None and name in busy)
    ]


def propose(lab: Lab, onto: int, machine: Machine) -> Proposal:
    """Scales a lab down to `onto` guests.

    Args:
        lab: The lab. A machine of which it says no CPU has one core of the host.
        onto: How many guests there are to be.
        machine: Where it will run.

    Raises:
        LabError: The lab cannot be divided into so many guests.
    """
    plain = {name: node.model_copy(update={"cpu": None, "guest": None}) for name, node in lab.nodes.items()}
    network = Network(without_lans(lab.model_copy(update={"split": onto, "nodes": plain, "guests": {}})), machine.cores)
    cpus = {name: lab.nodes[name].cpu or Fraction(1) for name in machines(lab)}
    parts = []
    for guest in network.placement.guests:
        held = tuple(name for name in cpus if network.placement.of_node[name] == guest)
        memory_bytes = sum(lab.nodes[name].memory_bytes or 0 for name in held)
        parts.append(Part(guest, held, sum((cpus[name] for name in held), Fraction(0)), memory_bytes))
    tdf = max(1, math.ceil(max(part.cpu for part in parts) * ROOM))
    return Proposal(tuple(parts), tdf, cpus, tuple(_losses(lab, parts, machine)))


def nodes_per_guest_max(lab: Lab) -> tuple[int, str]:
    """How many machines like those of the lab a guest can hold, and what bounds it."""
    nodes = [lab.nodes[name] for name in machines(lab)]
    each_bytes = max([node.memory_bytes or MEMORY_PER_NODE for node in nodes], default=MEMORY_PER_NODE)
    bounds = [(MEMORY_MAX // each_bytes, f"{units.format_size(each_bytes)} of memory each, of at most 16 GiB")]
    if any(node.disk for node in nodes):
        bounds.append((DISKS_MAX, "a disk each, and a kernel has no more"))
    return min(bounds)


def _losses(lab: Lab, parts: list[Part], machine: Machine) -> Iterator[str]:
    most = max(len(part.machines) for part in parts)
    promised = sum(part.memory_bytes for part in parts)
    unsaid = sum(1 for name in machines(lab) if lab.nodes[name].memory_bytes is None)
    if unsaid:
        yield f"memory: machines without memory:, {unsaid} of them, take what their guest has"
    if promised:
        has = f" of {_gigabytes(machine.memory_bytes)}" if machine.memory_bytes else ""
        yield f"memory: it is not scaled; {_gigabytes(promised)}{has} are needed when all machines use theirs"
    if most > 1:
        yield f"caches: up to {most} machines take turns in the caches of one core, and find them cold"
        yield "files: the machines of a guest share one page cache for the files of this host"
    if any(lab.nodes[name].disk is None for name in machines(lab)):
        yield "disks: what machines without disk: write is in memory, and takes no disk's time"
    fast = [name for name in machines(lab) if (lab.nodes[name].cpu or 1) > 1]
    if fast:
        yield f"cores: {fast[0]} has a faster CPU, not more of them; programs see one CPU"
    else:
        yield "cores: a machine has one CPU, whatever the real one has"


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.3g} GB"
