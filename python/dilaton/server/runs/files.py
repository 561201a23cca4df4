"""Files of a run directory for people elsewhere. Guests write there, so each step to a file is taken without a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

FILES_MAX = 20_000
"""More are not listed."""

DEPTH_MAX = 12

PIECE_BYTES = 1 << 18

PART_BYTES_MAX = 1 << 20
"""How much of a file is answered at once to who follows it."""


def listed(top: Path, most: int | None = FILES_MAX) -> list[tuple[str, int]]:
    """The plain files below a directory, by their paths in it, with their sizes; hidden ones are nobody's.

    At most so many; None: all.
    """
    found: list[tuple[str, int]] = []
    for folder, folders, names, descriptor in os.fwalk(top, follow_symlinks=False):
        inside = Path(folder).relative_to(top)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(inside.parts) >= DEPTH_MAX:
            folders.clear()
        for name in sorted(names):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and not name.startswith(".") and _is_text(name):
                found.append((str(inside / name), status.st_size))
                if len(found) == most:
                    return found
    return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def opened(top: Path, path: str) -> BinaryIO:
    """A plain file below a directory, opened.

    Raises:
        OSError: there is none of that path, or a part of it is a link.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.startswith(".") or "\0" in part for part in parts):
        raise FileNotFoundError(path)
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        # Without blocking, should it be a pipe.
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileNotFoundError(path)
    return open(file, "rb")


def part(file: BinaryIO, start: int, count: int) -> bytes:
    """At most `count` bytes of a file from byte `start` on; where that is negative, from so many before its end."""
    with file:
        begin = start if start >= 0 else max(0, os.fstat(file.fileno()).st_size + start)
        return os.pread(file.fileno(), count, begin)


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """A file as it was when its size was read, piece by piece; who asks for it closes it."""
    left = os.fstat(file.fileno()).st_size
    while left and (piece := file.read(min(left, PIECE_BYTES))):
        left -= len(piece)
        yield piece
