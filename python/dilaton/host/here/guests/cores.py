"""Which host core a guest runs on.

A User-Mode Linux kernel uses one core at a time and is two to three times faster when it and its user processes stay
on one, since their hand-over is then a local context switch. Runs side by side should not meet on the same core: each
holds its core by a socket name that the kernel of the host frees with the process, however that ends.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_NAME = "dilaton-core-"
"""What the name of a socket begins with that holds a core; its number follows."""


@dataclass
class Core:
    """A host core, and the hold on it; `held` is None when it is shared with another guest."""

    number: int
    held: socket.socket | None

    def free(self) -> None:
        """Lets another guest have it."""
        if self.held is not None:
            self.held.close()


def take(count: int = 1) -> list[Core]:
    """Takes cores for guests that run together, each its own as long as there are free ones.

    Returns:
        A core for each guest. More guests than free cores share them in turn; without a free one, all that there are.
    """
    allowed = sorted(os.sched_getaffinity(0))
    free: list[Core] = []
    for number in reversed(allowed):
        if len(free) < count and (held := _hold(number)):
            free.append(Core(number, held))
    numbers = [core.number for core in free] or allowed
    shift = 0 if free else os.getpid()
    shared = [Core(numbers[(place + shift) % len(numbers)], None) for place in range(len(free), count)]
    return free + shared


def free() -> int:
    """How many cores no guest has by now; read, since to hold one, however shortly, may keep it from a run."""
    names = set(Path("/proc/net/unix").read_text().split())
    return sum(f"@{_NAME}{number}" not in names for number in os.sched_getaffinity(0))


def _hold(number: int) -> socket.socket | None:
    """The hold on a core; None when another guest has it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        name.bind(f"\0{_NAME}{number}")
    except OSError:
        name.close()
        return None
    return name
