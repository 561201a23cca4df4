"""The terms of adaptive time dilation: what is seen of an epoch, within which limits, and what is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from dilaton.measure.lateness import lateness_of_share
from dilaton.measure.observation import Observation
from dilaton.measure.reasons import Verdict
from dilaton.measure.verdict import TIMERS_LATE_MAX, judge, judge_waiting
from dilaton.measure.waiting.busy_periods import FACTOR_STEP
from dilaton.measure.waiting.patience import Patience
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.network.bounds import Network

COLUMNS = "begin_s,end_s,tdf,busy,late_us,timers,share_lost,in_bounds"
"""The columns of the table of all epochs of a run; `late_us` is what one timer in a hundred was later than."""

TIMERS_MIN = 100
"""Fewer timers say nothing about one in a hundred."""

LEAST_FACTOR = -10
"""A power of `FACTOR_STEP`: that waits would allow a tenth of the TDF is all that is asked of an epoch."""

GUEST_TIMERS_MIN = 1000
"""How many timers of one guest among several are judged: of fewer, a few late ones are one in a hundred, which of many
guests happens to some."""


@dataclass(frozen=True)
class Epoch:
    """What a run showed for some virtual time, during which its TDF stayed the same.

    Attributes:
        begin_ns, end_ns: Since the run's virtual 0.
        tdf: Host seconds per virtual second.
        busy: The share of the epoch in which the busiest guest worked, 0..1.
        lateness_counts: Of each guest, timers by lateness in virtual nanoseconds: bin 0 on time, bin i those in
            [2^(i-1), 2^i).
        share_lost: The part of what nodes with a share of their guest's CPU should have had that they did not have,
            0..1, in the guest where it was most.
        lacked: Host seconds of work per virtual second that they would have had, in that guest where it was most.
        waits: Of each guest: for how long its programs waited, and what its paths notice of that.
        drive: `wall`, `work` or `event`.
    """

    begin_ns: int
    end_ns: int
    tdf: Fraction
    busy: float
    lateness_counts: Sequence[Sequence[int]]
    share_lost: float = 0.0
    lacked: float = 0.0
    waits: Sequence[Patience] = ()
    drive: str = "wall"

    @property
    def work(self) -> float:
        """Host seconds of work per virtual second."""
        return self.busy * float(self.tdf)

    @property
    def demand(self) -> float:
        """Host seconds of work per virtual second that were asked for, as far as is known: done, or lacked."""
        return self.work + self.lacked

    @property
    def timers(self) -> int:
        """Served in the epoch, by all guests."""
        return sum(map(sum, self.lateness_counts))

    @property
    def timers_per_s(self) -> float:
        """Served per virtual second."""
        return self.timers * 1e9 / (self.end_ns - self.begin_ns)

    @cached_property
    def all_counts(self) -> Sequence[int]:
        """The timers of all guests, by lateness."""
        return [sum(bins) for bins in zip(*self.lateness_counts, strict=True)]

    @cached_property
    def latest_counts(self) -> Sequence[int]:
        """The timers, by lateness, of the guest that was latest, or of all together; none when there were too few."""
        said = [counts for counts in self.lateness_counts if sum(counts) >= GUEST_TIMERS_MIN]
        said += [self.all_counts] if self.timers >= TIMERS_MIN else []
        return max(said, key=_late_ns, default=())

    @property
    def late_ns(self) -> float:
        """What one timer in a hundred was later than, virtual nanoseconds; 0 when there were too few to say."""
        return _late_ns(self.latest_counts)

    @property
    def few_late_ns(self) -> float:
        """The same of all guests' timers, however few: of less than a hundred the latest counts."""
        return _late_ns(self.all_counts)

    @cached_property
    def keeps_instants(self) -> bool:
        """Whether a late timer moved no packet, and what it asked of programs is judged as waits are."""
        return self.drive == "work" and bool(self.waits) and all(isinstance(each.told, Waits) for each in self.waits)

    @cached_property
    def most_waiting(self) -> Patience | None:
        """That of the guest whose waits need the highest TDF; None where nobody would notice them at a lower one."""
        asked = [each for each in self.waits if each.factor_needed(LEAST_FACTOR) > FACTOR_STEP**LEAST_FACTOR]
        return max(asked, key=lambda each: each.factor_needed(LEAST_FACTOR), default=None)

    @property
    def tdf_for_waits(self) -> float:
        """The TDF at which nobody would notice that programs wait; 0 where nobody does anyway."""
        return self.most_waiting.factor_needed(LEAST_FACTOR) * float(self.tdf) if self.most_waiting else 0.0

    def judge(self, network: Network) -> Verdict:
        """The verdict on this epoch alone, in a run with this network."""
        # Of the latest timer only its bin is known; the lower edge wrongs nobody.
        highest = max((bin_ for bin_, count in enumerate(self.all_counts) if count), default=0)
        seen = Observation(
            drive=self.drive,
            tdf=float(self.tdf),
            lateness_counts=self.latest_counts,
            lateness_max_ns=1 << (highest - 1) if highest else 0,
            busy=self.busy,
            # Each guest's are judged by its own paths.
            waits=Waits() if self.keeps_instants else None,
            share_lost=self.share_lost,
        )
        waited = filter(None, (judge_waiting(each, seen) for each in self.waits))
        return Verdict.of([*waited, *judge(network, seen).reasons])

    def row(self, *, in_bounds: bool) -> str:
        """As a line of the table with `COLUMNS`."""
        return (
            f"{self.begin_ns / 1e9:.9f},{self.end_ns / 1e9:.9f},{float(self.tdf):.9g},{self.busy:.4f},"
            f"{self.late_ns / 1e3:.3f},{self.timers},{self.share_lost:.4f},{int(in_bounds)}\n"
        )


def _late_ns(counts: Sequence[int]) -> float:
    return lateness_of_share(counts, TIMERS_LATE_MAX)


@dataclass(frozen=True)
class Limits:
    """What a policy keeps to.

    Attributes:
        least, most: TDFs.
        target: The busy fraction to aim at, between 0 and 1.
        late_ns_max: What one timer in a hundred may be later than where they move packets, virtual nanoseconds; None:
            lateness spoils nothing.
    """

    least: Fraction
    most: Fraction
    target: float
    late_ns_max: float | None

    def within(self, tdf: Fraction) -> Fraction:
        """The TDF within the limits that is nearest."""
        return min(max(tdf, self.least), self.most)


@dataclass(frozen=True)
class Decision:
    """What is decided after an epoch.

    Attributes:
        tdf: Of the next epoch.
        wanted: What it would be without limits.
        reason: Why it changes; empty when it does not.
    """

    tdf: Fraction
    wanted: Fraction
    reason: str = ""


class Policy(Protocol):
    """What decides from one epoch to the next: a value, whose successor comes with each decision."""

    def decide(self, seen: Epoch) -> tuple[Policy, Decision]:
        """What follows from an epoch, and the policy for the next one."""


def rounded_up(tdf: float) -> Fraction:
    """The next TDF with three significant digits, so that traces can be read; exact."""
    step = Fraction(10) ** (math.floor(math.log10(tdf)) - 2)
    return math.ceil(Fraction(tdf) / step - Fraction(1, 10**6)) * step
