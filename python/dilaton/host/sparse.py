"""Files of which only a part is written, as those of disks: copied, summed up and counted without what is not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 1 << 16
"""What counts as nothing if all of it is 0, whether or not there is room for it on the host's disk."""


def taken_bytes(top: Path) -> int:
    """The room that a file takes on the host's disk, or a directory with all below it; it may change meanwhile."""
    taken = 0
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):
            with contextlib.suppress(FileNotFoundError):
                taken += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return taken + top.lstat().st_blocks * 512


def copy_sparse(source: int, target: int, told: Callable[[int], None] = lambda _: None) -> None:
    """Copies an open file over an empty one; where the file system can, they share what neither changes.

    Args:
        source: Open for reading.
        target: Open for writing.
        told: Learns how many bytes each step has copied.

    Raises:
        OSError: The host cannot read or write it.
    """
    os.truncate(target, max(os.fstat(target).st_size, os.fstat(source).st_size))
    for begin, end in written(source):
        at = begin
        while at < end:
            count = _copy(source, target, min(CHUNK_BYTES, end - at), at)
            if count == 0:
                break
            at += count
            told(count)


def sum_of(path: Path) -> str:
    """SHA-256 of a file's size and of what is not 0 in it, in hexadecimal digits; holes are not read."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        fd = file.fileno()
        found.update(f"{os.fstat(fd).st_size};".encode())
        for begin, end in written(fd):
            # From a multiple on, so that the same contents have the same sum wherever holes are.
            for at in range(begin, end, BLOCK_BYTES):
                block = os.pread(fd, BLOCK_BYTES, at)
                if block.strip(b"\0"):
                    found.update(f"{at};".encode())
                    found.update(block)
    return found.hexdigest()


def written(fd: int) -> Iterator[tuple[int, int]]:
    """Where something was written to an open file, from and to."""
    at, size = 0, os.fstat(fd).st_size
    while at < size:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        # Whole blocks, so that none is met twice.
        end = min(size, -(-os.lseek(fd, begin, os.SEEK_HOLE) // BLOCK_BYTES) * BLOCK_BYTES)
        yield begin - begin % BLOCK_BYTES, end
        at = end


def _copy(source: int, target: int, count: int, at: int) -> int:
    try:
        return os.copy_file_range(source, target, count, at, at)
    except OSError as error:
        # Between some file systems, and from some, the kernel does not do it.
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
    return os.pwrite(target, os.pread(source, count, at), at)
