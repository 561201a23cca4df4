"""Finds in what a program printed its single operations, or its throughput in the course of time.

A program of one's own prints a line of JSON for each operation, `{"begin": 1000.25, "end": 1000.31, "ok": true}`, with
the seconds of its clock (CLOCK_REALTIME, `time.time()` in Python); other lines and fields are passed over. ping's
requests are operations, taken to have left evenly; and so are the requests in an access log, which has whole seconds
and no latencies. Of iperf3 there are intervals, which its own clock counts from the begin of the test on, or from the
end of what `-O` omits: they are counted back from the end of the process, and so are right within some round trips.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dilaton.measure.operations.history import History, Interval, Operation
from dilaton.measure.results import access_log, iperf3, ping
from dilaton.measure.results.command import unwrap

Reader = Callable[[Sequence[str], str, float, float, float], History]
"""Takes the arguments, the output, begin and end of the process since virtual 0, and the date of that, in seconds."""


def history_of(argv: Sequence[str], stdout: str, start_s: float, end_s: float, date_s: float) -> History:
    """What a process did in the course of time.

    Args:
        argv: Its command, perhaps behind wrappers.
        stdout: What it printed.
        start_s, end_s: Its begin and end, since virtual 0.
        date_s: The date of virtual 0, seconds since 1970.
    """
    program, arguments = unwrap(argv)
    return READERS.get(program, _own)(arguments, stdout, start_s, end_s, date_s)


def _own(_: Sequence[str], stdout: str, start_s: float, end_s: float, date_s: float) -> History:
    found = [operation for line in stdout.splitlines() if (operation := _operation(line, date_s))]
    return History(operations=sorted(found, key=lambda one: one.begin_s))


def _operation(line: str, date_s: float) -> Operation | None:
    if not line.startswith("{"):
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match said:
        case {"begin": int() | float() as begin, "end": int() | float() as end, "ok": bool() as ok}:
            if math.isfinite(begin) and math.isfinite(end) and begin <= end:
                return Operation(begin - date_s, end - date_s, ok)
    return None


def _ping(arguments: Sequence[str], stdout: str, start_s: float, end_s: float, date_s: float) -> History:
    result, every = ping.parse(arguments, stdout), ping.spacing_s(arguments, stdout)
    if not result or "error" in result or every is None:
        return History()
    times = dict(zip(reversed(result["requests"]), reversed(result["samples"]), strict=True))
    begins = (start_s + number * every for number in range(result["sent"]))
    return History([Operation(begin, begin + times.get(n, 0.0), n in times) for n, begin in enumerate(begins)])


def _access_log(_: Sequence[str], stdout: str, start_s: float, end_s: float, date_s: float) -> History:
    found = [Operation(second - date_s, second - date_s, ok) for second, ok in access_log.requests(stdout)]
    return History(operations=found)


def _iperf3(arguments: Sequence[str], stdout: str, start_s: float, end_s: float, date_s: float) -> History:
    return History(intervals=intervals_of(iperf3.parse(arguments, stdout) or {}, end_s))


def intervals_of(result: Mapping[str, Any], end_s: float) -> list[Interval]:
    """The intervals of iperf3's result at the virtual seconds at which they were, by the end of the process."""
    intervals = result.get("intervals") or []
    zero_s = end_s - max((each["end_s"] for each in intervals), default=0.0)
    return [Interval(zero_s + one["start_s"], zero_s + one["end_s"], one["throughput"]) for one in intervals]


READERS: dict[str, Reader] = {
    "apache2": _access_log,
    "httpd": _access_log,
    "iperf3": _iperf3,
    "nginx": _access_log,
    "ping": _ping,
    "ping4": _ping,
    "ping6": _ping,
}
"""The sources, by the base name of the program; any other one prints lines of its own."""
