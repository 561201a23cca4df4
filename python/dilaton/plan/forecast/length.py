"""When a run will end, told from its schedule: its instants, what waits for what, and the words of known programs.

Most runs end when their last program in the foreground does. How long some programs take, nobody can tell before;
they count as if they took no time, and the end is then the earliest one. Faults and changes of links keep no run from
ending.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dilaton.plan.course.entries import After, Awaited, Timed
from dilaton.plan.forecast.asked import asked
from dilaton.plan.model import Plan, Process, ReadyDelay, ReadyTcp


@dataclass(frozen=True)
class End:
    """When a run ends.

    Attributes:
        virtual_s: At that instant, as far as can be told.
        is_earliest: Whether it can be later.
    """

    virtual_s: float
    is_earliest: bool


def end(plan: Plan) -> End | None:
    """When a run of this plan ends by itself; None where nothing of it is known."""
    if plan.stop_after_ns is not None:
        # It is asked for where programs would go on for ever; who has others may end before.
        return End(plan.stop_after_ns / 1e9, is_earliest=False)
    moments = Moments(plan)
    ends = [moments.end(process) for process in plan.processes if not process.background]
    latest = max((instant.virtual_s for instant in ends), default=0.0)
    if latest == 0 or math.isinf(latest):
        return None
    return End(latest, is_earliest=any(instant.is_earliest for instant in ends))


class Moments:
    """The moments in the lives of a plan's entries, each told once."""

    def __init__(self, plan: Plan) -> None:
        """Takes the entries of a plan."""
        self._entries: dict[str, Process | Timed] = {entry.name: entry for entry in plan.course}
        self._entries |= {process.name: process for process in plan.processes}
        self._begins: dict[str, End] = {}

    def end(self, process: Process) -> End:
        """When a process ends; at infinity: it goes on until it is stopped."""
        begin, said = self.begin(process), asked(process.argv)
        ends = [math.inf] if said is None else [begin.virtual_s + said.seconds]
        if process.stop_ns is not None:
            ends.append(process.stop_ns / 1e9)
        if said is not None and process.timeout_ns is not None:
            ends.append(begin.virtual_s + process.timeout_ns / 1e9)
        if said is None and process.stop_ns is None:
            return End(begin.virtual_s, is_earliest=True)
        return End(max(begin.virtual_s, min(ends)), begin.is_earliest)

    def begin(self, entry: Process | Timed) -> End:
        """When an entry begins; at infinity: it waits for the end of what has none."""
        if entry.name and entry.name in self._begins:
            return self._begins[entry.name]
        if isinstance(entry, Process):
            found = [End(entry.start_ns / 1e9, is_earliest=False), *map(self._moment, entry.after)]
        elif isinstance(entry.when, After):
            moment = self._moment(entry.when.awaited)
            found = [End(moment.virtual_s + entry.when.wait_ns / 1e9, moment.is_earliest)]
        else:
            found = [End(entry.when.at_ns / 1e9, is_earliest=False)]
        begin = End(max(each.virtual_s for each in found), any(each.is_earliest for each in found))
        self._begins[entry.name] = begin
        return begin

    def _moment(self, awaited: Awaited) -> End:
        entry = self._entries[awaited.name]
        begin = self.begin(entry)
        if isinstance(entry, Timed):
            if awaited.moment != "end":
                return begin
            return End(begin.virtual_s + (entry.for_ns or 0) / 1e9, begin.is_earliest or entry.for_ns is None)
        if awaited.moment == "end" or (awaited.moment == "milestone" and entry.ready is None and not entry.background):
            return self.end(entry)
        if awaited.moment == "begin" or isinstance(entry.ready, ReadyTcp | None):
            # A server listens soon after it began; output may be that of hours.
            return begin
        if isinstance(entry.ready, ReadyDelay):
            return End(begin.virtual_s + entry.ready.delay_ns / 1e9, begin.is_earliest)
        return End(begin.virtual_s, is_earliest=True)
