"""Reads epochs off the clock pages of a run's guests.

What pages count is read twice, and the difference is the epoch. Virtual time is the latest reading of a guest's own
clock, not now: an idle guest on the wall drive has not counted the idle time in which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dilaton.host.clock_page import ClockPage
from dilaton.run.adaptive.epoch import TIMERS_MIN, Epoch

STRETCH_MAX = 10
"""An epoch goes on until it has timers enough to be judged, but for no longer than so many of its lengths."""


@dataclass(frozen=True)
class _Counts:
    """What a page counts, at some moment."""

    virtual_ns: int
    idle_ns: int
    late: Sequence[int]

    @classmethod
    def of(cls, page: ClockPage, zero_ns: int) -> _Counts:
        return cls(page.read("virtual_now_ns") - zero_ns, page.read("idle_virtual_ns"), page.lateness_counts())

    def busy_since(self, before: _Counts) -> float:
        passed_ns = self.virtual_ns - before.virtual_ns
        return min(1.0, max(0.0, 1 - (self.idle_ns - before.idle_ns) / passed_ns)) if passed_ns else 0.0


class Meter:
    """The epochs of a run, one after the other."""

    def __init__(self, clocks: Sequence[tuple[ClockPage, int]], epoch_ns: int, tdf: Fraction) -> None:
        """Begins the first epoch.

        Args:
            clocks: The clock page of each guest, and the run's virtual 0 in its time.
            epoch_ns: How long an epoch is at least, in virtual time.
            tdf: With which it begins.
        """
        self._clocks = clocks
        self._epoch_ns = epoch_ns
        self._begin(tdf)

    def _begin(self, tdf: Fraction) -> None:
        self._tdf = tdf
        self._before = [_Counts.of(*clock) for clock in self._clocks]

    def take(self, tdf: Fraction, *, is_last: bool = False) -> Epoch | None:
        """The epoch that is over; None when it is not. `tdf` is the present one; with another one it begins anew.

        The last one is over when the run is, unless no virtual time has passed in it.
        """
        if tdf != self._tdf:
            self._begin(tdf)
            return None
        # Of the guest that is furthest ahead: the clock of one that has finished stands still.
        reached_ns = max(page.read("virtual_now_ns") - zero_ns for page, zero_ns in self._clocks)
        begin_ns = max(counts.virtual_ns for counts in self._before)
        passed_ns = reached_ns - begin_ns
        if passed_ns < (1 if is_last else self._epoch_ns):
            return None
        now = [_Counts.of(*clock) for clock in self._clocks]
        both = list(zip(now, self._before, strict=True))
        late = [sum(after.late[bin_] - before.late[bin_] for after, before in both) for bin_ in range(len(now[0].late))]
        if sum(late) < TIMERS_MIN and passed_ns < STRETCH_MAX * self._epoch_ns and not is_last:
            return None
        self._before = now
        busy = max(after.busy_since(before) for after, before in both)
        return Epoch(max(0, begin_ns), reached_ns, tdf, busy, late)
