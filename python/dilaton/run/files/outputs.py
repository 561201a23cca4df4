"""Reads what processes left in the run directory.

Whoever is root in a guest decides what is there: anything but a plain file within bounds is left alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

OUTPUT_BYTES_MAX = 256 << 20
"""How much of one output is read. An hour of iperf3 with 16 flows is a tenth of it."""


def read_output(path: Path) -> str:
    """The text of an output, with what is not UTF-8 replaced; empty when there is no plain file."""
    return read_output_bytes(path).decode(errors="replace")


def read_output_bytes(path: Path) -> bytes:
    """The bytes of an output; none when there is no plain file."""
    return _read(path)


def read_tail(path: Path, count: int) -> bytes:
    """The last `count` bytes of a file, or all of it; empty when there is no plain file."""
    return _read(path, lambda size: max(0, size - count))


def read_behind(path: Path, position: int, count: int) -> bytes:
    """Up to `count` bytes of a file from `position` on; empty when it ends there, or is no plain file."""
    return _read(path, lambda _: position, count)


def read_head(path: Path, count: int) -> bytes:
    """The first `count` bytes of a file, or all of it; empty when there is no plain file."""
    return _read(path, count_max=count)


def _read(path: Path, position: Callable[[int], int] = lambda _: 0, count_max: int = OUTPUT_BYTES_MAX) -> bytes:
    """Up to `count_max` bytes from the `position` that follows from the file's size."""
    try:
        # Without blocking, should it be a pipe, and without leaving the run directory, should it be a link.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return b""
    with open(descriptor, "rb") as file:
        file.seek(position(status.st_size))
        return file.read(count_max)
