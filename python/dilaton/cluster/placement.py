"""Which machine holds which guest.

Machines wait for each other once per delay of the links between them, so links that are cut should be long; and each
machine should have as large a part of the guests' memory as it has of all machines'. METIS finds such a cut, as it does
for nodes and guests (`plan/guests/placement.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dilaton.cluster.engine import Host
from dilaton.host.errors import GuestError

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

METIS_SEED = 1

CUT_WEIGHT = 10**6
"""Of a wire with the shortest delay; the others' in inverse proportion to their delays."""


def place(planned: Plan, hosts: Sequence[Host]) -> list[int]:
    """The machine of each guest.

    Args:
        planned: It has as many guests as there are machines, or more.
        hosts: The machines.

    Raises:
        GuestError: The nodes on a machine may take more memory than it has.
    """
    homes = _divided(planned, [host.memory_bytes for host in hosts])
    for machine, host in enumerate(hosts):
        held = {guest.name for guest, home in zip(planned.guests, homes, strict=True) if home == machine}
        promised = sum(node.memory_bytes or 0 for node in planned.nodes if node.guest in held)
        if promised > host.memory_bytes:
            raise GuestError(
                f"the nodes of {', '.join(sorted(held))} may take {promised / 1e9:.3g} GB in sum, and {host.name}, "
                f"where they would be, has {host.memory_bytes / 1e9:.3g} GB; give nodes less, or take more machines"
            )
    return homes


def _divided(planned: Plan, memory_bytes: Sequence[int]) -> list[int]:
    machines, guests = len(memory_bytes), len(planned.guests)
    if machines == 1:
        return [0] * guests
    if machines == guests:
        return _largest_first(planned, memory_bytes)
    # METIS takes a moment to import.
    import pymetis

    numbers = {guest.name: number for number, guest in enumerate(planned.guests)}
    shortest_ns = min((min(wire.delays_ns) for wire in planned.wires), default=1)
    weights: list[dict[int, int]] = [{} for _ in range(guests)]
    for wire in planned.wires:
        a, b = (numbers[end.guest] for end in wire.ends)
        weight = max(1, CUT_WEIGHT * shortest_ns // min(wire.delays_ns))
        for here, there in ((a, b), (b, a)):
            weights[here][there] = weights[here].get(there, 0) + weight
    starts = [0, *itertools.accumulate(len(each) for each in weights)]
    _, homes = pymetis.part_graph(
        machines,
        pymetis.CSRAdjacency(starts, [other for each in weights for other in each]),
        vweights=[guest.memory_bytes >> 20 for guest in planned.guests],
        eweights=[weight for each in weights for weight in each.values()],
        tpwgts=[size / sum(memory_bytes) for size in memory_bytes],
        options=pymetis.Options(seed=METIS_SEED),
    )
    return _in_order(_none_empty(list(homes), machines), memory_bytes)


def _largest_first(planned: Plan, memory_bytes: Sequence[int]) -> list[int]:
    """A machine for each guest, the largest for the largest; in their order where that makes no difference."""
    if len(set(memory_bytes)) == 1:
        return list(range(len(memory_bytes)))
    guests = sorted(range(len(planned.guests)), key=lambda guest: -planned.guests[guest].memory_bytes)
    machines = sorted(range(len(memory_bytes)), key=lambda machine: -memory_bytes[machine])
    return [machine for _, machine in sorted(zip(guests, machines, strict=True))]


def _in_order(homes: list[int], memory_bytes: Sequence[int]) -> list[int]:
    """Numbers machines by their first guests, but only among equal ones: METIS gave each what it can hold."""
    order: dict[int, int] = {}
    for size in set(memory_bytes):
        equal = [machine for machine, each in enumerate(memory_bytes) if each == size]
        used = [home for home in dict.fromkeys(homes) if memory_bytes[home] == size]
        order |= dict(zip(used, equal, strict=True))
    return [order[home] for home in homes]


def _none_empty(homes: list[int], machines: int) -> list[int]:
    """Gives machines that METIS has left without a guest one of those that have most."""
    for empty in set(range(machines)) - set(homes):
        fullest = max(range(machines), key=homes.count)
        homes[homes.index(fullest)] = empty
    return homes
