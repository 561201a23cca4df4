"""`dilaton logs --timeline`: what programs wrote and what happened, in one sequence of virtual instants."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from dilaton.cli.errors import refusing
from dilaton.cli.terminal import Output
from dilaton.host.messages import Ended
from dilaton.run.control.errors import ControlError
from dilaton.run.files.outputs import read_output_bytes
from dilaton.run.files.written import lines
from dilaton.run.loading import Run, load
from dilaton.run.record import words
from dilaton.run.record.record import RecordError

Moment = tuple[int, int, Text]
"""Virtual ns; the order among what is of the same instant; and the line to print."""

BEFORE, WITHIN, AFTER = range(3)
"""A program starts before it writes, and has written before it ends."""


@refusing(RecordError)
def print_timeline(directory: Path, node: str, process: str) -> None:
    """Prints the events of a run and the lines of its outputs, in the order in which they came.

    Args:
        directory: Of the run.
        node: Whose outputs; `*` for all.
        process: The same.

    Raises:
        ControlError: It was not noted when outputs were written.
    """
    run = load(directory)
    if run.plan is None or not run.plan.measure.outputs:
        how = "run it with --set measure.outputs=true, or write that in the lab"
        raise ControlError(f"{directory}: it was not noted when its programs wrote what; {how}")
    console = Output()
    for _, _, line in heapq.merge(_events(run), *_outputs(run, node, process), key=lambda moment: moment[:2]):
        console.print(line, soft_wrap=True)


def _events(run: Run) -> Iterator[Moment]:
    for event in sorted(run.happened, key=lambda event: event.t_ns):
        text = _begun(event.t_ns, words.subject(event)).append(f" {words.happened(event)}", style="yellow")
        yield event.t_ns, AFTER if isinstance(event, Ended) else BEFORE, text


def _outputs(run: Run, node: str, process: str) -> Iterator[Iterator[Moment]]:
    for (at, name, stream), rows in run.outputs.groupby(["node", "process", "stream"], sort=True):
        if node in ("*", at) and process in ("*", name):
            growth = list(zip(rows["t_ns"], rows["bytes"], strict=True))
            output = read_output_bytes(run.path / "nodes" / at / f"{name}.{stream}")
            yield _lines(f"{at}/{name}" if stream == "stdout" else f"{at}/{name} {stream}", growth, output)


def _lines(whose: str, growth: list[tuple[int, int]], output: bytes) -> Iterator[Moment]:
    for t_ns, line in lines(growth, output):
        yield t_ns, WITHIN, _begun(t_ns, whose).append(f" | {line}", style="default")


def _begun(t_ns: int, whose: str) -> Text:
    return Text(f"{t_ns / 1e9:12.6f} s  ", style="dim").append(whose, style="not dim bold")
