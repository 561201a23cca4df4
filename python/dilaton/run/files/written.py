"""When the lines of an output were written, from how long it was when. Pure: values in, values out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate


def lines(growth: Sequence[tuple[int, int]], output: bytes) -> Iterator[tuple[int, str]]:
    """The lines of an output, each with the instant at which it was whole.

    Args:
        growth: Instants, virtual ns, in order, and how many bytes the output had from then on.
        output: What was written in the end. What it has beyond `growth`, as after a run that was killed, has the last
            of its instants; without any it has none, and no lines.
    """
    if not growth:
        return
    # A program may cut its own output; what was seen to be there was there.
    lengths = list(accumulate((length for _, length in growth), max))
    position = 0
    for line in output.splitlines(keepends=True):
        position += len(line)
        place = min(bisect_left(lengths, position), len(growth) - 1)
        yield growth[place][0], line.decode(errors="replace").rstrip("\r\n")
