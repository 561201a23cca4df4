"""What a verdict says: its reasons, and the TDF that each advises.

Lateness is virtual, and the host takes as long to serve a timer whatever the TDF. So lateness goes down as the TDF goes
up, and with it busy periods and the busy fraction: this is what the advice is reckoned from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dilaton.measure import numbers
from dilaton.measure.observation import Observation

Level = Literal["valid", "suspect", "invalid"]

WRITE_CPU = "write a cpu: for nodes that compute without a pause"
"""What helps where programs compute for a given time, which they do at every TDF."""

REACH_MAX = 100.0
"""A TDF so many times as high is no advice: nobody waits for such a run, and what needs it does not end with it."""


@dataclass(frozen=True)
class Reason:
    """A bound that was exceeded.

    Attributes:
        level: `suspect` or `invalid`.
        what: What was seen, as a sentence with its numbers.
        value, bound: What was seen and what it may be, in `unit`.
        advice: What to do.
        tdf: The TDF that the advice names, with which a run may begin again: enough by what was seen, and maybe more
            than that. None where it names none, or what was seen was a moment of the host's.
    """

    level: Level
    what: str
    value: float
    bound: float
    unit: str
    advice: str
    tdf: float | None = None


@dataclass(frozen=True)
class Verdict:
    """`valid`: nothing exceeded a bound. `suspect`, `invalid`: see `reasons`, the worst first."""

    level: Level
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, reasons: Iterable[Reason]) -> Verdict:
        """The verdict for these reasons."""
        ordered = sorted(reasons, key=lambda reason: reason.level != "invalid")
        return cls(ordered[0].level if ordered else "valid", tuple(ordered))


def late(level: Level, what: str, late_ns: float, bound_ns: float, seen: Observation) -> Reason:
    """What is later than it may be, at this TDF."""
    factor = late_ns / bound_ns
    return Reason(level, what, late_ns / 1e3, bound_ns / 1e3, "us", raise_or_change(seen, factor), enough(seen, factor))


def slow(seen: Observation, what: str, share: float, bound: float, factor: float) -> Reason:
    """What a CPU that many times as fast would not show."""
    advice = f"{raised(seen, factor)}, or {WRITE_CPU}"
    if factor > REACH_MAX:
        below = _tdf(seen.tdf * factor)
        advice = (
            f"{WRITE_CPU}, as no tdf below {below} is enough; or let run --confirm tell whether results depend on it"
        )
    return Reason("suspect", what, share, bound, "ratio", advice, enough(seen, factor))


def raise_or_change(seen: Observation, factor: float) -> str:
    """What to do about lateness that is `factor` times what it may be."""
    advice = raised(seen, factor)
    return f"{advice}, or use the work drive" if seen.drive == "wall" else advice


def raised(seen: Observation, factor: float) -> str:
    """The advice to raise the TDF, or that of a guest with one of its own, so many times."""
    tdf = _tdf(seen.tdf * factor)
    match seen.own_tdf:
        case (guest,):
            return f"write guests: {{{guest}: {{tdf: {tdf}}}}}"
        case (guest, node):
            return f"write guests: {{{guest}: {{tdf: {tdf}}}}} or, where {node} has a cpu, cpu: {tdf} there"
    return f"write tdf: {tdf} in place of auto" if seen.is_adaptive else f"raise tdf to {tdf}"


def enough(seen: Observation, factor: float) -> float | None:
    """The TDF that `raised` names; None where it is that of a guest."""
    return None if seen.own_tdf else float(_tdf(seen.tdf * factor))


def _tdf(wanted: float) -> str:
    """The next larger of 1, 2, 5, 10, 20, …; for less than one, of 0.1, 0.2, 0.5."""
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next((step for step in (1, 2, 5) if wanted <= step * power * 1.0001), 10)
    return f"{step * power:g}" if step * power < 1e6 else f"{step * power:.0f}"


def duration(nanoseconds: float) -> str:
    """Nanoseconds as a reason says them."""
    return numbers.duration(nanoseconds / 1e9, 3)


def percent(ratio: float) -> str:
    """A ratio as a reason says it."""
    return f"{numbers.significant(ratio * 100, 3)} %"
