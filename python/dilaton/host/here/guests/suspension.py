"""A guest that is put away: stopped on this machine, its memory in a file on disk, its core free for others.

Its clock is held before, so virtual time does not notice. What is left to do is to have nothing of the guest touch its
memory while that is elsewhere: the kernel is stopped by SIGSTOP, and its processes are looked at until none is at work.
Those that the kernel traces stand whenever it runs itself, and so do most when it is stopped. One that computes without
end, which the work and wall drives let do so at one instant, is stopped as the clock stops it whenever somebody orders
something: by SIGALRM, of which its kernel hears when it goes on, and which tells it nothing. On the event drive a stop
would be a step, and change what comes; but there a clock is held only where its kernel idles.

**Why a file of our own, and not swap.** A guest's memory is one file in the jail's /dev/shm, which the kernel and its
processes map. The host's kernel would swap it out if told to (MADV_PAGEOUT), where there is swap and as far as it
likes; many machines and most containers have none. A copy, and then a hole in the place of all of it, take the memory
away for certain, and for every process at once. The copy has no name: whatever is killed, nothing is left of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
from pathlib import Path

from dilaton.host.errors import GuestError
from dilaton.host.here.guests.cores import Core
from dilaton.host.here.guests.kernel import Placement
from dilaton.host.processes import below, is_at_work, is_stopped
from dilaton.host.sparse import copy_sparse

LOOK_HOST_S = 0.002

QUIET_LOOKS = 3
"""Looks in a row that find nothing at work, after which nothing is: nobody is left who would wake it."""

PATIENCE_LOOKS = 50
"""Looks after which a process that is still at work is taken to compute without end."""

LOOKS_MAX = 5000

MEMORY = "/dev/shm/"  # noqa: S108 - of the jail
"""Where the file with the memory is, which has no name: no other file is there but what is smaller by far."""

FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
"""fallocate(2)"""

ROOM_BYTES_LEFT = 64 << 20
"""What a disk is to have left when a guest's memory is on it."""

_LIBC = ctypes.CDLL(None, use_errno=True)


class Suspension:
    """Whether a guest is put away, and where its memory is then."""

    def __init__(self) -> None:
        """Not yet."""
        self.is_on = False
        """Whether its kernel is stopped by us, or is being stopped."""
        self._kernel = 0
        self._files = contextlib.ExitStack()
        """The file with the memory, which has a hole instead, and that on disk which has it meanwhile."""
        self._memory = self._copy = -1

    async def begin(self, kernel: int, placement: Placement, *, may_interrupt: bool) -> int:
        """Puts a guest away whose clock is held; returns the bytes of its memory.

        Args:
            kernel: The process of its kernel.
            placement: Where it runs; the disk of its run directory gets its memory.
            may_interrupt: Whether a program that computes without end may be stopped; not on the event drive.

        Raises:
            GuestError: It cannot be put away, and goes on as it was.
            OSError: The disk cannot be written, and the guest goes on as it was.
        """
        directory = placement.run_dir
        assert directory is not None, "a run has a directory"
        self._kernel, self.is_on = kernel, True
        try:
            os.kill(kernel, signal.SIGSTOP)
            await _rest(kernel, may_interrupt=may_interrupt)
            self._memory = self._opened(_memory_of(kernel), os.O_RDWR)
            written = os.fstat(self._memory).st_blocks * 512
            _check_room(directory, written)
            self._copy = self._opened(directory, os.O_TMPFILE | os.O_RDWR)
            await asyncio.to_thread(copy_sparse, self._memory, self._copy)
            _punch(self._memory)
        except BaseException:
            self._go_on()
            raise
        return written

    async def end(self, core: Core) -> bool:
        """Brings the memory back, and lets the guest go on, on this core; one that is not put away has no use for it.

        Returns:
            Whether the guest has the core now.

        Raises:
            OSError: The memory cannot be brought back; the guest stays stopped, and is lost.
        """
        if not self.is_on:
            core.free()
            return False
        await asyncio.to_thread(copy_sparse, self._copy, self._memory)
        for pid in (self._kernel, *below(self._kernel)):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(pid, {core.number})
        self._go_on()
        return True

    def _opened(self, path: Path, flags: int) -> int:
        file = os.open(path, flags | os.O_CLOEXEC, 0o600)
        self._files.callback(os.close, file)
        return file

    def _go_on(self) -> None:
        self.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._kernel, signal.SIGCONT)
        self.is_on = False

    def close(self) -> None:
        """Lets go of the files."""
        self._files.close()


def _check_room(directory: Path, wanted_bytes: int) -> None:
    free = shutil.disk_usage(directory).free - ROOM_BYTES_LEFT
    if wanted_bytes > free:
        raise GuestError(
            f"a guest has {wanted_bytes >> 20} MiB of memory to put away, and the disk of {directory} has room for "
            f"{max(0, free) >> 20} MiB"
        )


async def _rest(kernel: int, *, may_interrupt: bool) -> None:
    """Waits until nothing of a guest touches its memory any more, whose kernel is being stopped."""
    quiet = 0
    for look in range(LOOKS_MAX):
        working = [pid for pid in below(kernel) if is_at_work(pid)]
        quiet = quiet + 1 if is_stopped(kernel) and not working else 0
        if quiet == QUIET_LOOKS:
            return
        if may_interrupt and look >= PATIENCE_LOOKS:
            for pid in working:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGALRM)
        await asyncio.sleep(LOOK_HOST_S)
    raise GuestError("a program of a guest computes without end, and cannot be stopped at this instant")


def _memory_of(kernel: int) -> Path:
    """Where the file with the memory of a guest can be opened."""
    files = Path(f"/proc/{kernel}/fd")
    found = list[Path]()
    for name in os.listdir(files):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(files / name).startswith(MEMORY):
                found.append(files / name)
    if not found:
        raise GuestError("the file with the memory of a guest is not found")
    return max(found, key=lambda file: file.stat().st_size)


def _punch(file: int) -> None:
    """Takes all room from a file, which keeps its size."""
    size = ctypes.c_long(os.fstat(file).st_size)
    if _LIBC.fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, ctypes.c_long(0), size) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
