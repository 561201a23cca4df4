"""What a guest's kernel prints: a file of the run, or, where a run leaves nothing, memory that holds the end of it."""

from __future__ import annotations

import asyncio
import ctypes
import os
from typing import IO

CONSOLE_BYTES = 1 << 20
"""How much of the end of a console is searched for why a guest has ended."""

MEMORY_BYTES_MAX = 8 << 20
"""How much a console in memory holds between two looks. A guest cannot be refused to write: who writes to a console
that takes nothing waits for ever."""

LOOK_HOST_S = 0.1

FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 0x01, 0x02
"""fallocate(2)"""

_LIBC = ctypes.CDLL(None, use_errno=True)


async def forget_old(log: IO[bytes]) -> None:
    """Frees memory of a console for as long as its guest writes to it; goes on until it is cancelled."""
    while True:
        await asyncio.sleep(LOOK_HOST_S)
        shorten(log)


def shorten(log: IO[bytes]) -> None:
    """Frees the memory of all but the end of a console, if it has become long; its size stays.

    Raises:
        OSError: It cannot be freed.
    """
    status = os.fstat(log.fileno())
    if status.st_blocks * 512 <= MEMORY_BYTES_MAX:
        return
    mode, length = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, ctypes.c_long(status.st_size - CONSOLE_BYTES)
    if _LIBC.fallocate(log.fileno(), mode, ctypes.c_long(0), length):
        raise OSError(ctypes.get_errno(), "a console cannot be shortened")


def last_words(log: IO[bytes]) -> str:
    """The line of a console that says most about why a kernel did not start."""
    lines = _lines(log)
    telling = [line for line in lines if line.startswith(("bwrap:", "dilaton clock:", "dilaton warden:"))]
    return panic(log) or (telling or lines or ["it said nothing"])[-1]


def panic(log: IO[bytes]) -> str:
    """The line of a console in which a kernel, its warden or its clock says why it ended; empty where none did.

    A warden that ends a guest ends its programs, too, of which the clock may tell first.
    """
    lines = _lines(log)
    telling = ("Kernel panic", "dilaton warden: the guest was ended", "dilaton clock: ")
    return next((line for words in telling for line in lines if words in line), "")


def _lines(log: IO[bytes]) -> list[str]:
    # Opened anew: the position of `log` is the kernel's. A guest may have written any amount.
    with open(f"/proc/self/fd/{log.fileno()}", "rb") as console:
        console.seek(max(0, os.fstat(log.fileno()).st_size - CONSOLE_BYTES))
        text = console.read(CONSOLE_BYTES).decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
