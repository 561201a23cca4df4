"""What guests have written, on its way from their machine into the run directory: an archive in parts.

Neither side ever holds more than a part in memory. What guests write is theirs: there are pipes among it, devices, and
links to anywhere. On one machine all that stays where it is. From another one only what cannot mean anything else here
is taken, which are files, directories and links within; of the rest it is said what was left out.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from dilaton.host.port import LEFT_OUT_FILE

PART_BYTES = 1 << 16
"""So much may be ahead of what guests have to say to each other."""

REMOVALS, REMOVAL_PAUSE_HOST_S = 20, 0.1
"""How often it is tried to remove a directory into which guests that are ending still write."""


class _Parts(io.RawIOBase):
    """A file whose contents are handed on."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send

    def writable(self) -> bool:
        return True

    def write(self, contents) -> int:  # type: ignore[no-untyped-def] # whatever has a buffer
        self._send(bytes(contents))
        return len(contents)


def pack(paths: Iterable[Path], send: Callable[[bytes], None]) -> None:
    """Hands an archive of files and directories to `send`, part by part; each is at the archive's root."""
    with tarfile.open(fileobj=_Parts(send), mode="w|", bufsize=PART_BYTES) as tar:
        for path in paths:
            tar.add(path, path.name)


def unpack(contents: IO[bytes], directory: Path) -> list[str]:
    """Puts what is in an archive into a directory, below which it stays.

    Returns:
        What was left out, and why.

    Raises:
        OSError: The directory takes no more.
        tarfile.TarError: It is no archive, or not all of it.
    """
    left_out = []
    given = {LEFT_OUT_FILE, *(path.name for path in directory.iterdir() if not path.is_dir())}
    with tarfile.open(fileobj=contents, mode="r|") as tar:
        for member in tar:
            # A name may have line ends in it.
            name = member.name if member.name.isprintable() else ascii(member.name)
            if member.name.split("/")[0] in given:
                left_out.append(f"{name}: the run has a file of that name")
                continue
            try:
                tar.extract(member, directory, filter="data")
            except (tarfile.FilterError, KeyError) as error:
                left_out.append(f"{name}: {str(error).replace(member.name, name)}")
    return left_out


async def remove(directory: str | os.PathLike[str]) -> None:
    """Removes a directory, in spite of who still writes into it and is about to end."""
    for _ in range(REMOVALS):
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        if not os.path.lexists(directory):
            return
        await asyncio.sleep(REMOVAL_PAUSE_HOST_S)
