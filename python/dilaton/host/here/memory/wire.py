"""The host's side of the wire: the memory by which the guests of a run send each other frames in virtual time.

The layout is in `crates/wire/wire.def`, which the clock library is built from too. The host lays it out, says when the
guests are bound by each other, and reads what happened; it is no part of the run.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from dilaton.host.counters import Traffic, Waits, Wires
from dilaton.host.files import WIRE_DEFINITION
from dilaton.host.here.memory.layout import MAGIC, WORD, Layout, parse_layout
from dilaton.host.orders import NEVER_NS

CACHE_LINE_BYTES = 64
VARIABLE = "DILATON_WIRE"
"""The environment variable by which a guest gets the memory: the number of its descriptor, a comma, its own number."""

RING_BYTES_MIN = 1 << 18
"""Room for some of the longest frames, 64 KiB and headers."""

SPIN_NS = 20_000
"""How long a guest looks for others to go on before it sleeps, where each has its own core: waking takes as long."""

RUNNING, WAITING, STOPPED, LEFT, AWAY = 0, 1, 2, 3, 4
"""States of members, by their numbers in the memory."""

WAITS_COUNTERS = ("windows", "waits", "waited_host_ns", "agreements", "wakes")
"""The counters of waits, in the order of `Waits`."""

TRAFFIC_COUNTERS = (
    "frames_sent",
    "bytes_sent",
    "frames_not_sent",
    "frames_received",
    "bytes_received",
    "frames_not_received",
    "frames_late",
    "frames_disordered",
)
"""The counters of traffic, in the order of `Traffic`, which has the bytes under way behind them, and its ends
before."""


@cache
def layout() -> Layout:
    """The layout that this Dilaton was built with."""
    return parse_layout(WIRE_DEFINITION.read_text())


@dataclass(frozen=True)
class Share:
    """What one of several machines has of a run.

    Attributes:
        home: The machine's number.
        homes: The machine of each guest.
        fd: The memory of its wires: an empty file in memory, which whoever carries messages has open too.
    """

    home: int
    homes: Sequence[int]
    fd: int

    @property
    def numbers(self) -> list[int]:
        """The guests on it."""
        return [number for number, home in enumerate(self.homes) if home == self.home]


@dataclass(frozen=True)
class Way:
    """One direction of a wire.

    Attributes:
        sender: number of the guest that sends.
        receiver: of the one that receives; another one.
        delay_ns: from sending to arrival, above 0.
        ring_bytes: room for what is under way, at least that of the longest frame.

    Raises:
        ValueError: a value that is none of these.
    """

    sender: int
    receiver: int
    delay_ns: int
    ring_bytes: int

    def __post_init__(self) -> None:
        """Checks the values."""
        if self.sender == self.receiver:
            raise ValueError(f"guest {self.sender}: a wire is between two guests")
        if not 0 < self.delay_ns < NEVER_NS:
            raise ValueError(f"{self.delay_ns} ns: the delay of a wire between guests is above 0")
        if self.ring_bytes < RING_BYTES_MIN:
            raise ValueError(f"{self.ring_bytes} bytes: the ring of a wire has at least {RING_BYTES_MIN}")


class Wire:
    """The shared memory of a run. Create one per run; every guest inherits `fd`.

    The ways of a wire that a guest finds as `wireL` are 2 L, from its first end to its second, and 2 L + 1, back.
    """

    def __init__(self, guests: int, ways: Sequence[Way], spin_ns: int = 0, share: Share | None = None) -> None:
        """Lays it out.

        Args:
            guests: how many there are.
            ways: two for each wire, there and back, one wire after the other.
            spin_ns: how long a guest looks before it sleeps, host nanoseconds; 0 where guests share cores.
            share: what this machine has of the run; None: all of it.
        """
        self._sections = layout().sections
        self.guests, self.ways = guests, tuple(ways)
        self._is_whole = share is None
        self._members_at = _aligned(self._sections["header"].words * WORD.size)
        self._distances_at = self._members_at + guests * self._sections["member"].words * WORD.size
        self._ways_at = _aligned(self._distances_at + guests * guests * WORD.size)
        rings_at = self._ways_at + len(self.ways) * self._sections["way"].words * WORD.size
        offsets = [rings_at]
        for way in self.ways:
            offsets.append(_aligned(offsets[-1] + way.ring_bytes))
        self.fd = os.memfd_create("dilaton-wire") if share is None else os.dup(share.fd)
        try:
            os.ftruncate(self.fd, offsets[-1])
            # The rings are not the host's business.
            self._memory = mmap.mmap(self.fd, rings_at)
        except OSError:
            os.close(self.fd)
            raise
        for member in range(guests):
            self._write("member", member, "zero_ns", NEVER_NS)
            self._write("member", member, "stand_ns", NEVER_NS)
        for number, distance in enumerate(distances_ns(guests, self.ways)):
            WORD.pack_into(self._memory, self._distances_at + number * WORD.size, distance)
        for number, (way, begin, end) in enumerate(zip(self.ways, offsets, offsets[1:], strict=False)):
            values = (way.sender, way.receiver, way.delay_ns, begin, end - begin)
            names = ("sender", "receiver", "delay_ns", "ring_offset", "ring_bytes")
            for name, value in zip(names, values, strict=True):
                self._write("way", number, name, value)
        header = {"wire_version": layout().version, "guests": guests, "ways": len(self.ways), "spin_ns": spin_ns}
        if share is not None:
            header |= {"home": share.home, "machines": len(set(share.homes))}
            for member, home in enumerate(share.homes):
                self._write("member", member, "home", home)
        for name, value in header.items():
            self._write("header", 0, name, value)
        self._write("header", 0, "magic", MAGIC)

        self._laid_out = self._written_by_the_host()

    def close(self) -> None:
        """Gives up the memory; guests keep their own."""
        self._memory.close()
        os.close(self.fd)

    def variable(self, guest: int) -> str:
        """What a guest is told in `VARIABLE`."""
        return f"{self.fd},{guest}"

    def begin(self, zeros_ns: Mapping[int, int]) -> None:
        """Binds the guests by each other, from the next command that their clocks take over; all clocks are held.

        Args:
            zeros_ns: the CLOCK_MONOTONIC of each guest of this machine at the run's virtual 0.
        """
        for member, zero_ns in zeros_ns.items():
            self._write("member", member, "zero_ns", zero_ns)
        self._write("header", 0, "begun", 1)
        self._laid_out = self._written_by_the_host()

    def is_away(self, member: int) -> bool:
        """Whether the kernel of a guest of this machine has left the run to another one, for which the others wait."""
        return self._read("member", member, "state") == AWAY

    def go_on(self, member: int, zero_ns: int) -> None:
        """Lets another kernel take part, from the next command that its clock takes over; that is held.

        Args:
            member: The guest, which is away.
            zero_ns: What its CLOCK_MONOTONIC would have read at the run's virtual 0; below 0 where it began later.
        """
        self._write("member", member, "zero_ns", zero_ns % 2**64)
        self._laid_out = self._written_by_the_host()
        self._write("member", member, "state", RUNNING)

    def counted(self) -> Wires:
        """What the ways have carried so far, and what the guests have spent on agreeing with each other."""
        waits = [Waits(*[self._read("member", guest, name) for name in WAITS_COUNTERS]) for guest in range(self.guests)]
        return Wires([self._traffic(number) for number in range(len(self.ways))], waits)

    def _traffic(self, number: int) -> Traffic:
        way = self.ways[number]
        counters = [self._read("way", number, name) for name in TRAFFIC_COUNTERS]
        counters.append(self._read("way", number, "head") - self._read("way", number, "tail"))
        return Traffic(way.sender, way.receiver, *counters)

    def full_way(self) -> int | None:
        """The way whose ring was full, upon which its sender has ended itself; None if none was."""
        full = self._read("header", 0, "full_way")
        return full - 1 if 0 < full <= len(self.ways) else None

    def is_overwritten(self) -> bool:
        """Whether it holds what no clock writes: what the host has laid out is another, or a state is none."""
        states = (self._read("member", guest, "state") for guest in range(self.guests))
        return any(state > AWAY for state in states) or self._written_by_the_host() != self._laid_out

    def standstill(self) -> tuple[int, ...] | None:
        """What says that now no guest can go on but who holds the lock; None: one can, or nothing is left to do.

        A clock holds the lock for microseconds, and of guests that wait for others the one that is furthest behind may
        always go on. So if this stays the same while no kernel is at work, it stays so for ever. Guests elsewhere may
        be at work, so that of a share only the lock counts.
        """
        lock = self._read("header", 0, "lock")
        states, nexts_ns, agreements = (
            tuple(self._read("member", guest, name) for guest in range(self.guests))
            for name in ("state", "next_ns", "agreements")
        )
        still_in = [number for number, state in enumerate(states) if state != LEFT]
        all_wait = bool(still_in) and all(states[number] in (WAITING, STOPPED) for number in still_in)
        if not lock and not (self._is_whole and all_wait and min(nexts_ns[number] for number in still_in) < NEVER_NS):
            return None
        return (lock, *states, *nexts_ns, *agreements)

    def _written_by_the_host(self) -> bytes:
        """What only the host writes, and nobody after `begin`."""
        way_words = self._sections["way"].words * WORD.size
        own_words = self._sections["way"].offsets["head"] * WORD.size
        ends = [self._ways_at + number * way_words for number in range(len(self.ways))]
        return b"".join(
            [
                self._memory[: self._place("header", 0, "lock")],
                *(WORD.pack(self._read("member", guest, "zero_ns")) for guest in range(self.guests)),
                self._memory[self._distances_at : self._distances_at + self.guests**2 * WORD.size],
                *(self._memory[begin : begin + own_words] for begin in ends),
            ]
        )

    def _place(self, section: str, number: int, field: str) -> int:
        begin = {"header": 0, "member": self._members_at, "way": self._ways_at}[section]
        shape = self._sections[section]
        return begin + (number * shape.words + shape.offsets[field]) * WORD.size

    def _read(self, section: str, number: int, field: str) -> int:
        value: int = WORD.unpack_from(self._memory, self._place(section, number, field))[0]
        return value

    def _write(self, section: str, number: int, field: str, value: int) -> None:
        WORD.pack_into(self._memory, self._place(section, number, field), value)


def distances_ns(guests: int, ways: Sequence[Way]) -> list[int]:
    """The least delay from each guest to each, over one way or more, row by row; `NEVER_NS` where there is none.

    By Floyd and Warshall's algorithm; the diagonal holds the shortest way there and back.
    """
    least = [[NEVER_NS] * guests for _ in range(guests)]
    for way in ways:
        least[way.sender][way.receiver] = min(least[way.sender][way.receiver], way.delay_ns)
    for over in range(guests):
        beyond = least[over]
        for row in least:
            first = row[over]
            if first < NEVER_NS:
                row[:] = [min(known, first + more) for known, more in zip(row, beyond, strict=True)]
    return [distance for row in least for distance in row]


def _aligned(size: int) -> int:
    return -(-size // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
