"""What single operations, or a throughput in the course of time, say of a part of a run, and when they had recovered.

An operation belongs to the part of the run in which it began; one that has succeeded counts for the rate where it
ended. Where there is no operation at all nothing is known, not even that there are no errors.

**Time to recover.** From the begin of a fault on, time is cut into bins that hold ten operations of the mean before,
but at least 100 ms. The process has recovered with the first bin from which on none is lower than that mean less a
tolerance. So the answer is a multiple of the bin, and 0 if nothing of the fault is seen. What is lower in the last bin
has not recovered. iperf3's intervals are bins already.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import isinf

BIN_S_MIN = 0.1

OPERATIONS_PER_BIN = 10
"""How many operations a bin has at the mean rate before the fault. As many are needed before it to tell that mean."""


@dataclass(frozen=True)
class Operation:
    """Something that a program did, from when until when, seconds since virtual 0, and whether it went well."""

    begin_s: float
    end_s: float
    ok: bool


@dataclass(frozen=True)
class Interval:
    """What was carried in an interval, bit/s."""

    begin_s: float
    end_s: float
    throughput: float


@dataclass(frozen=True)
class History:
    """What is known of a process: its operations, or its throughput in adjacent intervals, in the order of time."""

    operations: Sequence[Operation] = field(default_factory=tuple)
    intervals: Sequence[Interval] = field(default_factory=tuple)

    def measured(self, name: str, begin_s: float, end_s: float) -> float | int | None:
        """A metric (`lab/parts/spans.py`) of a part of the run; None: nothing is known of that."""
        if name == "throughput":
            return self._throughput(begin_s, end_s)
        began = [one for one in self.operations if begin_s <= one.begin_s < end_s]
        good = [one for one in began if one.ok]
        match name:
            case "operations" if self.operations:
                return len(began)
            case "errors" if began:
                return len(began) - len(good)
            case "availability" if began:
                return len(good) / len(began)
            case "rate" if self.operations:
                return self._rate(begin_s, end_s)
        kind, _, which = name.partition(".")
        return _latency(which, [one.end_s - one.begin_s for one in good]) if kind == "latency" and good else None

    def windows(self, name: str, begin_s: float, end_s: float, every_s: float) -> list[float | int | None]:
        """A metric of each whole window of a part of the run, in the order of time; None: nothing is known of that one.

        A part without a begin or an end of its own begins with the first operation or interval, and ends with the last.
        """
        both: list[Operation | Interval] = [*self.operations, *self.intervals]
        if not both:
            return []
        begin_s = min(one.begin_s for one in both) if isinf(begin_s) else begin_s
        end_s = max(one.end_s for one in both) if isinf(end_s) else end_s
        operations = sorted(self.operations, key=lambda one: one.begin_s)
        begins = [one.begin_s for one in operations]
        good_ends = sorted(one.end_s for one in operations if one.ok)
        found: list[float | int | None] = []
        # A window of the length of the part is one, whatever became of its instants as decimal fractions.
        for number in range(int((end_s - begin_s) / every_s + 1e-9)):
            edges = (begin_s + number * every_s, begin_s + (number + 1) * every_s)
            first, last = (bisect_left(begins, edge) for edge in edges)
            part = History(operations[first:last], self.intervals)
            if name == "rate":
                ended = bisect_left(good_ends, edges[1]) - bisect_left(good_ends, edges[0])
                found.append(ended / every_s if self.operations else None)
            elif name == "operations":
                found.append(last - first if self.operations else None)
            else:
                found.append(part.measured(name, *edges))
        return found

    def time_to_recover(self, name: str, fault_s: float, dip: float) -> float | None:
        """Seconds from the begin of a fault until the rate, or the throughput, stays as high as before, less `dip`.

        Returns:
            None if it does not recover, or too little is known of the time before.
        """
        if name == "throughput":
            before = self._throughput(float("-inf"), fault_s)
            later = [(one.begin_s, one.throughput) for one in self.intervals if one.end_s > fault_s]
        else:
            good = [one.end_s for one in self.operations if one.ok]
            first_s = min((one.begin_s for one in self.operations), default=fault_s)
            earlier = sum(end_s < fault_s for end_s in good)
            if earlier < OPERATIONS_PER_BIN:
                return None
            before = earlier / (fault_s - first_s)
            later = self._bins(good, fault_s, max(BIN_S_MIN, OPERATIONS_PER_BIN / before))
        if before is None or not later:
            return None
        least = before * (1 - dip)
        tail = list(takewhile(lambda one: one[1] >= least, reversed(later)))
        return max(0.0, round(tail[-1][0] - fault_s, 9)) if tail else None

    def _bins(self, good: Sequence[float], since_s: float, bin_s: float) -> list[tuple[float, float]]:
        """When each whole bin begins, and its rate; up to the last operation, whether that went well or not."""
        end_s = max(one.end_s for one in self.operations)
        count = int((end_s - since_s) / bin_s)
        found = Counter(int((end - since_s) / bin_s) for end in good if end >= since_s)
        return [(since_s + number * bin_s, found[number] / bin_s) for number in range(count)]

    def _rate(self, begin_s: float, end_s: float) -> float | None:
        """The rate between the first and the last operation."""
        begin_s = max(begin_s, min(one.begin_s for one in self.operations))
        end_s = min(end_s, max(one.end_s for one in self.operations))
        if end_s <= begin_s:
            return None
        return sum(one.ok and begin_s <= one.end_s <= end_s for one in self.operations) / (end_s - begin_s)

    def _throughput(self, begin_s: float, end_s: float) -> float | None:
        whole = [one for one in self.intervals if begin_s <= one.begin_s and one.end_s <= end_s]
        spans = [one.end_s - one.begin_s for one in whole]
        bits = sum(one.throughput * span_s for one, span_s in zip(whole, spans, strict=True))
        return bits / sum(spans) if sum(spans) > 0 else None


def _latency(which: str, found: Sequence[float]) -> float | None:
    match which:
        case "avg":
            return statistics.fmean(found)
        case "max":
            return max(found)
        case "p50" | "p95" | "p99":
            # Of a single value there are no quantiles, though all of them are that value.
            several = [*found, found[0]] if len(found) == 1 else found
            return statistics.quantiles(several, n=100, method="inclusive")[int(which[1:]) - 1]
    return None
