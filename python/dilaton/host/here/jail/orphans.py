"""Processes that a jail's end leaves behind.

A jail's warden ends what bubblewrap leaves (`warden.py`). If the warden itself is killed, and bubblewrap while it makes
the jail, the jail's first process waits for ever. So this process adopts what jails leave: a process of another PID
namespace that is our own child has lost both.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""prctl(2)"""


def adopt() -> None:
    """Makes descendants that lose their parent children of this process from now on."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end() -> None:
    """Ends the adopted first processes of jails."""
    for pid in _children():
        if _is_of_another_namespace(pid):
            # Another thread may have been faster.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _children() -> list[int]:
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        # Threads, as those of sessions, end meanwhile.
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def _is_of_another_namespace(pid: int) -> bool:
    """Whether a process has a number in a PID namespace below ours too."""
    return _numbers(str(pid)) > _numbers("self")


def _numbers(process: str) -> int:
    """Returns in how many PID namespaces, from ours on, a process has a number; 0 when there is no such process."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next((len(line.split()) - 1 for line in status.splitlines() if line.startswith("NSpid:")), 0)
