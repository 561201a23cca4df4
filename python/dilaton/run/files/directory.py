"""The run directory: what a run leaves on disk, and where in it.

```text
lab.yaml  plan.json  run.json  events.jsonl  clock.csv  verdicts.jsonl  report.html
link-update-<n>.json                       what the agent was told of links while the run went on
nodes/<node>/<process>.stdout|.stderr      written by the guest itself
guest/<guest>.log                          the kernel's console
epochs.csv                                 of a run that is watched: what each epoch showed
attempt-<n>/                               all of that, of an attempt after which it was begun again
```
"""

from __future__ import annotations

import contextlib
import os
import re
from datetime import UTC, datetime
from pathlib import Path

RUNS = Path("runs")
"""Below the present directory: where runs are that were not put elsewhere."""

SWEEPS = Path("sweeps")
"""The same of sweeps, each in the directory of its lab's name."""

LAB_FILE = "lab.yaml"
PLAN_FILE = "plan.json"
RECORD_FILE = "run.json"

SWEEP_FILE = "sweep.json"
"""What a sweep's directory holds: its lab and fields."""

ATTEMPT = "attempt-"
"""And its number: what a run has left that was begun again."""

RESERVE_BYTES = 1 << 20
"""Kept aside at the start of a run, so that a full disk does not keep its record from being written at the end."""


class RunDirError(Exception):
    """The run directory cannot be used; the message names it, what is wrong and what would be right."""


def take_default(lab_name: str, now: datetime | None = None) -> Path:
    """A new `runs/<lab>-<UTC>-<n>` below the current directory, empty, which no run that starts beside gets too.

    Raises:
        RunDirError: It cannot be made.
    """
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    number = 0
    try:
        RUNS.mkdir(exist_ok=True)
        while True:
            number += 1
            path = RUNS / f"{lab_name}-{stamp}-{number}"
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return path
    except OSError as error:
        raise RunDirError(f"{RUNS}: no run directory can be made there: {error.strerror}") from error


def last_run_hint(named: Path) -> str:
    """The end of a message about what is no run, if it is a lab that was run here: `; the last run of it is in X`.

    The same of a lab that was swept here.
    """
    lab = named.parent.name if named.name == LAB_FILE else named.name
    runs = [(match[1], int(match[2]), path) for path in RUNS.glob("*") if (match := _default_of(lab, path))]
    last = f"; the last run of it is in {max(runs)[2]}" if runs else ""
    return last + (f"; the sweep of it is in {SWEEPS / lab}" if lab and (SWEEPS / lab).is_dir() else "")


def _default_of(lab: str, path: Path) -> re.Match[str] | None:
    return re.fullmatch(rf"{re.escape(lab)}-(\d{{8}}T\d{{6}}Z)-(\d+)", path.name)


class RunDir:
    """An empty directory that has been taken for a run, with its reserve of disk space."""

    def __init__(self, path: Path) -> None:
        """Takes `path`: makes it if necessary.

        Raises:
            RunDirError: when it cannot be made, is no directory, or has something in it.
        """
        self.path = path.absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise RunDirError(f"{path}: the run directory is not empty; --out takes a new or an empty directory")
            self._prepare()
        except OSError as error:
            raise RunDirError(f"{path}: the run directory cannot be made: {error.strerror}") from error

    def _prepare(self) -> None:
        (self.path / "nodes").mkdir()
        (self.path / "guest").mkdir()
        self._reserve = self.path / "guest" / ".reserve"
        with self._reserve.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)

    def set_aside(self, number: int) -> None:
        """Moves what attempt `number` has left into a directory of its own, and prepares for the next.

        Raises:
            OSError: it cannot be moved.
        """
        left = [path for path in self.path.iterdir() if not path.name.startswith(ATTEMPT)]
        aside = self.path / f"{ATTEMPT}{number}"
        aside.mkdir()
        for path in left:
            path.rename(aside / path.name)
        self._prepare()

    def is_full(self) -> bool:
        """Whether the disk has no space left for what the guest writes."""
        disk = os.statvfs(self.path)
        return disk.f_bavail * disk.f_frsize < RESERVE_BYTES

    def free_reserve(self) -> None:
        """Gives the reserve back, before the last record is written."""
        self._reserve.unlink(missing_ok=True)

    def write(self, name: str, text: str) -> None:
        """Writes a whole file of the directory."""
        with open(create_file(self.path / name), "w") as file:
            file.write(text)


def create_file(path: Path) -> int:
    """A descriptor to write a new file of a run directory, in place of what is there.

    Never through what is there: a link, put there by a guest, would have a file of this machine written.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def replace_file(path: Path, contents: bytes) -> None:
    """Writes a file of a run directory so that, whatever happens, there is the file before or the one after, and whole.

    Raises:
        OSError: it cannot be written, as on a full disk; the file before is then still there.
    """
    part = path.with_name(f".{path.name}.part")
    with open(create_file(part), "wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
