"""What programs that ask and serve measured of themselves: percentiles of latency, requests in each second, flows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dilaton.report.figures.distributions import SPREAD_LINEAR_MAX
from dilaton.report.style import COLOURS, LINES_MAX, Drawing, axes, from_zero, legend, unit

_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")


def latencies(results: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """What results say of the distribution of a latency.

    Args:
        results: Of processes by name, as of wrk (`latency`) and fio (`latency` of each job and direction).

    Yields:
        A name, and the points that are known: share of the values, 0..1, and seconds; of two or more percentiles.
    """
    for name, result in results.items():
        parts = {name: result.get("latency")}
        for job, directions in result.get("jobs", {}).items():
            parts |= {f"{name} {job} {direction}": part["latency"] for direction, part in directions.items()}
        for each, latency in parts.items():
            points = sorted(_points(latency or {}))
            if len(points) > 1:
                yield each, points


def _points(latency: Mapping[str, float]) -> Iterator[tuple[float, float]]:
    for name, seconds in latency.items():
        if match := _PERCENTILE.fullmatch(name):
            yield float(match[1]) / 100, seconds


def draw_percentiles(series: Sequence[tuple[str, list[tuple[float, float]]]]) -> Drawing:
    """The percentiles as points of an ECDF, over a logarithmic axis when they are far apart."""
    figure, (where,) = axes()
    shown = series[:LINES_MAX]
    for name, points in shown:
        shares, seconds = zip(*points, strict=True)
        where.plot(seconds, shares, marker="o", markersize=2.5, label=name)
    values = [seconds for _, points in shown for _, seconds in points]
    if 0 < min(values) * SPREAD_LINEAR_MAX < max(values):
        where.set_xscale("log")
    where.set_xlabel("latency")
    unit(where.xaxis, "s")
    where.set_ylabel("share of values")
    where.set_ylim(0, 1.02)
    legend(where)
    caption = "Percentiles of latency that programs printed; straight lines join what is known."
    return Drawing("programs-percentiles", "Percentiles of latency, by program", caption, figure)


def draw_flows(flows: Sequence[tuple[str, Mapping[str, Any]]]) -> Drawing:
    """One-way delays of flows, as D-ITG prints them, a row each: from the least to the largest, a dot at the mean."""
    shown = flows[:LINES_MAX]
    figure, (where,) = axes(height_in=1.0 + 0.15 * len(shown))
    for number, (name, flow) in enumerate(shown):
        latency, colour = flow["latency"], COLOURS[number]
        where.plot([latency["min"], latency["max"]], [-number, -number], marker="|", color=colour, label=name)
        where.plot([latency["avg"]], [-number], marker="o", markersize=4, color=colour)
    least = min(flow["latency"]["min"] for _, flow in shown)
    if 0 < least * SPREAD_LINEAR_MAX < max(flow["latency"]["max"] for _, flow in shown):
        where.set_xscale("log")
    where.set_xlabel("one-way delay")
    unit(where.xaxis, "s")
    where.set_ylabel("flows")
    where.set_yticks([])
    where.margins(y=0.5 / len(shown) + 0.1)
    legend(where)
    more = f"; the first {LINES_MAX} of {len(flows)}" if len(flows) > LINES_MAX else ""
    caption = f"One-way delays of flows that ITGDec printed: the least, the mean (dots) and the largest{more}."
    return Drawing("programs-flows", "Flows, by program", caption, figure)


def draw_requests(series: Mapping[str, Sequence[int]]) -> Drawing:
    """Requests in each second of access logs, from the first request of each log on."""
    figure, (where,) = axes()
    for name, counts in list(series.items())[:LINES_MAX]:
        where.step(range(len(counts) + 1), [*counts, counts[-1]], where="post", label=name)
    where.set_xlabel("virtual time since the first request (s)")
    where.margins(x=0.01)
    where.set_ylabel("requests (1/s)")
    from_zero(where)
    legend(where)
    caption = "Requests in each second, of servers that log to their standard output."
    return Drawing("programs-requests", "Requests served, by program", caption, figure)
