"""Where a host agent keeps its part of a run on its own machine: a directory that is gone when the agent is.

An agent that is killed cannot remove it. So each holds a lock on its own, which the kernel lets go of whatever happens,
and the next agent of the same user removes those that nobody holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


def parent() -> Path:
    """Where the directories of this user's agents are, by the XDG Base Directory Specification."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "dilaton" / "machines"


@contextlib.contextmanager
def own(within: Path) -> Iterator[Path]:
    """A directory of one's own for as long as the context is; those that nobody has any more are removed."""
    within.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(within):
        _sweep(within)
        made = Path(tempfile.mkdtemp(prefix="run-", dir=within))
        fd = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(fd)


def in_use(within: Path) -> int:
    """How many agents there are."""
    if not within.is_dir():
        return 0
    with _locked(within):
        return _sweep(within)


def _sweep(within: Path) -> int:
    held = 0
    for directory in within.glob("run-*"):
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            # Its agent has just removed it.
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        except BlockingIOError:
            held += 1
        finally:
            os.close(fd)
    return held


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
