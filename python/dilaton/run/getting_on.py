"""Whether a run gets on: who waits for one that does not, or whose programs do not, is told so, and why that may be.

Three things keep a run from its end that nothing else ends, and that nobody could tell from a run that takes long:

- **Virtual time stands.** Nobody holds the clock, and it has shown one instant for a whole window of the host's time.
- **A kernel comes to little but its own timers.** It has a tick each 10 ms of virtual time. At a TDF of .001 that is
  10 us of a CPU, less than a tick takes, and what is left for programs is next to nothing, also for the agent, which
  would end the run. Virtual time goes on. It shows in how late timers are: more than half of them by more than a tick.
- **A timer of CPU time on the event drive.** Computing takes no CPU time there, so a program that calls its kernel
  again and again until such a timer has expired may do so for ever. That one is waited for cannot be seen, but that one
  was set can, and that the run is slower than the host's clock.

A run that is slow and gets on is not told of. What is seen depends on the host, so it is no event of the run. It is
told among the changes of the clock, once for each of the three, in `dilaton ps` as long as it is so, and in the reason
of a run that is interrupted then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dilaton.host.counters import Counters, Lack
from dilaton.host.messages import Event, WhoComputes
from dilaton.host.port import Guests
from dilaton.measure import numbers
from dilaton.plan.model import Plan
from dilaton.run.record.processes import processes_from_events

LOOK_HOST_S = 1.0

WINDOW_HOST_S = 30.0
"""For so long it has to be so, where nothing else is asked for."""

SPINNING_LOOK_HOST_S = 0.25
"""Host seconds between looks whether a program spins, on the event drive."""

TICK_S = Fraction(1, 100)
"""Of guests' kernels, virtual time."""

LATE_BIN = 25
"""From this bin of a histogram on timers are more than a tick late: by 2^24 ns and more."""

TIMERS_MIN = 1000
"""Of fewer in a window nothing is said."""

Finding = Literal["stands", "late", "cpu timer"]


@dataclass(frozen=True)
class Look:
    """What was seen at a moment of the host: virtual now, and what the guests had counted."""

    host_s: float
    virtual_ns: int
    counted: Sequence[Counters]


class GettingOn:
    """Looks whether a run gets on."""

    def __init__(
        self,
        plan: Plan,
        guests: Guests,
        events: Iterable[Event],
        tdf: Callable[[], Fraction],
        tell: Callable[[str], None],
        window_host_s: float = WINDOW_HOST_S,
    ) -> None:
        """Of a run whose clock is about to be released.

        Args:
            plan: Of the run.
            guests: Those of the plan.
            events: What has happened so far.
            tdf: The present one.
            tell: Told what keeps the run from getting on, once for each finding.
            window_host_s: For how many seconds of the host it has to be so.
        """
        self._plan, self._guests, self._events, self._tdf, self._tell = plan, guests, events, tdf, tell
        self._window_host_s = window_host_s
        self._begin: Look | None = None
        self._told: set[Finding] = set()
        self.notice: str | None = None
        """What keeps the run from getting on, as seen in the last window; None: nothing that is known."""

    async def follow(self) -> None:
        """Looks until it is cancelled."""
        while True:
            self.look(time.monotonic())
            await asyncio.sleep(LOOK_HOST_S)

    def look(self, host_s: float) -> None:
        """Looks, at a moment of the host's monotonic clock; a window in which the clock was held begins anew."""
        virtual_ns, is_held = self._guests.look()
        begin = self._begin
        if is_held:
            self._begin = self.notice = None
        elif begin is None or host_s - begin.host_s >= self._window_host_s:
            self._begin = Look(host_s, virtual_ns, [guest.counters() for guest in self._guests.all])
            if begin is not None:
                self._judge(begin, self._begin)

    def _judge(self, begin: Look, end: Look) -> None:
        finding, self.notice = self._found(begin, end) or (None, None)
        if finding is not None and self.notice is not None and finding not in self._told:
            self._told.add(finding)
            self._tell(self.notice)

    def _found(self, begin: Look, end: Look) -> tuple[Finding, str] | None:
        host_s = end.host_s - begin.host_s
        for_long = f"in the last {numbers.duration(host_s, digits=2)} of host time"
        is_event = self._plan.time.drive == "event"
        if end.virtual_ns == begin.virtual_ns:
            who = self._there(number for number, now in enumerate(end.counted) if now.virtual_ns <= end.virtual_ns)
            why = (
                "what it does may take no virtual time: try --drive work"
                if is_event
                else "it may get no CPU of the host"
            )
            return "stands", f"has not moved {for_long}: {who}; {why}, or this is a fault of Dilaton's"
        late = [number for number, both in enumerate(zip(begin.counted, end.counted, strict=True)) if _is_late(*both)]
        if late and not is_event:
            own_tdf = self._plan.guests[late[0]].tdf
            tdf = own_tdf.ratio if own_tdf else self._tdf()
            tick = numbers.duration(float(TICK_S * tdf), digits=2)
            return "late", (
                f"goes on, and programs may not: {for_long} more than half of all timers were later than a tick of the "
                f"kernel, {numbers.duration(float(TICK_S))}: {self._there(late)}; at TDF {numbers.tdf(tdf)} a tick is "
                f"{tick} of a CPU, which leaves little or nothing for programs, and the run may never end: raise tdf"
            )
        set_by = [number for number, now in enumerate(end.counted) if Lack.CPU_TIMER in now.lacks]
        if set_by and is_event and (end.virtual_ns - begin.virtual_ns) / 1e9 < host_s:
            return "cpu timer", (
                f"goes on more slowly than the host's: {self._there(set_by)}; a program there has set a timer of CPU "
                "time, and computing takes none on the event drive: if it waits for that, the run may never end; use "
                "--drive work"
            )
        return None

    def _there(self, guests: Iterable[int]) -> str:
        """Guests, by number, with the processes of the lab that run in them."""
        names = [self._plan.guests[number].name for number in guests]
        homes = {node.name: node.guest for node in self._plan.nodes}
        running = [
            f"{process.node}/{process.name}"
            for process in processes_from_events(self._plan, self._events)
            if process.outcome == "running" and homes[process.node] in names
        ]
        where = f"guest {', '.join(names)}"
        return f"{where}, with {', '.join(running)}" if running else where


def _is_late(before: Counters, now: Counters) -> bool:
    """Whether more than half of the timers that were served in between were more than a tick late."""
    served = [count - earlier for count, earlier in zip(now.timers.counts, before.timers.counts, strict=True)]
    return sum(served) >= TIMERS_MIN and 2 * sum(served[LATE_BIN:]) > sum(served)


async def name_spinning(guests: Guests) -> None:
    """Has the agents name each program that a clock finds spinning, while the run goes on, on the event drive."""
    named = [0] * len(guests.all)
    while True:
        for number, guest in enumerate(guests.all):
            if (found := guest.counters().spinning) > named[number]:
                named[number] = found
                await guest.send(WhoComputes())
        await asyncio.sleep(SPINNING_LOOK_HOST_S)
