"""Guests that have their machine by hand: what becomes of a division that was made without knowing that.

First its parts are given to the machines whose guests they have. Then guests with a place are put there, and others
move, one after the other, while a move makes machines less overfull, or the cut cheaper and machines no fuller. No step
can undo what another has gained, so there is an end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


def with_pins(
    homes: Sequence[int],
    pins: Mapping[int, int],
    weights: Sequence[Mapping[int, int]],
    needs_bytes: Sequence[int],
    memory_bytes: Sequence[int],
) -> list[int]:
    """A division with some guests where they have to be.

    Args:
        homes: The machine of each guest, without a machine that has none.
        pins: The machine of each guest that has one by hand.
        weights: For each guest, what it costs to cut it off from each other one.
        needs_bytes: The memory of each guest.
        memory_bytes: That of each machine.
    """
    if not pins:
        return list(homes)
    names = _names(homes, pins, memory_bytes)
    found = [names[home] for home in homes]
    for guest, machine in pins.items():
        found[guest] = machine
    found = none_empty(found, len(memory_bytes), pins)
    # What METIS allows itself is about as much.
    most = [sum(needs_bytes) * size / sum(memory_bytes) + max(needs_bytes) / 2 for size in memory_bytes]
    while move := _best_move(found, pins, weights, needs_bytes, most):
        guest, machine = move
        found[guest] = machine
    return found


def none_empty(homes: list[int], machines: int, pins: Collection[int] = ()) -> list[int]:
    """Gives machines without a guest one of those that have most, as long as there is one that may move."""
    for empty in sorted(set(range(machines)) - set(homes)):
        movable = [guest for guest, home in enumerate(homes) if guest not in pins and homes.count(home) > 1]
        if movable:
            fullest = max(homes.count(homes[guest]) for guest in movable)
            homes[next(guest for guest in movable if homes.count(homes[guest]) == fullest)] = empty
    return homes


def _names(homes: Sequence[int], pins: Mapping[int, int], memory_bytes: Sequence[int]) -> dict[int, int]:
    """The machine for each part: that of most of its guests, but one of the size that the part was made for."""
    parts = range(len(memory_bytes))
    same = [
        (-sum(homes[guest] == part and machine == there for guest, machine in pins.items()), part != there, part, there)
        for part in parts
        for there in parts
        if memory_bytes[part] == memory_bytes[there]
    ]
    found: dict[int, int] = {}
    for _, _, part, machine in sorted(same):
        if part not in found and machine not in found.values():
            found[part] = machine
    return found


def _best_move(
    homes: Sequence[int],
    pins: Collection[int],
    weights: Sequence[Mapping[int, int]],
    needs_bytes: Sequence[int],
    most_bytes: Sequence[float],
) -> tuple[int, int] | None:
    """The guest whose move helps most, and where to; None: no move helps."""
    held, counts = [0] * len(most_bytes), [0] * len(most_bytes)
    for guest, home in enumerate(homes):
        held[home] += needs_bytes[guest]
        counts[home] += 1

    def excess(machine: int, more: int) -> float:
        return max(0.0, held[machine] + more - most_bytes[machine])

    best, least = None, (0.0, 0)
    for guest, home in enumerate(homes):
        if guest in pins or counts[home] == 1:
            continue
        need = needs_bytes[guest]
        for machine in range(len(most_bytes)):
            if machine == home:
                continue
            more = excess(home, -need) + excess(machine, need) - excess(home, 0) - excess(machine, 0)
            cut = sum(
                weight * ((homes[other] == home) - (homes[other] == machine))
                for other, weight in weights[guest].items()
            )
            if (more, cut) < least:
                best, least = (guest, machine), (more, cut)
    return best
