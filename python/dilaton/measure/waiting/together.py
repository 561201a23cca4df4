"""What part of a program's time a wait at its begin is. Pure.

**Problem.** Programs that a lab begins at one instant begin one after the other, as their guest has one CPU and each
takes some milliseconds of it. A flow that begins 20 ms later than another finds another queue, and so does a `ping`:
five pings in the first .4 s of a flow measured 72 ms in place of 85, since the queue was filled 35 ms later than on
machines of their own. No packet was late, and the CPU was idle for .87 of the run.

**The measure.** What a program finds depends on how much later than the others it began, or went on, as a part of the
time that it looks at: from the begin of the first program that talks over a link of its way meanwhile, to its own end.
That is the time after which a queue, a window or a share is what it is, and of which the program measures the last
part: pings in 24 ms of a queue that was 28 ms of 561 ms late measured 4.2 % less. Programs that have no link in common
do not notice each other, and one alone finds the network the same whenever it begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Life:
    """When a program was there, virtual seconds since virtual 0, and over which directions of links it talks."""

    node: str
    process: str
    begin_s: float
    end_s: float
    way: frozenset[str] = frozenset()
    is_background: bool = False

    @property
    def seconds(self) -> float:
        """How long that was."""
        return self.end_s - self.begin_s


@dataclass(frozen=True)
class Together:
    """For how long a program looked at what it did beside others, virtual seconds."""

    process: str
    seconds: float


def shortest(lives: Iterable[Life]) -> Together | None:
    """The shortest such time of these programs; None where each is alone."""
    known = list(lives)
    found = []
    for one in known:
        others = [other.begin_s for other in known if other is not one and _meet(one, other)]
        if others:
            found.append(Together(f"{one.node}/{one.process}", one.end_s - min(one.begin_s, *others)))
    return min(found, key=lambda each: each.seconds, default=None)


def _meet(one: Life, other: Life) -> bool:
    return bool(one.way & other.way) and one.begin_s < other.end_s and other.begin_s < one.end_s
