"""The host's side of the clock page: the shared memory by which a guest's clock is commanded and observed.

The layout is in `crates/clock/clock-page.def`, which the clock library is built from too.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from dilaton.host.counters import BINS, Begin, Busy, Contention, Counters, Lack, Late, Shares, Stretch
from dilaton.host.errors import GuestError
from dilaton.host.files import CLOCK_PAGE_DEFINITION
from dilaton.host.here.memory.layout import MAGIC, WORD, Layout, parse_layout
from dilaton.host.orders import DRIVES, NEVER_NS, Drive, Orders

SEQUENCE_TRIES = 1000
SEQUENCE_PAUSE_HOST_S = 0.001
"""Between tries to read what a guest is about to write: it may have lost its core while it wrote."""

HISTOGRAMS = (
    "lateness_ns_log2",
    "frame_lateness_ns_log2",
    "busy_ns_log2",
    "busy_total_ns_log2",
    "busy_interrupts_log2",
    "idle_total_ns_log2",
    "contended_ns_log2",
    "contended_total_ns_log2",
    "contended_interrupts_log2",
    "jobs_ns_log2",
)
"""The counters of the page."""

LONGEST = 16
"""How many of the longest stretches in which programs waited it keeps, and of the longest waits of those that talk."""

BEGINS = 64
"""Of so many programs it has when they began to talk."""

SHARES = ("nodes_work_ns", "other_work_ns", "nodes_busy_ns", "nodes_lost_ns")
"""The counters of shares on the page, in the order of `Shares`."""

OWN_COUNTER = "DILATON_OWN_COUNTER"
OWN_COUNTER_WISHES = ("measure", "keep", "give-up")
"""What that variable may say, by the numbers in the page: whether guests give up their own time-stamp counter while
programs run; the first, which is what holds without it, lets them measure whether that pays."""


@cache
def layout() -> Layout:
    """The layout that this Dilaton was built with."""
    return parse_layout(CLOCK_PAGE_DEFINITION.read_text())


TIMELINE = ("drive", "running", "tdf_numerator", "tdf_denominator", "drive_ns", "virtual_ns", "fraction", "end_ns")
"""The words of the present line, in the order of the arguments of `_timeline`."""


@dataclass(frozen=True)
class Timeline:
    """A straight piece of the mapping from drive to virtual time; `crates/virtual-time/src/timeline.rs` explains it.

    `tdf` is None while the clock is held. Instants in nanoseconds; `fraction` in 2^-64 ns; the clock stops at `end_ns`.
    """

    drive: Drive
    drive_ns: int
    virtual_ns: int
    fraction: int
    tdf: Fraction | None
    end_ns: int = NEVER_NS

    def virtual_at(self, drive_ns: int) -> int:
        """The virtual instant at `drive_ns`; on the wall drive that is the host's monotonic clock."""
        if self.tdf is None:
            return min(self.virtual_ns, self.end_ns)
        elapsed = max(0, drive_ns - self.drive_ns)
        numerator, denominator = self.tdf.as_integer_ratio()
        exact = ((elapsed * denominator) << 64) // numerator + self.fraction
        return min(self.virtual_ns + (exact >> 64), self.end_ns)


def _timeline(
    drive: int,
    running: int,
    numerator: int,
    denominator: int,
    drive_ns: int,
    virtual_ns: int,
    fraction: int,
    end_ns: int,
) -> Timeline:
    """What these words say.

    Raises:
        GuestError: Something that no clock writes.
    """
    if drive >= len(DRIVES) or (running and not (numerator and denominator)):
        raise GuestError(
            "the clock page holds what no clock writes there, so a program took over the kernel of its guest; "
            "or this is a fault of Dilaton's"
        )
    tdf = Fraction(numerator, denominator) if running else None
    return Timeline(DRIVES[drive], drive_ns, virtual_ns, fraction, tdf, end_ns)


