"""Reads epochs off the clock pages of a run's guests.

What pages count is read twice, and the difference is the epoch. What nodes with a share of their guest's CPU have lost
is counted when they go on, so after a long wait it may be more than they could have had in one epoch; their guest's
shares together bound it. Virtual time is the latest reading of a guest's own clock, not now: an idle guest on the wall
drive has not counted the idle time in which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dilaton.host.clock_page import ClockPage
from dilaton.plan.model import Plan
from dilaton.run.adaptive.epoch import TIMERS_MIN, Epoch

STRETCH_MAX = 10
"""An epoch goes on until it has timers enough to be judged, but for no longer than so many of its lengths."""


@dataclass(frozen=True)
class Watched:
    """A guest, for those who watch it.

    Attributes:
        page: Its clock page.
        zero_ns: The run's virtual 0 in its time.
        shares: What its nodes have of its CPU when all of them take their shares, cores of the host.
    """

    page: ClockPage
    zero_ns: int
    shares: float = 0.0

    @property
    def virtual_ns(self) -> int:
        """The latest reading of its clock since the run's virtual 0."""
        return self.page.read("virtual_now_ns") - self.zero_ns


def watched(planned: Plan, clocks: Sequence[tuple[ClockPage, int]]) -> list[Watched]:
    """The guests of a plan whose TDF is the run's, or all where there is none, by the clock page and virtual 0 of each.

    A guest with a TDF of its own has a CPU of that speed: how busy it is, and how late its timers are, is what the lab
    asks for, and no other TDF of the run would change it.
    """
    shares = dict.fromkeys((guest.name for guest in planned.guests), 0.0)
    for node in planned.nodes:
        if node.cpu is not None:
            shares[node.guest] += node.cpu.numerator / node.cpu.denominator
    everybody = [Watched(page, zero_ns, most) for (page, zero_ns), most in zip(clocks, shares.values(), strict=True)]
    following = [one for one, guest in zip(everybody, planned.guests, strict=True) if guest.tdf is None]
    return following or everybody


@dataclass(frozen=True)
class _Counts:
    """What a page counts, at some moment; of nodes with a share, their work and how long that took and should have."""

    virtual_ns: int
    idle_ns: int
    late: Sequence[int]
    shares_work_ns: int
    shares_busy_ns: int
    shares_lost_ns: int

    @classmethod
    def of(cls, guest: Watched) -> _Counts:
        shares = (guest.page.read(f"nodes_{counter}_ns") for counter in ("work", "busy", "lost"))
        return cls(guest.virtual_ns, guest.page.read("idle_virtual_ns"), guest.page.lateness_counts(), *shares)

    def busy_since(self, before: _Counts) -> float:
        passed_ns = self.virtual_ns - before.virtual_ns
        return min(1.0, max(0.0, 1 - (self.idle_ns - before.idle_ns) / passed_ns)) if passed_ns else 0.0

    def late_since(self, before: _Counts) -> list[int]:
        return [count - earlier for count, earlier in zip(self.late, before.late, strict=True)]

    def share_lost_since(self, before: _Counts) -> float:
        lost_ns = self.shares_lost_ns - before.shares_lost_ns
        return lost_ns / (lost_ns + self.shares_busy_ns - before.shares_busy_ns) if lost_ns else 0.0

    def lacked_since(self, before: _Counts, shares: float) -> float:
        """See `Epoch.lacked`: as if it was those nodes that lost something who have worked most so far."""
        lost_ns, passed_ns = self.shares_lost_ns - before.shares_lost_ns, self.virtual_ns - before.virtual_ns
        if not lost_ns or not passed_ns:
            return 0.0
        had = (self.shares_work_ns - before.shares_work_ns) / passed_ns
        speed = self.shares_work_ns / self.shares_busy_ns if self.shares_busy_ns else shares
        return min(lost_ns / passed_ns * speed, max(0.0, shares - had))


class Meter:
    """The epochs of a run, one after the other."""

    def __init__(self, guests: Sequence[Watched], epoch_ns: int, tdf: Fraction) -> None:
        """Begins the first epoch.

        Args:
            guests: Those of the run.
            epoch_ns: How long an epoch is at least, in virtual time.
            tdf: With which it begins.
        """
        self._guests = guests
        self._epoch_ns = epoch_ns
        self._begin(tdf)

    def _begin(self, tdf: Fraction) -> None:
        self._tdf = tdf
        self._before = list(map(_Counts.of, self._guests))

    def take(self, tdf: Fraction, *, is_last: bool = False) -> Epoch | None:
        """The epoch that is over; None when it is not. `tdf` is the present one; with another one it begins anew.

        The last one is over when the run is, unless no virtual time has passed in it.
        """
        if tdf != self._tdf:
            self._begin(tdf)
            return None
        # Of the guest that is furthest ahead: the clock of one that has finished stands still.
        reached_ns = max(guest.virtual_ns for guest in self._guests)
        begin_ns = max(counts.virtual_ns for counts in self._before)
        passed_ns = reached_ns - begin_ns
        if passed_ns < (1 if is_last else self._epoch_ns):
            return None
        now = list(map(_Counts.of, self._guests))
        both = list(zip(now, self._before, strict=True))
        late = [after.late_since(before) for after, before in both]
        if sum(map(sum, late)) < TIMERS_MIN and passed_ns < STRETCH_MAX * self._epoch_ns and not is_last:
            return None
        self._before = now
        busy = max(after.busy_since(before) for after, before in both)
        share_lost = max(after.share_lost_since(before) for after, before in both)
        each = zip(both, self._guests, strict=True)
        lacked = max(after.lacked_since(before, guest.shares) for (after, before), guest in each)
        return Epoch(max(0, begin_ns), reached_ns, tdf, busy, late, share_lost, lacked)
