"""The host's side of the clock page: the shared memory by which a guest's clock is commanded and observed.

The layout is in `crates/clock/clock-page.def`, which the clock library is built from too.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal, get_args

from dilaton.host.errors import GuestError
from dilaton.host.files import CLOCK_PAGE_DEFINITION

MAGIC = int.from_bytes(b"DILATON\0", "little")
WORD = struct.Struct("=Q")
SEQUENCE_TRIES = 1000
LATENESS_BINS = 64

Drive = Literal["wall", "work"]
DRIVES: tuple[Drive, ...] = get_args(Drive)
"""By their numbers in the page."""


@dataclass(frozen=True)
class Layout:
    """Offsets of the page's fields, in words of 64 bits."""

    version: int
    offsets: dict[str, int]
    words: int


def parse_layout(definition: str) -> Layout:
    """Reads the text of `clock-page.def`."""
    version, offsets, words = 0, dict[str, int](), 0
    for line in map(str.strip, definition.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("version "):
            version = int(line.removeprefix("version "))
            continue
        name, _, count = line.removesuffix("]").partition("[")
        offsets[name] = words
        words += int(count) if count else 1
    return Layout(version, offsets, words)


@cache
def layout() -> Layout:
    """The layout that this Dilaton was built with."""
    return parse_layout(CLOCK_PAGE_DEFINITION.read_text())


@dataclass(frozen=True)
class Timeline:
    """A straight piece of the mapping from drive to virtual time; `crates/virtual-time/src/timeline.rs` explains it.

    `tdf` is None while the clock is held. Instants in nanoseconds; `fraction` in 2^-64 ns.
    """

    drive: Drive
    drive_ns: int
    virtual_ns: int
    fraction: int
    tdf: Fraction | None

    def virtual_at(self, drive_ns: int) -> int:
        """The virtual instant at `drive_ns`; on the wall drive that is the host's monotonic clock."""
        if self.tdf is None:
            return self.virtual_ns
        elapsed = max(0, drive_ns - self.drive_ns)
        numerator, denominator = self.tdf.as_integer_ratio()
        exact = ((elapsed * denominator) << 64) // numerator + self.fraction
        return self.virtual_ns + (exact >> 64)


class ClockPage:
    """A clock page and its wake pipe. Create one per guest; the guest inherits `fd` and `wake_fd`."""

    def __init__(self, realtime_base_ns: int) -> None:
        """Makes a page whose guest has the date `realtime_base_ns` (CLOCK_REALTIME) at virtual instant 0."""
        self._layout = layout()
        size = self._layout.words * WORD.size
        self.fd = os.memfd_create("dilaton-clock")
        os.ftruncate(self.fd, size)
        self._memory = mmap.mmap(self.fd, size)
        self._wake, guest_end = socket.socketpair()
        self._wake.setblocking(False)
        self.wake_fd = guest_end.detach()
        self._write("page_version", self._layout.version)
        self._write("realtime_base_ns", realtime_base_ns)
        self._write("magic", MAGIC)

    def close(self) -> None:
        """Gives up memory and pipe; a guest keeps its own."""
        self._memory.close()
        self._wake.close()
        self.close_guest_side()

    def close_guest_side(self) -> None:
        """Closes what only the guest needs, once it has inherited it."""
        for name in ("fd", "wake_fd"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)

    def command(self, tdf: Fraction | None, drive: Drive = "wall") -> int:
        """Commands a pace, None to hold, and what drives it; returns the command's sequence number."""
        sequence = self.read("command_sequence")
        self._write("command_sequence", sequence + 1)
        self._write("command_drive", DRIVES.index(drive))
        if tdf is None:
            self._write("command_running", 0)
        else:
            self._write("command_tdf_numerator", tdf.numerator)
            self._write("command_tdf_denominator", tdf.denominator)
            self._write("command_running", 1)
        self._write("command_sequence", sequence + 2)
        try:
            self._wake.send(b"!")
        except BlockingIOError:
            pass  # the pipe is full of wakes that the guest has not read: it will wake
        except BrokenPipeError:
            pass  # the guest is gone, and whoever waits for its answer sees that
        return sequence + 2

    def applied(self, sequence: int) -> bool:
        """Whether the clock has taken over that command."""
        return self.read("applied_sequence") == sequence

    def timeline(self) -> Timeline:
        """The clock's present line.

        Raises:
            GuestError: the guest died while it wrote it.
        """
        for _ in range(SEQUENCE_TRIES):
            before = self.read("timeline_sequence")
            tdf = None
            if self.read("timeline_running"):
                tdf = Fraction(self.read("timeline_tdf_numerator"), self.read("timeline_tdf_denominator") or 1)
            line = Timeline(
                DRIVES[self.read("timeline_work")],
                self.read("timeline_drive_ns"),
                self.read("timeline_virtual_ns"),
                self.read("timeline_fraction"),
                tdf,
            )
            if before % 2 == 0 and self.read("timeline_sequence") == before:
                return line
        raise GuestError("the clock page stays half-written: its guest died while it changed the pace")

    def virtual_ns(self, host_ns: int) -> int:
        """The virtual instant at `host_ns` of the host's monotonic clock; on the work drive, the latest known."""
        line = self.timeline()
        latest = self.read("virtual_now_ns")
        return max(latest, line.virtual_at(host_ns)) if line.drive == "wall" else max(latest, line.virtual_ns)

    def lateness_counts(self) -> list[int]:
        """Timers served since the last release, by lateness: the histogram that `clock-page.def` describes."""
        return [self.read("lateness_ns_log2", number) for number in range(LATENESS_BINS)]

    def read(self, field: str, index: int = 0) -> int:
        """A field of the page, as `clock-page.def` names it."""
        value: int = WORD.unpack_from(self._memory, (self._layout.offsets[field] + index) * WORD.size)[0]
        return value

    def _write(self, field: str, value: int) -> None:
        WORD.pack_into(self._memory, self._layout.offsets[field] * WORD.size, value)
