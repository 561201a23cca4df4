"""What programs wrote and what happened in a run, in one sequence of virtual instants."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dilaton.host.messages import Ended
from dilaton.run.files.outputs import read_output_bytes
from dilaton.run.files.written import lines
from dilaton.run.loading import Run
from dilaton.run.record import words

BEFORE, WITHIN, AFTER = range(3)
"""A program starts before it writes, and has written before it ends."""


@dataclass(frozen=True)
class Moment:
    """A line of the sequence.

    Attributes:
        t_ns: When, in virtual ns.
        place: The order among what is of the same instant.
        whose: A process, as `node/name`, with the stream if that is standard error; or what something happened to.
        text: What it wrote, or what happened.
        is_event: Which of these.
    """

    t_ns: int
    place: int
    whose: str
    text: str
    is_event: bool

    @property
    def instant(self) -> str:
        """When, for people: `    1.500000 s`."""
        return f"{self.t_ns / 1e9:12.6f} s"

    def __str__(self) -> str:
        return f"{self.instant}  {self.whose} {'' if self.is_event else '| '}{self.text}"


def timeline(run: Run, shows: Callable[[str, str], bool] = lambda node, process: True) -> Iterator[Moment]:
    """All that happened, and what programs wrote as far as it was noted when (`measure: {outputs: true}`).

    Args:
        run: A run that has ended.
        shows: Whether outputs of a process, told by its node and name, are wanted.
    """
    moments = (_events(run), *_outputs(run, shows))
    return heapq.merge(*moments, key=lambda moment: (moment.t_ns, moment.place))


def _events(run: Run) -> Iterator[Moment]:
    for event in sorted(run.happened, key=lambda event: event.t_ns):
        place = AFTER if isinstance(event, Ended) else BEFORE
        yield Moment(event.t_ns, place, words.subject(event), words.happened(event), is_event=True)


def _outputs(run: Run, shows: Callable[[str, str], bool]) -> Iterator[Iterator[Moment]]:
    for (node, process, stream), rows in run.outputs.groupby(["node", "process", "stream"], sort=True):
        if shows(node, process):
            growth = list(zip(rows["t_ns"], rows["bytes"], strict=True))
            output = read_output_bytes(run.path / "nodes" / node / f"{process}.{stream}")
            yield _lines(f"{node}/{process}" if stream == "stdout" else f"{node}/{process} {stream}", growth, output)


def _lines(whose: str, growth: list[tuple[int, int]], output: bytes) -> Iterator[Moment]:
    for t_ns, line in lines(growth, output):
        yield Moment(t_ns, WITHIN, whose, line, is_event=False)
