"""Tells for how long a guest's programs waited for each other, and what they were woken up for took. Pure.

**Problem.** That a guest is busy without a pause bounds how late anything can be (`busy_periods.py`), and as a bound it
is far too wide. A shell that computes beside a flow keeps the guest busy for tens of milliseconds, and the flow's
programs, which the kernel turns to as soon as they are woken up, waiting for next to nothing. Of 24 labs at random that
were right and were called suspect all but three were so for that bound, and of them a third had such a shell in it.

**Contention.** The kernel knows whether a program is the only one that can run, and the clock asks it whenever it turns
to one (`crates/interrupts/src/contention.rs`). Only while there are several does a program wait, so what one of those
stretches leaves after an interrupt bounds for how long a program waited that was woken up by it. The rest is as of busy
periods: a twentieth of all interrupts may have kept somebody waiting for longer than a path notices.

**Own work.** A program that is alone waits for nobody, but others may wait for it: an answer takes as long as it takes
to compute, and that depends on the TDF. So the clock counts *jobs*: what a program does from what wakes it up until it
sleeps again, waiting included (`crates/interrupts/src/jobs.rs`). What it does in a job is there when half of that is
over, in the mean. So jobs may take twice what waits may, that is half a round trip, or half of the time in which a
queue fills. Where more than a twentieth take longer, results say how fast the CPU is rather than the network: a flow
of UDP whose jobs took .4 ms where a round trip takes 1.07 ms measured 12 % less than it should have, with no program
beside it to wait for. A program that computes for a minute has one job in it.

**Starts.** A program that starts is some jobs as well: of what starts it, and its own, before it has talked to anybody.
They are the longest that it has, so that where anything takes too long, they do. On a slow CPU nine to fourteen for
each program did, and were six tenths of all jobs in a lab in which pings were right, and one tenth in another, in which
a flow of 200 kB was, too. By how much later programs begin for that than others is judged apart (`together.py`). So ten
jobs of each program are not counted among those that take too long.

**At another TDF.** At n times the TDF a stretch is n times shorter, and as what asks comes at its instants of virtual
time, n times fewer of that comes in it. Of 25 labs at random that were run at two TDFs, 1.2 to 21 times apart, the
share that waited at the higher one was told from the lower one as 1.4 times what it was, in the median; 6.3 times,
taken as if as much came in a shorter stretch. Jobs are as many at every TDF.

**Begin.** The longest of these stretches is by how much later a program may have begun than others (`together.py`), if
it was while they looked at each other: the longest of a run are often those in which servers start, to whom nobody
talks yet. So the clock keeps some of the longest with their ends, and no other is longer than the shortest of these. Of
programs that talk it knows for how long each may have waited itself (`begins.py`), and keeps the longest of these, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dilaton.measure.lateness import share_later
from dilaton.measure.waiting.busy_periods import FACTOR_STEP, LATE_MIN, LATE_SHARE_MAX, BusyPeriods

JOB_PATIENCES = 2
"""How many times as long as waits jobs may take."""

JOBS_OF_START = 10
"""Of a program, some of what is done until it has started."""


@dataclass(frozen=True)
class Waits:
    """What the programs of one guest waited for, and did.

    Attributes:
        stretches: Those in which a program waited for the CPU that another had, as of busy periods.
        interrupts: How many there were in all, in these stretches and elsewhere.
        jobs: By how long they took: bin 0 no time, bin i [2^(i-1), 2^i) virtual nanoseconds.
        longest: Of the longest of these stretches, begin and end, virtual nanoseconds since virtual 0.
        talkers: Of the longest times for which a program that talks may have waited, the same.
        starts: How many programs started while that was counted, as far as is known.
        speed: How many times as fast as it was the CPU is taken to be.
    """

    stretches: BusyPeriods = field(default_factory=BusyPeriods)
    interrupts: int = 0
    jobs: Sequence[int] = ()
    longest: Sequence[tuple[float, float]] = ()
    talkers: Sequence[tuple[float, float]] = ()
    starts: int = 0
    speed: float = 1.0

    def longest_ns(self, begin_ns: float, end_ns: float) -> float:
        """For how long a program may have waited between two instants, virtual nanoseconds."""
        return _longest_ns(self.longest, begin_ns, end_ns)

    def talker_ns(self, begin_ns: float, end_ns: float) -> float:
        """The same of a program that talks."""
        return _longest_ns(self.talkers, begin_ns, end_ns)

    def late_share(self, bound_ns: float) -> float:
        """The share of all interrupts, 0..1, that may have kept a program waiting for longer than a bound."""
        late = self.stretches.late(bound_ns * self.speed) / self.speed
        return _minded(late / self.interrupts if late else 0.0, late)

    def long_share(self, bound_ns: float) -> float:
        """The share of jobs, 0..1, that took longer than `JOB_PATIENCES` times a bound and are none of starts."""
        jobs = sum(self.jobs)
        long = share_later(self.jobs, bound_ns * JOB_PATIENCES * self.speed) * jobs - JOBS_OF_START * self.starts
        return _minded(long / jobs if long > 0 else 0.0, long)

    def is_minded(self, bound_ns: float) -> bool:
        """Whether so much was later than a bound that it shows in results."""
        return max(self.late_share(bound_ns), self.long_share(bound_ns)) > LATE_SHARE_MAX

    def factor_needed(self, bound_ns: float, least: int = 1) -> float:
        """What the TDF is to be multiplied by so that it is not: the first power of `FACTOR_STEP`, from `least` on."""
        factors = (FACTOR_STEP**power for power in itertools.count(least))
        return next(factor for factor in factors if not replace(self, speed=self.speed * factor).is_minded(bound_ns))


def _longest_ns(longest: Sequence[tuple[float, float]], begin_ns: float, end_ns: float) -> float:
    others_ns = min((end - begin for begin, end in longest), default=0.0)
    within = [min(end, end_ns) - max(begin, begin_ns) for begin, end in longest]
    return max([min(others_ns, end_ns - begin_ns), *within])


def _minded(share: float, number: float) -> float:
    """A share, unless it is of so few that they are those of programs that start."""
    return share if number >= LATE_MIN else 0.0
