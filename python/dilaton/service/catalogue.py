"""The runs of a user: those that go on, found by asking them, and those that are over, found by what they have left.

Nothing is kept of runs anywhere but in their processes and their directories: what is listed cannot be out of date.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.run.control import sockets
from dilaton.run.control.answers import SHOW, RunState
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import request_line, result_of
from dilaton.run.control.sockets import Line
from dilaton.run.files.directory import LAB_FILE, PLAN_FILE, RECORD_FILE, RUNS, last_run_hint

if TYPE_CHECKING:
    from dilaton.run.record.model import Record  # which takes longer to import than all runs to answer

LIST_HOST_S = 5.0
"""How long all runs of a user together have to say what they are."""


@dataclass(frozen=True)
class Going:
    """The runs of this user that go on.

    Attributes:
        shown: What `show` answers, in the order of their directories.
        silent: Why those that did not answer did not, a sentence each.
    """

    shown: list[RunState]
    silent: list[str]


@dataclass(frozen=True)
class Left:
    """A run that does not go on any more, and what it has left.

    Attributes:
        run_dir: Its directory.
        record: What its record says.
        was_killed: Whether its process is gone, and its record says that it goes on.
    """

    run_dir: Path
    record: Record
    was_killed: bool


def going() -> Going:
    """Asks all runs of this user what they are. It takes `LIST_HOST_S` at most, whatever they do."""
    found = sockets.connect_all()
    deadline = time.monotonic() + LIST_HOST_S
    shown = []
    silent = [f"{found.full} that listen in names of runs take no connection"] if found.full else []
    try:
        asked = [line for line in found.runs if _ask(line)]
        for line in asked:
            try:
                # One that has ended meanwhile is none.
                with contextlib.suppress(OSError):
                    if (reply := line.receive(deadline)).endswith(b"\n"):
                        shown.append(_shown(reply, line.pid))
            except ControlError as error:
                silent.append(str(error))
    finally:
        found.close()
    return Going(sorted(shown, key=lambda run: str(run["run_dir"])), silent)


def _ask(line: Line) -> bool:
    """Asks a run what it is; whether it still goes on."""
    try:
        line.send(request_line(SHOW, {}))
    except OSError:
        return False
    return True


def _shown(reply: bytes, pid: int) -> RunState:
    try:
        result: RunState = result_of(reply)
    except ControlError as error:
        raise ControlError(f"process {pid}: {error}") from error
    if any(field not in result for field in ("lab", "lab_file", "run_dir", "state", "suspended", "clock")):
        raise ControlError(
            f"process {pid} of a run does not say what it is; was it begun by another version of Dilaton?"
        )
    return result


def left(directory: Path = RUNS) -> Iterator[Left]:
    """The runs below a directory that do not go on any more, in the order of their names.

    What has no record, or one that cannot be read, is no run.
    """
    from dilaton.run.record.record import RecordError, load
    from dilaton.run.record.states import FINAL_STATES

    for path in sorted(directory.glob(f"*/{RECORD_FILE}")):
        with contextlib.suppress(RecordError):
            record = load(path.parent)
            is_over = record.state in FINAL_STATES
            if is_over or not _is_going(path.parent):
                yield Left(path.parent, record, was_killed=not is_over)


def find(run: str) -> Path:
    """The directory of the run that a user means by `run`.

    That is a run directory, or else the only run that goes on of a lab, which is named by its file, by the directory
    with its `lab.yaml`, or by its name. A directory that is neither hides no run of its name.

    Raises:
        ControlError: there is no such run, or more than one.
    """
    path = Path(run)
    if _is_run_directory(path):
        return path
    runs = going()
    lab_file = str((path / LAB_FILE if path.is_dir() else path).resolve())
    matches = [one for one in runs.shown if one["lab_file"] == lab_file]
    matches = matches or [one for one in runs.shown if run in (one["lab"], Path(one["run_dir"]).name)]
    if len(matches) == 1:
        return Path(matches[0]["run_dir"])
    if matches:
        raise ControlError(f"{run}: several runs of that name go on; say which: {_directories(matches)}")
    known = f"these run: {_directories(runs.shown)}" if runs.shown else "nothing runs"
    besides = "".join(f"; {why}" for why in runs.silent)
    hint = last_run_hint(path) + (f"; dilaton up {run} starts it" if Path(lab_file).is_file() else "")
    raise ControlError(f"{run}: not a run directory, nor a lab that runs, nor the name of one; {known}{besides}{hint}")


def _is_run_directory(path: Path) -> bool:
    """Whether a run has left its record or its plan there, or goes on there, and may not have written them yet."""
    if any((path / name).is_file() for name in (RECORD_FILE, PLAN_FILE)):
        return True
    return _is_going(path)


def _is_going(path: Path) -> bool:
    try:
        sockets.connect(path).close()
    except ControlError:
        return False
    return True


def _directories(runs: list[RunState]) -> str:
    return ", ".join(str(run["run_dir"]) for run in runs)
