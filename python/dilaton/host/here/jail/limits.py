"""Limits of a guest's processes that need no control group (setrlimit(2)).

As many open files as this process may have, and no more; no core dumps, which would take the guest's memory to wherever
the host collects them; so many processes; and no file larger than the guest has use for, so that what grows fastest, a
single file, ends with an error before the run does.
"""

from __future__ import annotations

import re
import resource
import signal

PROCESS_BYTES_MIN = 32 << 10
"""Memory that a program in a guest takes there at least: its stack in the kernel, page tables, a few pages. So a guest
has no more of them than its memory has room for, each with a process on the host."""

PROCESSES_BESIDE = 256
"""How many processes a guest has beside those of its programs."""

COUNTED_BY_NAMESPACE = (5, 14)
"""From this Linux on RLIMIT_NPROC is about the processes of a user in one user namespace, and so in one jail; before, a
guest would be refused processes because its user has others."""


def processes_max(memory_bytes: int) -> int:
    """How many processes a guest may have on the host, which is more than one in good order can have."""
    return memory_bytes // PROCESS_BYTES_MIN + PROCESSES_BESIDE


def processes(memory_bytes: int, release: str) -> int | None:
    """The same, where the host can count them; None where it cannot.

    Args:
        memory_bytes: What the guest is given.
        release: Of the host's kernel, as in `6.1.0-42-amd64`.
    """
    found = re.match(r"(\d+)\.(\d+)", release)
    counts = found is not None and (int(found[1]), int(found[2])) >= COUNTED_BY_NAMESPACE
    return processes_max(memory_bytes) if counts else None


def set_for_a_guest(file_bytes: int | None) -> None:
    """Sets those of this process, freshly forked, that a jail inherits.

    Args:
        file_bytes: What a file may have; None: what the user may write.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if file_bytes is not None:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        size = file_bytes if most == resource.RLIM_INFINITY else min(file_bytes, most)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        # Else it is not an error for whoever writes, but the end of the kernel.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
