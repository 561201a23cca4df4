"""`dilaton logs`: what the programs of a run have written."""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from dilaton.cli.errors import BadInputError, refusing
from dilaton.cli.results.timeline import print_timeline
from dilaton.plan.model import Plan
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from dilaton.run.files.outputs import read_behind, read_output
from dilaton.service.catalogue import find

LOOK_HOST_S = 0.2
"""How often outputs that are followed are looked at."""

PIECE_BYTES = 1 << 20
"""So much of an output is in memory at a time."""


@refusing(ControlError)
def print_logs(run: str, who: str | None, *, follow: bool, timeline: bool = False) -> int:
    """Prints outputs of a run, each after a line that names it; returns the exit status.

    Args:
        run: The run, which may be over.
        who: A node, or NODE/PROCESS; None for all.
        follow: Whether to go on until the run ends.
        timeline: Whether to print them line by line in the order in which they came, with what happened.
    """
    if follow and timeline:
        raise BadInputError("--timeline: puts in order what has come so far, so it cannot go on with --follow")
    try:
        directory = find(run)
        node, process = _chosen(directory, who)
        if timeline:
            print_timeline(directory, node, process)
            return 0
        printer = _Printer(directory, node, process)
        printer.print_new()
        while follow and _goes_on(directory):
            time.sleep(LOOK_HOST_S)
            printer.print_new()
        if follow:
            printer.print_new()  # what came after the last look
        printer.print_rest()
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


def _goes_on(directory: Path) -> bool:
    try:
        Client(directory).close()
    except ControlError:
        return False
    return True


def _processes(directory: Path) -> dict[str, set[str]]:
    """Names of each node's processes: of those that left something, and of all that the plan has."""
    found = {node.name: {path.stem for path in node.glob("*.std*")} for node in (directory / "nodes").glob("*")}
    try:
        plan = Plan.model_validate_json(read_output(directory / "plan.json"))
    except ValidationError:
        return found  # it was not written yet, or by another version
    for node in plan.nodes:
        found.setdefault(node.name, set())
    for process in plan.processes:
        found[process.node].add(process.name)
    return found


def _chosen(directory: Path, who: str | None) -> tuple[str, str]:
    """The node and the process whose outputs are meant; `*` for all."""
    if not (directory / "nodes").is_dir():
        raise ControlError(f"{directory}: not a run directory, since it has no nodes")
    node, _, process = (who or "*").partition("/")
    if node != "*":
        processes = _processes(directory)
        _check(node, "node", processes)
        if process:
            _check(process, f"process of {node}", processes[node])
    return node, process or "*"


def _check(name: str, what: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ControlError(f"{name}: no such {what}; there are {', '.join(sorted(known)) or 'none'}")


class _Printer:
    """Prints what has been added to the outputs of a run."""

    def __init__(self, directory: Path, node: str, process: str) -> None:
        self._directory = directory
        self._pattern = f"{node}/{process}.std*"
        self._outputs: dict[Path, _Output] = {}
        self._last: Path | None = None
        self._is_within_line = False

    def print_new(self) -> None:
        """Prints what has come since the last call; a line that is not complete yet goes on where it is."""
        for path in sorted((self._directory / "nodes").glob(self._pattern)):
            output = self._outputs.setdefault(path, _Output(path))
            for text in output.new():
                self._print(path, text)

    def print_rest(self) -> None:
        """Prints what no more can come after: characters that have no end, and the end of the last line."""
        for path, output in self._outputs.items():
            self._print(path, output.rest())
        self._end_line()

    def _print(self, path: Path, text: str) -> None:
        if not text:
            return
        if path != self._last:
            self._end_line()
            print(f"==> {path.parent.name}/{path.name} <==")
            self._last = path
        print(text, end="", flush=True)
        self._is_within_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._is_within_line:
            print(flush=True)
        self._is_within_line = False


class _Output:
    """An output as it grows. A character that is half written is kept until its other half has come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def new(self) -> Iterator[str]:
        """What has come since the last call, in pieces."""
        while piece := read_behind(self._path, self._position, PIECE_BYTES):
            self._position += len(piece)
            yield self._decoder.decode(piece)

    def rest(self) -> str:
        """What is left of a character that was never finished."""
        return self._decoder.decode(b"", final=True)
