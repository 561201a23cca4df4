"""Which machine holds which guest.

Machines wait for each other once per delay of the links between them, so links that are cut should be long; and each
machine should have as large a part of the guests' memory as it has of all machines'. METIS finds such a cut, as it does
for nodes and guests (`plan/guests/placement.py`). It cannot be told that a guest has its place already; that is seen to
afterwards (`pins.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dilaton.cluster.division.pins import none_empty, with_pins
from dilaton.cluster.engines.engine import Host
from dilaton.host.errors import GuestError

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

METIS_SEED = 1

CUT_WEIGHT = 10**6
"""Of a wire with the shortest delay; the others' in inverse proportion to their delays."""


EXCHANGE_HOST_S = 0.00045
"""What it takes machines to hear of each other once, by SPECIFICATION.md."""


@dataclass(frozen=True)
class Cut:
    """A link between two machines.

    Attributes:
        link: Its name; None: what the agents of two guests tell each other by.
        machines: Of its ends.
        delay_ns: How far one machine may run ahead of the other.
    """

    link: str | None
    machines: tuple[int, int]
    delay_ns: int

    @property
    def host_s_per_virtual_s(self) -> float:
        """What waiting costs while guests at both ends work; who is idle waits for nothing. Of several links at once
        the dearest counts."""
        return EXCHANGE_HOST_S / (self.delay_ns / 1e9)


def cuts(planned: Plan, homes: Sequence[int]) -> list[Cut]:
    """The links between machines, the dearest first; by what agents tell each other, two machines are joined once."""
    of_guest = {guest.name: home for guest, home in zip(planned.guests, homes, strict=True)}
    found = {}
    for wire in planned.wires:
        a, b = (of_guest[end.guest] for end in wire.ends)
        if a != b:
            found[wire.link or frozenset((a, b))] = Cut(wire.link, (a, b), min(wire.delays_ns))
    return sorted(found.values(), key=lambda cut: (cut.delay_ns, cut.link is None))


def place(planned: Plan, hosts: Sequence[Host]) -> list[int]:
    """The machine of each guest.

    Args:
        planned: It has as many guests as there are machines, or more.
        hosts: The machines.

    Raises:
        GuestError: The nodes on a machine may take more memory than it has, or a machine would have no guest.
    """
    homes = _divided(planned, [host.memory_bytes for host in hosts])
    if empty := [host.name for machine, host in enumerate(hosts) if machine not in homes]:
        named = ", ".join(empty)
        raise GuestError(f"placement leaves no guest for {named}; put fewer guests elsewhere, or leave it out")
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
    weights = _weights(planned)
    homes = _largest_first(planned, memory_bytes) if machines == guests else _cut(planned, weights, memory_bytes)
    pins = {number: guest.machine for number, guest in enumerate(planned.guests) if guest.machine is not None}
    return with_pins(homes, pins, weights, [guest.memory_bytes for guest in planned.guests], memory_bytes)


def _cut(planned: Plan, weights: Sequence[Mapping[int, int]], memory_bytes: Sequence[int]) -> list[int]:
    """What METIS makes of it."""
    # METIS takes a moment to import.
    import pymetis

    starts = [0, *itertools.accumulate(len(each) for each in weights)]
    _, homes = pymetis.part_graph(
        len(memory_bytes),
        pymetis.CSRAdjacency(starts, [other for each in weights for other in each]),
        vweights=[guest.memory_bytes >> 20 for guest in planned.guests],
        eweights=[weight for each in weights for weight in each.values()],
        tpwgts=[size / sum(memory_bytes) for size in memory_bytes],
        options=pymetis.Options(seed=METIS_SEED),
    )
    return _in_order(none_empty(list(homes), len(memory_bytes)), memory_bytes)


def _weights(planned: Plan) -> list[dict[int, int]]:
    """For each guest, what it costs to cut it off from each other one."""
    numbers = {guest.name: number for number, guest in enumerate(planned.guests)}
    shortest_ns = min((min(wire.delays_ns) for wire in planned.wires), default=1)
    weights: list[dict[int, int]] = [{} for _ in planned.guests]
    for wire in planned.wires:
        a, b = (numbers[end.guest] for end in wire.ends)
        weight = max(1, CUT_WEIGHT * shortest_ns // min(wire.delays_ns))
        for here, there in ((a, b), (b, a)):
            weights[here][there] = weights[here].get(there, 0) + weight
    return weights


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
