"""Which host core a guest runs on.

A User-Mode Linux kernel uses one core at a time and is two to three times faster when it and its user processes stay
on one, since their hand-over is then a local context switch. Runs side by side should not meet on the same core: each
holds its core by a socket name that the kernel of the host frees with the process, however that ends.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass


@dataclass
class Core:
    """A host core, and the hold on it; `held` is None when all cores were taken and this one is shared."""

    number: int
    held: socket.socket | None

    def free(self) -> None:
        """Lets another guest have it."""
        if self.held is not None:
            self.held.close()


def take() -> Core:
    """Takes a core that no other guest holds, or shares one when there is none."""
    allowed = sorted(os.sched_getaffinity(0))
    for number in reversed(allowed):
        name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            name.bind(f"\0dilaton-core-{number}")
        except OSError:
            name.close()
        else:
            return Core(number, name)
    return Core(allowed[os.getpid() % len(allowed)], None)
