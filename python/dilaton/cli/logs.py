"""`dilaton logs`: what the programs of a run have written."""

from __future__ import annotations

import sys
import time
from pathlib import Path

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


class _Printer:
    """Prints what has been added to the outputs of a run."""

    def __init__(self, directory: Path, who: str | None) -> None:
        node, _, process = (who or "*").partition("/")
        known = {path.name for path in (directory / "nodes").glob("*")}
        if not (directory / "nodes").is_dir():
            raise ControlError(f"{directory}: not a run directory, since it has no nodes")
        if node != "*" and node not in known:
            raise ControlError(f"{node}: no such node; there are {', '.join(sorted(known)) or 'none yet'}")
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
