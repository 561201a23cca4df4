"""The programs that images take: how they are started, so that they end with us, and how their output is read."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from dilaton.host import files
from dilaton.images.store import ImageError

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
"""prctl(2)"""

WATCH_S = 0.2
"""How often somebody looks at what a program has written."""
SAID_BYTES_MAX = 1 << 20
"""What a program may say of what is wrong: one that goes on saying so is ended."""
GZIP_MAGIC, XZ_MAGIC, BZIP2_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd"


def settle(bytes_max: int | None = None) -> None:
    """Has a program, freshly forked, end with its parent, and write no larger file than that."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if bytes_max is not None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        most = bytes_max if hard == resource.RLIM_INFINITY else min(bytes_max, hard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


@contextlib.contextmanager
def output_of(argv: list[str], file: BinaryIO | None) -> Iterator[BinaryIO]:
    """What a program makes of a file.

    Raises:
        ImageError: It fails.
    """
    if file is not None:
        # The program goes on where its descriptor is, and that has been read ahead by as much as Python has in memory.
        os.lseek(file.fileno(), file.tell(), os.SEEK_SET)
    # A file, since a pipe that nobody reads meanwhile would let a program wait that says much.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            argv,
            stdin=file or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            preexec_fn=lambda: settle(SAID_BYTES_MAX),
        )
        assert process.stdout is not None
        try:
            yield process.stdout  # type: ignore[misc]
            process.stdout.close()
            if process.wait() != 0:
                said.seek(0)
                lines = said.read().decode(errors="replace").strip().splitlines()
                raise ImageError(lines[-1] if lines else f"{argv[0]} ended with status {process.returncode}")
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()


def begin_of(file: BinaryIO) -> bytes:
    """The first bytes of a file, which stays at its beginning."""
    begin = file.read(8)
    file.seek(0)
    return begin


def packing(file: BinaryIO) -> str:
    """The program that an archive was packed with, as it begins: what is said of a layer by its kind need not be so."""
    packed = {GZIP_MAGIC: "gzip", XZ_MAGIC: "xz", BZIP2_MAGIC: "bzip2", ZSTD_MAGIC: "zstd"}
    begin = begin_of(file)
    return next((name for magic, name in packed.items() if begin.startswith(magic)), "")


@contextlib.contextmanager
def uncompressed(file: BinaryIO, how: str) -> Iterator[BinaryIO]:
    """What a file is unpacked, by a program or by none.

    Raises:
        ImageError: The program fails.
        HostLacksError: This machine lacks it.
    """
    if how == "gzip":
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream  # type: ignore[misc]
    elif how:
        with output_of([str(files.program(how, how)), "-dc"], file) as stream:
            yield stream
    else:
        yield file
