"""Which machine holds which guest.

Machines wait for each other once per delay of the links between them, so links that are cut should be long; and each
machine should have as large a part of the guests' memory as it has of all machines'. METIS finds such a cut, as it does
for nodes and guests (`plan/guests/placement.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

METIS_SEED = 1

CUT_WEIGHT = 10**6
"""Of a wire with the shortest delay; the others' in inverse proportion to their delays."""


def place(planned: Plan, memory_bytes: Sequence[int]) -> list[int]:
    """The machine of each guest.

    Args:
        planned: It has as many guests as there are machines, or more.
        memory_bytes: What guests may take of each machine.
    """
    machines, guests = len(memory_bytes), len(planned.guests)
    if machines == 1:
        return [0] * guests
    if machines == guests:
        return list(range(guests))
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
    homes = _none_empty(list(homes), machines)
    order = {home: place for place, home in enumerate(dict.fromkeys(homes))}
    return [order[home] for home in homes]


def _none_empty(homes: list[int], machines: int) -> list[int]:
    """Gives machines that METIS has left without a guest one of those that have most."""
    for empty in set(range(machines)) - set(homes):
        fullest = max(range(machines), key=homes.count)
        homes[homes.index(fullest)] = empty
    return homes
