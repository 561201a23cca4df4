"""Whether paths notice that programs waited for the CPU, and at which TDF they would not. Pure.

**Problem.** Three ask this: the verdict on a run, that on an epoch of a run that is watched, and the policy that finds
a TDF. Two answers would let the policy stop short of what the verdict wants, so that a run which followed the load is
`suspect` all the same, or go on beyond, where nothing is gained. So there is one.

**The answer.** A guest's kernel tells for how long programs waited for each other, and how long what they were woken up
for took them (`waits.py`); where it does not, busy periods bound both (`busy_periods.py`). What its paths notice, or
the lab says that it minds, is the network's (`dilaton.plan.network.bounds`). Where nobody is known to talk, nobody
notices. Stretches and jobs take as much of the host whatever the TDF, so that at n times the TDF they are n times
shorter, and less comes in a stretch; that says which TDF is enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from dilaton.measure import numbers
from dilaton.measure.waiting.busy_periods import LATE_SHARE_MAX, BusyPeriods
from dilaton.measure.waiting.waits import JOB_PATIENCES, Waits
from dilaton.plan.network.bounds import Network


@dataclass(frozen=True)
class Patience:
    """What a guest's programs waited for, and what its paths notice of that.

    Attributes:
        network: What the links promise over which those talk whose paths lead through the guest.
        told: What is known of its programs.
    """

    network: Network
    told: Waits | BusyPeriods

    @property
    def bound_ns(self) -> float | None:
        """For how long programs may wait, virtual nanoseconds; None: nobody notices."""
        bound_ns = self.network.wait_ns_max
        return None if bound_ns is None else max(bound_ns, self.network.tolerance_ns or 0)

    @property
    def is_lost(self) -> bool:
        """Whether so much waited for longer that it shows in results."""
        return self.bound_ns is not None and self.told.is_minded(self.bound_ns)

    def factor_needed(self, least: int = 1) -> float:
        """What the TDF is to be multiplied by so that it does not: the first power of
        `dilaton.measure.waiting.busy_periods.FACTOR_STEP`, from `least` on; 0 where nobody notices."""
        return 0.0 if self.bound_ns is None else self.told.factor_needed(self.bound_ns, least)

    def share(self) -> float:
        """The share of what happened, or of what was done, that took longer, 0..1: whichever is more."""
        return max(self._late(), self._long())

    def said(self) -> str:
        """That share as a clause, with what took longer, and than what; of patience that is lost."""
        assert self.bound_ns is not None, "asked of what somebody notices"
        what, times = "of what happened may have waited for the CPU for", 1
        if self._long() > max(self._late(), LATE_SHARE_MAX):
            what, times = "of what programs were woken up for took them", JOB_PATIENCES
        why = "that the lab states"
        if self.bound_ns == self.network.wait_ns_max:
            why = f"of {self.network.wait_path}, where {self.network.wait_why}"
        patience = "the patience" if times == 1 else f"{times} times the patience"
        share, longer = numbers.significant(self.share() * 100, 3), numbers.duration(times * self.bound_ns / 1e9, 3)
        return f"{share} % {what} more than {longer}, {patience} {why}"

    def _late(self) -> float:
        return 0.0 if self.bound_ns is None else self.told.late_share(self.bound_ns)

    def _long(self) -> float:
        return (
            self.told.long_share(self.bound_ns) if self.bound_ns is not None and isinstance(self.told, Waits) else 0.0
        )
