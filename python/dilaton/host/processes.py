"""Processes of the host: how they stand, and children that end with us."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""prctl(2)"""

PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
"""prctl(2), capabilities(7)"""

PYTHON = (sys.executable, "-I" if sys.flags.isolated else "-P")
"""The command that runs what we are written in. What is in the present directory is not imported."""

OURSELVES = (*PYTHON, "-m", "dilaton")
"""The command that runs this program once more."""

NICEST = 19
"""sched(7)"""

NICE_TRIES = 100

NICE_RETRY_HOST_S = 0.1

_LIBC = ctypes.CDLL(None)


def ending_with_us() -> Callable[[], None]:
    """What a child does between fork and exec, so that it gets a SIGTERM when the thread that has started it ends."""
    parent = os.getpid()

    def prepare() -> None:
        # Until then it has our handlers, and what these take note of, execve(2) forgets.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        # Who has ended before that sends no signal any more.
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process, as by SIGSTOP."""
    return _state(pid) == "T"


def is_at_work(pid: int) -> bool:
    """Whether a process runs, wants a core, or waits for a disk or for memory."""
    return _state(pid) in ("R", "D")


def descent(pid: int, depth: int) -> list[int]:
    """A process, its first child, that one's first child and so on, as far as they live."""
    found = [pid]
    with contextlib.suppress(OSError, IndexError):
        for _ in range(depth):
            found.append(int(Path(f"/proc/{found[-1]}/task/{found[-1]}/children").read_text().split()[0]))
    return found


def below(pid: int) -> list[int]:
    """All that a process has started, directly or not, as far as it lives and belongs to somebody below."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                found += map(int, Path(f"/proc/{one}/task/{task}/children").read_text().split())
    return found[1:]


async def have_session_nice(pid: int, nice: int) -> None:
    """Has the session of a process be as nice as the process is; see `is_session_nice`."""
    for _ in range(NICE_TRIES):
        if is_session_nice(pid, nice):
            return
        await asyncio.sleep(NICE_RETRY_HOST_S)


def is_session_nice(pid: int, nice: int) -> bool:
    """Has the session of a process be as nice as the process is, and tells whether nothing is left to do for that.

    Where Linux groups processes by their sessions (sched(7), "The autogroup feature"), niceness weighs within a session
    alone, and each new one is as nice as any other.
    """
    group = Path(f"/proc/{pid}/autogroup")
    try:
        if not group.read_text().endswith(f" nice {nice}\n"):
            group.write_text(str(nice))
    except BlockingIOError:
        # Linux takes ten of these in a second, of all ordinary users together.
        return False
    except OSError:
        # There is no grouping here, or the process is gone.
        return True
    return True


def outlive_starter() -> None:
    """Has this process go on when the thread ends that has started it; undoes `ending_with_us`."""
    _LIBC.prctl(PR_SET_PDEATHSIG, 0)


def hand_down_no_capabilities() -> None:
    """Has what this process starts not get its capabilities, as of a service manager: bubblewrap begins with none."""
    none = ctypes.c_ulong(0)
    _LIBC.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), none, none, none)


def _state(pid: int) -> str:
    """The letter of a process's state, as in proc(5); empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
