"""What part of a program's time a wait at its begin is. Pure.

**Problem.** Programs that a lab begins at one instant begin one after the other, as their guest has one CPU and each
takes some milliseconds of it. A flow that begins 20 ms later than another finds another queue, and so does a `ping`:
five pings in the first .4 s of a flow measured 72 ms in place of 85, since the queue was filled 35 ms later than on
machines of their own. No packet was late, and the CPU was idle for .87 of the run.

**The measure.** What a program finds depends on how much later than the others it began, or went on, as a part of the
time that it looks at: from the begin of the first program that talks over a link of its way meanwhile, to its own end.
That is the time after which a queue, a window or a share is what it is, and of which the program measures the last
part: pings in 24 ms of a queue that was 28 ms of 561 ms late measured 4.2 % less. Programs that have no link in common
do not notice each other, and one alone finds the network the same whenever it begins. By how much later it began is
known where the clock notes when programs begin to talk (`begins.py`), and bounded by the longest wait where not.

**How much depends on others.** Programs notice each other in queues. Where all that they ask of a link is half of what
it carries at most, there is next to none: what comes then waits for half a frame, in the mean (M/D/1). And a flow that
takes what there is gets C - D of a link of rate C beside others that ask for D, and at most C while they are not there
yet: the part D / (C - D) of what it gets depends on them. What else meets in a full link, does so wholly.

Where all that they ask of a link fits into it, as what is more has stayed in narrower links before, none is full. What
comes then waits for frames: for one of each other program, if all come at once, or for as many as there are in a queue
of what comes at random (M/D/1), whichever is more. As a part of its round trip that is what a program sees of others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dilaton.measure.waiting.asked import FRAME_BITS
from dilaton.measure.waiting.begins import Begun

FREE = 0.5
"""The share of a link that may be asked for so that next to nothing waits for it."""


@dataclass(frozen=True)
class Life:
    """When a program was there, and what it asked of which links.

    Attributes:
        node, process: Which it is.
        begin_s, end_s: Virtual seconds since virtual 0.
        way: The directions of links over which it talks, each with its lowest rate, bit/s, where that is known.
        is_background: Whether the run did not wait for it.
        asks_bit_per_s: What it asked of them at most; None: all that there is.
        round_trip_s: The shortest of its ways there and back, without queues; 0: not known.
        begun: When it began to talk, and should have; None: not known, of it or of those whom it talks to.
    """

    node: str
    process: str
    begin_s: float
    end_s: float
    way: Mapping[str, int | None] = field(default_factory=dict)
    is_background: bool = False
    asks_bit_per_s: float | None = None
    round_trip_s: float = 0.0
    begun: Begun | None = None

    @property
    def seconds(self) -> float:
        """How long that was."""
        return self.end_s - self.begin_s

    @property
    def most_bit_per_s(self) -> float:
        """The most that it can have taken."""
        asked = math.inf if self.asks_bit_per_s is None else self.asks_bit_per_s
        return min([asked, *(rate for rate in self.way.values() if rate)])


@dataclass(frozen=True)
class Together:
    """A program that looked at what it did beside others.

    Attributes:
        process: Its node and name.
        begin_s, end_s: From when until when, virtual seconds since virtual 0.
        part: The part of what it measured that depends on whether they were there, 0..1.
        apart_s: By how much further apart they and it began to talk than the lab says, virtual seconds; None: that is
            not known of all.
    """

    process: str
    begin_s: float
    end_s: float
    part: float = 1.0
    apart_s: float | None = None

    @property
    def seconds(self) -> float:
        """For how long it looked."""
        return self.end_s - self.begin_s


def beside_others(lives: Iterable[Life]) -> list[Together]:
    """The programs of these to which others matter that come later."""
    known = list(lives)
    on_ways: dict[str, list[int]] = {}
    for number, life in enumerate(known):
        for name in life.way:
            on_ways.setdefault(name, []).append(number)
    found = []
    for number, one in enumerate(known):
        # Of a thousand programs in a line each meets a few: to look at all for each of them took longer than their run.
        near = sorted({other for name in one.way for other in on_ways[name]} - {number})
        others = [known[other] for other in near if _are_at_once(one, known[other])]
        if part := max((_part(one, name, others) for name in one.way), default=0.0):
            begin_s, apart_s = _begins([one, *others])
            found.append(Together(f"{one.node}/{one.process}", begin_s, one.end_s, part, apart_s))
    return found


def _begins(lives: Sequence[Life]) -> tuple[float, float | None]:
    """When the first of some programs began, and by how much further apart they did than the lab says."""
    begun = [life.begun for life in lives if life.begun is not None]
    if len(begun) < len(lives):
        return min(life.begin_s for life in lives), None
    return min(each.at_s for each in begun), max(each.late_s_max for each in begun) - min(each.late_s for each in begun)


def _part(one: Life, name: str, others: Sequence[Life]) -> float:
    """The part of what a program measured in a direction of a link that depends on others."""
    here = [other for other in others if name in other.way]
    rate = one.way[name]
    if not here:
        return 0.0
    if rate is None:
        return 1.0
    asked = sum(other.most_bit_per_s for other in here)
    used = (asked + one.most_bit_per_s) / rate
    if used <= FREE:
        return 0.0
    if used < 1 and one.round_trip_s:
        frames = max(len(here), used / (2 * (1 - used)))
        return min(1.0, frames * FRAME_BITS / rate / one.round_trip_s)
    if one.asks_bit_per_s is not None or asked >= rate:
        return 1.0
    return min(1.0, asked / (rate - asked))


def _are_at_once(one: Life, other: Life) -> bool:
    return one.begin_s < other.end_s and other.begin_s < one.end_s
