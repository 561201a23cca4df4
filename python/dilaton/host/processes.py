"""What the host says of its processes, by their numbers."""

from __future__ import annotations

import contextlib
from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process, as by SIGSTOP."""
    return _state(pid) == "T"


def descent(pid: int, depth: int) -> list[int]:
    """A process, its first child, that one's first child and so on, as far as they live."""
    found = [pid]
    with contextlib.suppress(OSError, IndexError):
        for _ in range(depth):
            found.append(int(Path(f"/proc/{found[-1]}/task/{found[-1]}/children").read_text().split()[0]))
    return found


def _state(pid: int) -> str:
    """The letter of a process's state, as in proc(5); empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
