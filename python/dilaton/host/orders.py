"""What a guest's clock can be ordered to do, whatever kind of guest it is."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

NEVER_NS = 2**64 - 1
"""An instant that is not reached: no end, no timer."""

FACTOR_MIN, FACTOR_MAX = Fraction(1, 10**9), Fraction(10**6)
"""The bounds of TDFs and speeds."""

REPEATABLE_DATE_NS = 1_767_225_600 * 10**9
"""The date, 1 January 2026, at the start of a guest that does the same with the same seed."""

Drive = Literal["wall", "work", "event"]
DRIVES: tuple[Drive, ...] = get_args(Drive)


@dataclass(frozen=True)
class Orders:
    """What the host orders a clock to do.

    Attributes:
        tdf: its pace, host seconds per virtual second; None holds it.
        drive: what drives it.
        end_ns: the virtual instant at which it stops by itself, whatever runs; None for nowhere.
        max_speed: how fast virtual time may run at most, idle time included, in virtual seconds per host second; None
            for no bound. A pace that is faster is slowed down to it.
        since_host_ns: since when it runs so, on the wall drive, by the host's monotonic clock; None for when it gets to
            see this. Clocks that are to stay one virtual time need the same moment.

    Raises:
        ValueError: a TDF or a speed that is not above 0 and at most a million, or an end that is no instant.
    """

    tdf: Fraction | None
    drive: Drive = "wall"
    end_ns: int | None = None
    max_speed: Fraction | None = None
    since_host_ns: int | None = None

    def __post_init__(self) -> None:
        """Checks the values."""
        for name, value in (("TDF", self.tdf), ("highest speed", self.max_speed)):
            if value is not None and not FACTOR_MIN <= value <= FACTOR_MAX:
                raise ValueError(f"{value}: a {name} is a number from {float(FACTOR_MIN):g} to {float(FACTOR_MAX):g}")
        if self.drive not in DRIVES:
            raise ValueError(f"{self.drive}: not a drive; use {' or '.join(DRIVES)}")
        if self.end_ns is not None and not 0 <= self.end_ns < NEVER_NS:
            raise ValueError(f"{self.end_ns}: not an instant, which is a number of nanoseconds since the guest's start")

    @property
    def pace(self) -> Fraction | None:
        """The TDF that keeps to `max_speed` too."""
        if self.tdf is None or self.max_speed is None:
            return self.tdf
        return max(self.tdf, 1 / self.max_speed)
