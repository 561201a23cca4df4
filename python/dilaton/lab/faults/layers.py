"""Which faults of one link may last at the same time: what each of them says of it lies beside what the others say.

Two that say the same of it, such as its delay in one direction, cannot: whichever of them ended first, nobody could
tell what is left. All others can, and may begin and end in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from dilaton.lab.faults.fault import Fault
from dilaton.lab.parts.links import WAYS, Change, Direction

LAYERS_MAX = 500
"""Sets of faults that a link may suffer. The plan says of each what the link then is."""

JOINED = "+"
"""Between the names of faults that last together; no name has it."""


def key_of(names: Sequence[str]) -> str:
    """What a set of faults is called in a plan."""
    return JOINED.join(sorted(names))


def says(change: Change) -> set[tuple[str, str]]:
    """What a change speaks of: parameters of each direction, and whether the link is down."""
    found = {("", "down")} if change.down is not None else set()
    for way in WAYS:
        for part in (change, getattr(change, way)):
            fields = part.model_fields_set & Direction.model_fields.keys()
            if "netem" in fields:
                fields = (fields | part.netem.model_fields_set) - {"netem"}
            found |= {(way, field) for field in fields}
    return found


def may_overlap(first: Fault, second: Fault) -> bool:
    """Whether two faults may last at the same time, as far as their instants are known beforehand."""
    if first.at_ns is None or second.at_ns is None:
        return True
    ends_ns = [
        float("inf") if one.lasts_ns is None else one.at_ns + one.lasts_ns
        for one in (first, second)
        if one.at_ns is not None
    ]
    return first.at_ns < ends_ns[1] and second.at_ns < ends_ns[0]


def layers(of_link: Sequence[tuple[Fault, Change]]) -> dict[str, tuple[Change, ...]]:
    """All sets of faults of a link that may last together, each with what it makes of the link.

    Raises:
        ValueError: There are too many; the text has names.
    """
    said = [says(change) for _, change in of_link]
    found: list[tuple[int, ...]] = []
    growing: list[tuple[int, ...]] = [()]
    while growing:
        grown = []
        for chosen in growing:
            for number in range(chosen[-1] + 1 if chosen else 0, len(of_link)):
                fits = (
                    not said[number] & said[other] and may_overlap(of_link[number][0], of_link[other][0])
                    for other in chosen
                )
                if all(fits):
                    grown.append((*chosen, number))
        found += grown
        growing = grown
        if len(found) > LAYERS_MAX:
            some = ", ".join(fault.name for fault, _ in of_link[:3])
            raise ValueError(f"{some} and others may last together in more than {LAYERS_MAX} ways; write at: in them")
    return {
        key_of([of_link[one][0].name for one in chosen]): tuple(of_link[one][1] for one in chosen) for chosen in found
    }
