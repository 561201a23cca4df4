"""What was out of bounds, when, and what it would have needed. Pure.

An epoch is out of bounds when the verdict, on this epoch alone, would not be `valid`. One such epoch may be the start
of programs, or a moment in which the host was busy elsewhere; two in a row are a load that rose faster than the TDF, or
to more than it may rise to: a *violation*, which ends with the first epoch within bounds.

Where nothing is due, virtual time jumps, and an epoch may be hours long. What was out of bounds in it was so while the
guest worked: of an epoch no more time counts as out of bounds than it worked in, and an ordinary epoch's length.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dilaton.measure.reasons import Verdict
from dilaton.run.adaptive.epoch import Decision, Epoch

VIOLATION_EPOCHS = 2


@dataclass(frozen=True)
class Span:
    """Epochs out of bounds in a row.

    Attributes:
        begin_ns, end_ns: Since the run's virtual 0.
        what: The worst that the last of them showed.
        tdf: The highest that there was in them, which was not enough.
        tdf_needed: The TDF with which a run is to begin again, as far as that is known while they last.
        epochs: How many.
    """

    begin_ns: int
    end_ns: int
    what: str
    tdf: Fraction
    tdf_needed: Fraction
    epochs: int = 1

    @property
    def is_violation(self) -> bool:
        """See the head of this file."""
        return self.epochs >= VIOLATION_EPOCHS


class Ledger:
    """The sum of all epochs of a run."""

    def __init__(self, epoch_ns: int) -> None:
        """Begins with none.

        Args:
            epoch_ns: How long an epoch is at least, in virtual time.
        """
        self._epoch_ns = epoch_ns
        self.epochs = 0
        self.virtual_ns = 0
        self.spans: list[Span] = []
        """Out of bounds, in the order of time."""
        self.is_out = False
        """Whether the last of them goes on."""
        self._host_ns = 0.0
        self._out_ns = 0

    def add(self, seen: Epoch, decision: Decision, verdict: Verdict) -> None:
        """Enters an epoch, what was decided after it, and the verdict on it."""
        self.epochs += 1
        passed_ns = seen.end_ns - seen.begin_ns
        self.virtual_ns += passed_ns
        self._host_ns += passed_ns * float(seen.tdf)
        was_out, self.is_out = self.is_out, verdict.level != "valid"
        if self.is_out:
            self._out_ns += min(passed_ns, round(seen.busy * passed_ns) + self._epoch_ns)
            what, needed = verdict.reasons[0].what, max(decision.wanted, seen.tdf)
            if was_out:
                last = self.spans[-1]
                tdf, needed = max(seen.tdf, last.tdf), max(needed, last.tdf_needed)
                self.spans[-1] = Span(last.begin_ns, seen.end_ns, what, tdf, needed, last.epochs + 1)
            else:
                self.spans.append(Span(seen.begin_ns, seen.end_ns, what, seen.tdf, needed))

    @property
    def tdf_mean(self) -> float | None:
        """Over virtual time."""
        return self._host_ns / self.virtual_ns if self.virtual_ns else None

    @property
    def out_share(self) -> float:
        """The share of virtual time that was out of bounds, 0..1."""
        return self._out_ns / self.virtual_ns if self.virtual_ns else 0.0
