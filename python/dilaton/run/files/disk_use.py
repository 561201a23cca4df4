"""How much disk a run takes: a program that prints for ever, or a capture of everything, ends its run, not the disk.

What a guest writes is looked at from here, since a guest's root may write to the run directory by itself. So a limit
can be exceeded by what is written between two looks.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dilaton.host.errors import GuestError

LOOK_HOST_S = 0.5

LOOKING_PART = 0.01
"""The share of host time that may be spent with looking, where there are very many files."""

FILE_BYTES_MIN = 4096
"""What a file counts as at least: one without contents takes room too."""


def limit_of(directory: Path) -> int:
    """What a run may take of the disk if nobody says otherwise: half of what is free there."""
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize // 2


async def keep_below(limit_bytes: int, directory: Path) -> None:
    """Goes on for as long as all files below a run directory take no more than the limit.

    Raises:
        GuestError: They do, or cannot be looked at.
    """
    while True:
        begin = time.monotonic()
        try:
            await asyncio.to_thread(check, limit_bytes, directory)
        except OSError as error:
            raise GuestError(f"it cannot be told how much disk the run takes: {error}") from error
        await asyncio.sleep(max(LOOK_HOST_S, (time.monotonic() - begin) / LOOKING_PART))


def check(limit_bytes: int, directory: Path) -> None:
    """Looks once.

    Raises:
        GuestError: The files take more than the limit.
        OSError: They cannot be looked at.
    """
    taken_bytes, largest = 0, (0, "")
    for path, size_bytes in _files(directory):
        taken_bytes += size_bytes
        largest = max(largest, (size_bytes, path))
        if taken_bytes > limit_bytes:
            name = os.path.relpath(largest[1], directory)
            raise GuestError(
                f"the run was ended since it took more than {_shown(limit_bytes)} of the disk, "
                f"{_shown(largest[0])} of it for {name}; --max-disk allows more"
            )


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    """All files and directories below a directory, with the room that they take; links are not followed."""
    left = [str(directory)]
    while left:
        try:
            entries = os.scandir(left.pop())
        except FileNotFoundError:
            continue
        with entries:
            for entry in entries:
                try:
                    taken_bytes = entry.stat(follow_symlinks=False).st_blocks * 512
                except FileNotFoundError:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                yield entry.path, max(taken_bytes, FILE_BYTES_MIN)


def _shown(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB" if size_bytes >= 1 << 30 else f"{size_bytes / (1 << 20):.1f} MiB"
