"""`dilaton logs`: what the programs of a run have written."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from dilaton.plan.model import Plan
from dilaton.run.control import Client, ControlError, find
from dilaton.run.outputs import read_output

LOOK_HOST_S = 0.2
"""How often outputs that are followed are looked at."""


def print_logs(run: str, who: str | None, *, follow: bool) -> int:
    """Prints outputs of a run, each after a line that names it; returns the exit status.

    Args:
        run: The run, which may be over.
        who: A node, or NODE/PROCESS; None for all.
        follow: Whether to go on until the run ends.
    """
    try:
        directory = find(run)
        printer = _Printer(directory, who)
        printer.print_new()
        while follow and _goes_on(directory):
            time.sleep(LOOK_HOST_S)
            printer.print_new()
        if follow:
            printer.print_new()  # what came after the last look
    except ControlError as error:
        print(error, file=sys.stderr)
        return 2
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


def _check(name: str, what: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ControlError(f"{name}: no such {what}; there are {', '.join(sorted(known)) or 'none'}")


class _Printer:
    """Prints what has been added to the outputs of a run."""

    def __init__(self, directory: Path, who: str | None) -> None:
        if not (directory / "nodes").is_dir():
            raise ControlError(f"{directory}: not a run directory, since it has no nodes")
        node, _, process = (who or "*").partition("/")
        if node != "*":
            processes = _processes(directory)
            _check(node, "node", processes)
            if process:
                _check(process, f"process of {node}", processes[node])
        self._directory = directory
        self._pattern = f"{node}/{process or '*'}.std*"
        self._printed: dict[Path, int] = {}
        self._last: Path | None = None

    def print_new(self) -> None:
        for path in sorted((self._directory / "nodes").glob(self._pattern)):
            text = read_output(path)
            new = text[self._printed.get(path, 0) :]
            self._printed[path] = len(text)
            if not new:
                continue
            if path != self._last:
                print(f"==> {path.parent.name}/{path.name} <==")
                self._last = path
            print(new, end="" if new.endswith("\n") else "\n", flush=True)
