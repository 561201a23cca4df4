"""Runs: adjacent units that the same hops suit, found in time that grows with their number, not with that of the units.

What a node reaches by some hops is a set of units, as bits in the order of their addresses. Where bits begin and end is
told by shifting such a set by one, so that long stretches of one kind cost what a single unit costs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dilaton.plan.network.addresses import Version
from dilaton.plan.network.paths import Hops, Vertex

Need = tuple[Hops, bool]
"""The hops that a node has to a unit, and whether the unit is loose."""

Piece = tuple[int, int, Need]
"""Units that lie together and need the same: the first, the one after the last, and what they need."""

NO_HOPS: Need = (0, False)


@dataclass(frozen=True)
class Unit:
    """Addresses that lie next to each other and are reached alike: from `start` to before `end`."""

    version: Version
    start: int
    end: int
    target: Vertex
    segment: int | None
    """The segment that they are of; None: they are of `target` or of hosts that hang on it alone."""
    is_loose: bool
    """Whether any of the cheapest paths will do."""


class Units:
    """The units of a lab, in the order of their addresses, and sets of them."""

    def __init__(self, units: Sequence[Unit]) -> None:
        """Sorts them and joins what can be one."""
        self.units = list(_joined(sorted(units, key=lambda unit: (unit.version, unit.start))))
        self.all = (1 << len(self.units)) - 1
        self.loose = 0
        """Those that are loose."""
        self.of_target: dict[Vertex, int] = {}
        """Those of each vertex."""
        self.of_segment: dict[int, int] = {}
        """Those of each segment that no vertex has for itself."""
        self._breaks = 0
        """Those whose addresses do not go on where those of the one before end."""
        self._stretches: list[int] = []
        """How many breaks there are up to each."""
        self._ranges: dict[Version, tuple[list[int], list[int], int]] = {}
        """For each version of IP where its units start and where they end, and the number of the first."""
        for number, unit in enumerate(self.units):
            bit = 1 << number
            if unit.is_loose:
                self.loose |= bit
            self.of_target[unit.target] = self.of_target.get(unit.target, 0) | bit
            if unit.segment is not None:
                self.of_segment[unit.segment] = self.of_segment.get(unit.segment, 0) | bit
            before = self.units[number - 1] if number else None
            if before is None or before.version != unit.version or before.end != unit.start:
                self._breaks |= bit
            self._stretches.append((self._stretches[-1] if self._stretches else 0) + (bit & self._breaks != 0))
            starts, ends, _ = self._ranges.setdefault(unit.version, ([], [], number))
            starts.append(unit.start)
            ends.append(unit.end)

    @property
    def versions(self) -> list[Version]:
        """The versions of IP that there are addresses of."""
        return list(self._ranges)

    def prefixes(self, needs: Mapping[Need, int]) -> Iterator[tuple[Version, int, int, Hops]]:
        """The prefixes of all runs, as version, start, size and hops.

        Args:
            needs: What a node needs for which units; none for those of its own links, which fit into whatever
                surrounds them.
        """
        needed = 0
        for bits in needs.values():
            needed |= bits
        own = list(places(self.all & ~needed))
        for first, last, hops in runs(self._pieces(needs), self._stretches):
            version = self.units[first].version
            has_own = bisect_left(own, first) < bisect_left(own, last)
            for start, size in _split(self.units[first].start, self.units[last - 1].end):
                if not has_own or needed & self._within(version, start, start + size):
                    yield version, start, size, hops

    def _pieces(self, needs: Mapping[Need, int]) -> list[Piece]:
        """Each stretch of units that need the same and lie together, in their order."""
        pieces: list[Piece] = []
        for need, bits in needs.items():
            # As a text of zeros and ones, from the first unit on, since that is searched faster than a number.
            text, end = f"{bits:b}"[::-1] + "0", 0
            while (first := text.find("1", end)) >= 0:
                end = text.find("0", first)
                if self._stretches[first] != self._stretches[end - 1]:
                    for broken in places(self._breaks & _between(first + 1, end)):
                        pieces.append((first, broken, need))
                        first = broken
                pieces.append((first, end, need))
        return sorted(pieces)

    def _within(self, version: Version, start: int, end: int) -> int:
        """The units that have addresses in a range."""
        starts, ends, number = self._ranges[version]
        first, after = bisect_right(ends, start), bisect_left(starts, end)
        return _between(number + first, number + after)


def runs(pieces: Sequence[Piece], stretches: Sequence[int]) -> Iterator[tuple[int, int, Hops]]:
    """Ranges of adjacent units that some hops suit, each from and to a unit that needs them.

    Units without a path (no hops at all) end a run, as a break between the addresses does; those in no piece do not.

    Args:
        pieces: In their order.
        stretches: For each unit the number of the stretch without breaks that it is in.

    Yields:
        The first unit, the one after the last, and the hops.
    """
    first = last = 0
    current = NO_HOPS
    for start, end, need in pieces:
        goes_on = current[0] and stretches[last - 1] == stretches[start]
        common = (current if need == current else _common(current, need)) if goes_on else NO_HOPS
        if common[0]:
            current = common
        else:
            if current[0]:
                yield first, last, _taken(current)
            first, current = start, need
        last = end
    if current[0]:
        yield first, last, _taken(current)


def places(bits: int) -> Iterator[int]:
    """Where a set has a member, from the least."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _between(first: int, end: int) -> int:
    """The set of all from one to before another."""
    return (1 << end) - (1 << first)


def _joined(units: Sequence[Unit]) -> list[Unit]:
    """The same units, with those in one that lie together and are the same to every node, as the hosts of a router."""
    joined: list[Unit] = []
    for unit in units:
        last = joined[-1] if joined else None
        if (
            last
            and last.segment is None
            and unit.segment is None
            and (last.version, last.end, last.target) == (unit.version, unit.start, unit.target)
        ):
            is_loose = last.is_loose and unit.is_loose
            joined[-1] = Unit(last.version, last.start, unit.end, unit.target, None, is_loose)
        else:
            joined.append(unit)
    return joined


def _taken(run: Need) -> Hops:
    """The hops that a run takes: the first of them if any will do."""
    hops, is_loose = run
    return hops & -hops if is_loose else hops


def _common(run: Need, unit: Need) -> Need:
    """The hops that suit both a run and a unit: a loose one is content with any of its own."""
    (of_run, run_is_loose), (of_unit, unit_is_loose) = run, unit
    if run_is_loose and unit_is_loose:
        return of_run & of_unit, True
    if unit_is_loose:
        return NO_HOPS if of_run & ~of_unit else run
    if run_is_loose:
        return NO_HOPS if of_unit & ~of_run else unit
    return run if of_run == of_unit else NO_HOPS


def _split(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The largest aligned blocks that make up a range, as start and size."""
    while start < end:
        size = start & -start or 1 << (end - 1).bit_length()
        while start + size > end:
            size //= 2
        yield start, size
        start += size
