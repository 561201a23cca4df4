"""Reads epochs off what a run's guests count.

What they have counted is read twice, and the difference is the epoch. What nodes with a share of their guest's CPU have
lost is counted when they go on, so after a long wait it may be more than they could have had in one epoch; their
guest's shares together bound it. Virtual time is the latest reading of a guest's own clock, not now: an idle guest on
the wall drive has not counted the idle time in which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from dilaton.host.counters import Counters, Shares
from dilaton.measure.waiting.busy_periods import BusyPeriods
from dilaton.measure.waiting.patience import Patience
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.model import Plan
from dilaton.plan.network.bounds import Network, network_of
from dilaton.run.adaptive.epoch import TIMERS_MIN, Epoch

STRETCH_MAX = 10
"""An epoch goes on until it has timers enough to be judged, but for no longer than so many of its lengths."""


class Counting(Protocol):
    """What is asked of a guest here."""

    def reached_ns(self) -> int:
        """The latest reading of its clock, since the run's virtual 0."""

    def counters(self) -> Counters:
        """What it has counted by now."""


@dataclass(frozen=True)
class Watched:
    """A guest, for those who watch it.

    Attributes:
        guest: Itself.
        shares: What its nodes have of its CPU when all of them take their shares, cores of the host.
        network: What its links promise, and what their paths notice.
    """

    guest: Counting
    shares: float = 0.0
    network: Network = field(default_factory=Network)


def watched(planned: Plan, guests: Sequence[Counting]) -> list[Watched]:
    """Those of the guests of a plan whose TDF is the run's, or all where there are none.

    A guest with a TDF of its own has a CPU of that speed: how busy it is, and how late its timers are, is what the lab
    asks for, and no other TDF of the run would change it.
    """
    shares = dict.fromkeys((guest.name for guest in planned.guests), 0.0)
    for node in planned.nodes:
        if node.cpu is not None:
            shares[node.guest] += node.cpu.numerator / node.cpu.denominator
    everybody = list(zip(guests, planned.guests, strict=True))
    following = [(guest, of) for guest, of in everybody if of.tdf is None]
    return [Watched(guest, shares[of.name], network_of(planned, of.name)) for guest, of in following or everybody]


@dataclass(frozen=True)
class _Counts:
    """What a guest has counted, at some moment."""

    seen: Counters

    @classmethod
    def of(cls, watched: Watched) -> _Counts:
        return cls(watched.guest.counters())

    @property
    def virtual_ns(self) -> int:
        return self.seen.virtual_ns

    @property
    def shares(self) -> Shares:
        return self.seen.shares or Shares()

    def busy_since(self, before: _Counts) -> float:
        passed_ns = self.virtual_ns - before.virtual_ns
        return min(1.0, max(0.0, 1 - (self.seen.idle_ns - before.seen.idle_ns) / passed_ns)) if passed_ns else 0.0

    def late_since(self, before: _Counts) -> list[int]:
        both = zip(self.seen.timers.counts, before.seen.timers.counts, strict=True)
        return [count - earlier for count, earlier in both]

    def waits_since(self, before: _Counts) -> Waits | BusyPeriods:
        busy = self.seen.busy.since(before.seen.busy)
        if self.seen.contention is None:
            return BusyPeriods(busy.counts, busy.totals_ns, busy.interrupts)
        seen = self.seen.contention.since(before.seen.contention)
        stretches = BusyPeriods(seen.counts, seen.totals_ns, seen.interrupts)
        return Waits(stretches, sum(busy.interrupts), seen.jobs)

    def share_lost_since(self, before: _Counts) -> float:
        lost_ns = self.shares.lost_ns - before.shares.lost_ns
        return lost_ns / (lost_ns + self.shares.busy_ns - before.shares.busy_ns) if lost_ns else 0.0

    def lacked_since(self, before: _Counts, shares: float) -> float:
        """See `Epoch.lacked`: as if it was those nodes that lost something who have worked most so far."""
        lost_ns, passed_ns = self.shares.lost_ns - before.shares.lost_ns, self.virtual_ns - before.virtual_ns
        if not lost_ns or not passed_ns:
            return 0.0
        had = (self.shares.work_ns - before.shares.work_ns) / passed_ns
        speed = self.shares.work_ns / self.shares.busy_ns if self.shares.busy_ns else shares
        return min(lost_ns / passed_ns * speed, max(0.0, shares - had))


class Meter:
    """The epochs of a run, one after the other."""

    def __init__(self, guests: Sequence[Watched], epoch_ns: int, tdf: Fraction, drive: str = "wall") -> None:
        """Begins the first epoch.

        Args:
            guests: Those of the run.
            epoch_ns: How long an epoch is at least, in virtual time.
            tdf: With which it begins.
            drive: `wall`, `work` or `event`.
        """
        self._drive = drive
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
        reached_ns = max(watched.guest.reached_ns() for watched in self._guests)
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
        each = list(zip(both, self._guests, strict=True))
        lacked = max(after.lacked_since(before, guest.shares) for (after, before), guest in each)
        waits = [Patience(guest.network, after.waits_since(before)) for (after, before), guest in each]
        return Epoch(max(0, begin_ns), reached_ns, tdf, busy, late, share_lost, lacked, waits, self._drive)
