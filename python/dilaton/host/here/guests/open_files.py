"""How many files this process, and the kernels that it starts, may have open.

A guest's file system keeps a host file open for each file and directory in its cache: a walk over a whole tree, as by
find, needs a hundred thousand. And some descriptors of a run have fixed numbers, which may be beyond what a process may
use by itself: usually 1,024, where it might raise that to half a million.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from dilaton.host.errors import HostLacksError
from dilaton.host.here.guests.disks import DISKS_MAX, FD_MIN
from dilaton.host.here.guests.kernel import LINE_FD_MIN, LINES

if TYPE_CHECKING:
    from dilaton.plan import model as plan

GUEST_MIN = 1024
"""What a guest needs to start."""

DISKS_MIN = FD_MIN + DISKS_MAX
"""What a guest with disks needs, if it is alone."""

EASY = 100_000
"""So many open files let programs in nodes walk over whole trees."""

FIX = f"sudo prlimit --pid $$ --nofile={EASY}"


def allow(needed: int = GUEST_MIN) -> None:
    """Lets this process, and the kernels that it starts, open as many files as they ever may.

    Raises:
        HostLacksError: that is fewer than are needed.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise HostLacksError(f"this run needs {needed:,} open files, and this process may have {hard:,}", FIX)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def needed(planned: plan.Plan) -> int:
    """How many a run needs: its highest descriptor decides."""
    numbers = {guest.name: number for number, guest in enumerate(planned.guests)}
    disks = [
        FD_MIN + numbers[node.guest] * DISKS_MAX + node.disk.number for node in planned.nodes if node.disk is not None
    ]
    return max(GUEST_MIN, LINE_FD_MIN + LINES * len(numbers), *(number + 1 for number in disks))