class ClockPage:
    """A clock page, its wake pipe and the guest's life line. Create one per guest, which inherits `guest_fds`.

    The life line is a pipe into which nobody writes. When this end of it is closed, by `end_guest` or as this process
    ends, for whatever reason, the guest's kernel is killed, or ends as soon as it starts.
    """

    def __init__(self, realtime_base_ns: int, seed: int | None = None, clock_rate: Fraction = Fraction(1)) -> None:
        """Makes a page.

        Args:
            realtime_base_ns: the guest's date (CLOCK_REALTIME) at virtual instant 0.
            seed: of all that the kernel asks the host for in random numbers; None: the host's own.
            clock_rate: seconds that the guest's kernel reads per virtual second.

        Raises:
            GuestError: `DILATON_OWN_COUNTER` says what it cannot.
        """
        wish = os.environ.get(OWN_COUNTER) or OWN_COUNTER_WISHES[0]
        if wish not in OWN_COUNTER_WISHES:
            raise GuestError(f"{OWN_COUNTER}={wish}: not one of {', '.join(OWN_COUNTER_WISHES)}")
        self._fields = layout().sections[""]
        size = self._fields.words * WORD.size
        with contextlib.ExitStack() as undo:
            self.fd = os.memfd_create("dilaton-clock")
            undo.callback(os.close, self.fd)
            os.ftruncate(self.fd, size)
            self._memory = mmap.mmap(self.fd, size)
            undo.callback(self._memory.close)
            # Each word is read and written at once, as clocks write and read it.
            self._words = memoryview(self._memory).cast("B").cast("Q")
            undo.callback(self._words.release)
            self._wake, guest_end = socket.socketpair()
            undo.callback(self._wake.close)
            undo.callback(guest_end.close)
            self._wake.setblocking(False)
            self.life_fd, self._life = os.pipe()
            self.wake_fd = guest_end.detach()
            undo.pop_all()
        self._write("page_version", layout().version)
        self._write("realtime_base_ns", realtime_base_ns)
        self._write("face_own", clock_rate.numerator)
        self._write("face_run", clock_rate.denominator)
        self._write("seed", 0 if seed is None else seed % (NEVER_NS - 1) + 1)
        self._write("own_counter_wish", OWN_COUNTER_WISHES.index(wish))
        self._write("magic", MAGIC)

    @property
    def guest_fds(self) -> tuple[int, int, int]:
        """What the guest inherits: page, wake pipe and life line."""
        return self.fd, self.wake_fd, self.life_fd

    def close(self) -> None:
        """Gives up memory and pipes, and so ends the guest."""
        self.end_guest()
        self._words.release()
        self._memory.close()
        self._wake.close()
        self.close_guest_side()

    def end_guest(self) -> None:
        """Ends the guest at once, wherever it is."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def close_guest_side(self) -> None:
        """Closes what only the guest needs, once it has inherited it."""
        for name in ("fd", "wake_fd", "life_fd"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)

    def command(self, orders: Orders) -> int:
        """Commands the clock; returns the command's sequence number.

        Raises:
            OSError: the host has no memory for the wake, without which a guest that sleeps would not see the command.
        """
        sequence = self.read("command_sequence")
        pace, ceiling = orders.pace, orders.max_speed and 1 / orders.max_speed
        self._write("command_sequence", sequence + 1)
        self._write("command_drive", DRIVES.index(orders.drive))
        self._write("command_running", 0 if pace is None else 1)
        self._write("command_tdf_numerator", pace.numerator if pace else 0)
        self._write("command_tdf_denominator", pace.denominator if pace else 0)
        self._write("command_end_ns", NEVER_NS if orders.end_ns is None else orders.end_ns)
        self._write("command_ceiling_numerator", ceiling.numerator if ceiling else 0)
        self._write("command_ceiling_denominator", ceiling.denominator if ceiling else 0)
        self._write("command_since_ns", orders.since_host_ns or 0)
        self._write("command_sequence", sequence + 2)
        try:
            self._wake.send(b"!")
        except BlockingIOError:
            pass  # the pipe is full of wakes that the guest has not read: it will wake
        except ConnectionError:
            pass  # the guest is gone, perhaps without having read a wake, and whoever waits for its answer sees that
        return sequence + 2

    def tell_functions(self, sleep: int | None, is_alone: int | None) -> None:
        """Says where in the kernel what programs sleep by is, and what tells whether one is the only one that can run;
        before programs run."""
        self._write("kernel_sleep", sleep or 0)
        self._write("kernel_alone", is_alone or 0)

    def applied(self, sequence: int) -> bool:
        """Whether the clock has taken over that command, or a later one."""
        return self.read("applied_sequence") >= sequence

    def timeline(self) -> Timeline:
        """The clock's present line.

        Raises:
            GuestError: the guest died, or was stopped, while it wrote it; or there is none that a clock writes.
        """
        for _ in range(SEQUENCE_TRIES):
            before = self.read("timeline_sequence")
            words = [self.read(f"timeline_{name}") for name in TIMELINE]
            if before % 2 == 0 and self.read("timeline_sequence") == before:
                return _timeline(*words)
            time.sleep(SEQUENCE_PAUSE_HOST_S)
        raise GuestError("the clock page stays half-written: its guest died, or was stopped, while it wrote it")

    def virtual_ns(self, host_ns: int) -> int:
        """The virtual instant at `host_ns` of the host's monotonic clock; on the others, the latest known."""
        line = self.timeline()
        latest = self.read("virtual_now_ns")
        if line.drive == "wall":
            return max(latest, line.virtual_at(host_ns))
        # On the event drive what is at work at the end goes on beyond it, for as long as that takes.
        return min(max(latest, line.virtual_ns), line.end_ns)

    def is_held(self, host_ns: int) -> bool:
        """Whether virtual time stands still at `host_ns`: held, at its end, or because the agent waits for the host."""
        line = self.timeline()
        return line.tdf is None or self.virtual_ns(host_ns) >= line.end_ns

    def begin_histograms(self) -> None:
        """Begins `HISTOGRAMS` anew; only while the clock is held, when no timer is served."""
        for number in range(BINS):
            for name in HISTOGRAMS:
                self._write(name, 0, number)
        self._write("lateness_max_ns", 0)
        self._write("frame_lateness_max_ns", 0)
        self._write("busy_max_ns", 0)
        for number in range(LONGEST):
            self._write("contended_longest_ns", 0, number)
            self._write("talkers_longest_ns", 0, number)
        self._write("busy_interrupts", 0)
        self._write("busy_since_ns", self.read("virtual_now_ns"))

    def counters(self, zero_ns: int) -> Counters:
        """What the guest has counted by now.

        Args:
            zero_ns: The run's virtual 0 in the guest's time.
        """
        shares = [self.read(name) for name in SHARES] if self.read("kernel_sleep") else None
        return Counters(
            virtual_ns=self.read("virtual_now_ns") - zero_ns,
            idle_ns=self.read("idle_virtual_ns"),
            reads=self.read("reads"),
            timers=Late(self._histogram("lateness_ns_log2"), self.read("lateness_max_ns")),
            frames=Late(self._histogram("frame_lateness_ns_log2"), self.read("frame_lateness_max_ns")),
            busy=self._busy_periods(),
            contention=self._contention(zero_ns) if self.read("kernel_alone") else None,
            shares=Shares(*shares) if shares else None,
            disk_requests=self.read("disk_requests"),
            disk_errors=self.read("disk_errors"),
            spinning=self.read("spinners"),
            lacks=Lack(self.read("lacked")),
            address_space_lacked_bytes=self.read("address_space_lacked_bytes"),
            counter_switch_ns=self.read("counter_switch_ns"),
            counter_given_up=self.read("counter_calls_max") > 0,
        )

    def _busy_periods(self) -> Busy:
        """The guest's busy periods since the histograms were begun."""
        names = ("busy_ns_log2", "busy_total_ns_log2", "busy_interrupts_log2", "idle_total_ns_log2")
        present_ns = max(0, self.read("virtual_now_ns") - self.read("busy_since_ns"))
        longest_ns = max(present_ns, self.read("busy_max_ns"))
        counts, totals_ns, interrupts, idle_totals_ns = map(self._histogram, names)
        present = (present_ns, self.read("busy_interrupts"))
        return Busy(counts, totals_ns, interrupts, idle_totals_ns, longest_ns, *present)

    def _contention(self, zero_ns: int) -> Contention:
        """How programs waited for each other since the histograms were begun."""
        names = ("contended_ns_log2", "contended_total_ns_log2", "contended_interrupts_log2", "jobs_ns_log2")
        counts, totals_ns, interrupts, jobs = map(self._histogram, names)
        longest, waits = (self._longest(of, zero_ns) for of in ("contended", "talkers"))
        both = zip(self._array("begins_process", BEGINS), self._array("begins_ns", BEGINS), strict=True)
        begins = [Begin(process - 1, at_ns - zero_ns if at_ns else None) for process, at_ns in both if process]
        return Contention(counts, totals_ns, interrupts, jobs, longest, begins, waits)

    def _longest(self, of: str, zero_ns: int) -> list[Stretch]:
        lengths, ends = (self._array(f"{of}_longest{what}_ns", LONGEST) for what in ("", "_end"))
        both = zip(lengths, (end_ns - zero_ns for end_ns in ends), strict=True)
        return [Stretch(end_ns - length_ns, end_ns) for length_ns, end_ns in both if length_ns]

    def _histogram(self, field: str) -> list[int]:
        return self._array(field, BINS)

    def _array(self, field: str, words: int) -> list[int]:
        begin = self._fields.offsets[field]
        return self._words[begin : begin + words].tolist()

    def read(self, field: str, index: int = 0) -> int:
        """A field of the page, as `clock-page.def` names it."""
        return self._words[self._fields.offsets[field] + index]

    def _write(self, field: str, value: int, index: int = 0) -> None:
        self._words[self._fields.offsets[field] + index] = value
