"""The processes of this machine, as the tests of this folder look at them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path


def children(pid: int) -> list[int]:
    """The children of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, parents first."""
    return [deeper for child in children(pid) for deeper in (child, *descendants(child))]


def kill(choose: Callable[[], int]) -> None:
    """Kills the process that is chosen; where that is over by then, another choice is made."""
    while True:
        try:
            return os.kill(choose(), signal.SIGKILL)
        except ProcessLookupError:
            continue


def name_of(pid: int) -> str:
    """The program of a process; empty when it is gone."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def status_of(pid: int) -> dict[str, str]:
    """The fields of a process's status, as in proc(5); empty when it is gone."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {}


def guards(pid: int) -> list[int]:
    """The first process of each guest below `pid` that is up to its kernel, whose parent it is."""
    below = descendants(pid)
    uml = {process for process in below if name_of(process) == "linux.uml"}
    deeper = {child for process in uml for child in children(process)}
    return [process for process in below if process in uml - deeper]


def kernels(pid: int) -> list[int]:
    """The kernels of the guests below `pid`."""
    return [kernel for guard in guards(pid) for kernel in children(guard)]
