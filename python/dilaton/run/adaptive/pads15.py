"""The policy of PADS'15 (Yan and Jin, sections 3.3 and 4.2.2), after Grau et al. (ICCCN 2009): CPU utilisation alone.

At the end of an epoch the utilisation is compared with two thresholds. Between them the TDF stays; outside it becomes
what would have brought the utilisation to the target, as utilisation is inversely proportional to the TDF. The papers
leave thresholds and epochs to the implementation: here they lie at the middle of target and 1, and as far below the
target. A saturated CPU shows a utilisation of 1 whatever is asked of it, so each rise is by 1 / target at most, and a
large step of load takes several epochs; and utilisation does not tell what is too late. `lateness` does better on both.
"""

from __future__ import annotations

from dataclasses import dataclass

from dilaton.run.adaptive.epoch import Decision, Epoch, Limits, rounded_up

BUSY_MIN = 0.01
"""Less utilisation does not lower the TDF further: what is divided by is never 0."""


@dataclass(frozen=True)
class Pads15:
    """TDF from the utilisation of the epoch before, without memory."""

    limits: Limits

    def decide(self, seen: Epoch) -> tuple[Pads15, Decision]:
        """See `Policy`."""
        target = self.limits.target
        reach = (1 - target) / 2
        if target - reach <= seen.busy <= target + reach:
            return self, Decision(seen.tdf, seen.tdf)
        wanted = rounded_up(float(seen.tdf) * max(seen.busy, BUSY_MIN) / target)
        tdf = self.limits.within(wanted)
        if tdf == seen.tdf:
            return self, Decision(tdf, wanted)
        side = "above" if seen.busy > target else "below"
        threshold = target + reach if seen.busy > target else target - reach
        return self, Decision(tdf, wanted, f"busy {seen.busy:.0%}, {side} {threshold:.0%}")
