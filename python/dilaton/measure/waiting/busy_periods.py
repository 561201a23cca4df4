"""Tells from a guest's busy periods for how long programs waited for its CPU. Pure.

**Problem.** A network is emulated right only if what its programs do happens when it would have on machines of their
own. On the work drive no packet is late: interrupts are served at their instants, whatever the CPU has to do. But a
program that an interrupt wakes up waits until the CPU gets to it. A receiver that reads late opens its window late; a
sender that finds its buffer empty fills it at once, and what it sends then overflows a queue that packets at their own
pace would not; a datagram leaves when its sender gets to send it. So results depend on the TDF although no timer is
late, and neither lateness nor the busy fraction of a second tells: six nodes with links of 800 Mbit/s carried 937,
1,190 and 1,526 Mbit/s at TDF 5, 20 and 40, at busy fractions of 0.7 and less.

**The bound.** With a CPU that takes no time, all that is done in an unbroken busy period would have been done at the
instants that asked for it, and all of these are in the period. So the length of a busy period bounds how late anything
was that was done in it, whoever waited for whom, and what is left of it after an instant bounds how late that was which
was asked for then. The busy fraction does not say that: a CPU that is busy for 0.7 of the time in periods of 20 us
keeps nothing waiting, and in periods of 50 ms all that there is.

**What counts.** What asks is an interrupt: a timer that expires, a packet that leaves a queue, a frame that arrives.
They are taken as spread evenly over their period: of those in one of length L the share 1 - D / L may have kept
something waiting for more than D. The share of all interrupts of which that is true is the share of what happened in
the run that may have been late by more than D. Virtual time is no such measure: a run may sleep for an hour around a
second of transfer; and a program's start, some tens of milliseconds of the host's time, is a long busy period that
keeps nothing waiting where nothing else goes on, as it mostly does before there is anything to measure.

**Ticks.** While the CPU is busy, and not while it idles, the kernel has a tick every `TICK_NS`, which asks for nothing.

**Polling.** A program that asks again and again whether something has come, as `iperf3` does for a round trip at the
begin and at the end of a test, and `ping` in the last 10 ms before it sends, keeps the CPU busy and nothing waiting. So
where a program asks in vain, a busy period ends, and what it does until it asks again is idle
(`crates/interrupts/src/polling.rs`). Taken as busy, polling made a quarter of what happened in a chain of seven
links at TDF 250 look late, where all was in time.

**What lies in it.** Nodes with a share of their guest's CPU sleep for what their CPU takes longer than the guest's:
that is no busy period, as the lab asks for it. Without a share a program that computes keeps the CPU from all others,
and no TDF changes that if it does so for a time, not for an amount of work.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

TICK_NS = 10_000_000
"""The tick of a guest's kernel (HZ = 100)."""

LATE_SHARE_MAX = 0.05
"""The share of interrupts that may have kept programs waiting for longer than the network minds."""

LATE_MIN = 30
"""Fewer such interrupts are those of programs that start."""

FACTOR_STEP = 1.25
"""Between factors of the TDF that are tried."""


@dataclass(frozen=True)
class BusyPeriods:
    """The busy periods of one guest.

    Attributes:
        counts: By length: bin 0 those of none, bin i those of [2^(i-1), 2^i) virtual nanoseconds.
        totals_ns: How long those of a bin were together, virtual time.
        interrupts: How many interrupts there were in those of a bin.
        longest: How long the longest was, virtual nanoseconds.
    """

    counts: Sequence[int] = ()
    totals_ns: Sequence[float] = ()
    interrupts: Sequence[int] = ()
    longest: float = 0.0

    def longest_ns(self, begin_ns: float, end_ns: float) -> float:
        """For how long the guest may have been busy without a pause between two instants, virtual nanoseconds."""
        return min(self.longest, end_ns - begin_ns)

    def late(self, bound_ns: float) -> float:
        """The number of interrupts that may have kept something waiting for longer than a bound."""
        late = 0.0
        for count, total_ns, interrupts in zip(self.counts, self.totals_ns, self.interrupts, strict=True):
            if total_ns > count * bound_ns:
                late += max(0.0, interrupts - total_ns / TICK_NS) * (1 - count * bound_ns / total_ns)
        return late

    def late_share(self, bound_ns: float) -> float:
        """The same as a share of all interrupts, 0..1."""
        late = self.late(bound_ns)
        return late / sum(self.interrupts) if late else 0.0

    def dilated(self, factor: float) -> BusyPeriods:
        """What they would be at that many times the TDF, at most: each as much shorter."""
        return replace(self, totals_ns=[total_ns / factor for total_ns in self.totals_ns])

    def is_minded(self, bound_ns: float) -> bool:
        """Whether so much may have waited for longer than a bound that it shows in results."""
        return self.late(bound_ns) >= LATE_MIN and self.late_share(bound_ns) > LATE_SHARE_MAX

    def factor_needed(self, bound_ns: float, least: int = 1) -> float:
        """What the TDF is to be multiplied by so that it is not: the first power of `FACTOR_STEP`, from `least` on."""
        factors = (FACTOR_STEP**power for power in itertools.count(least))
        return next(factor for factor in factors if not self.dilated(factor).is_minded(bound_ns))
