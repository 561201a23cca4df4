"""Empirical distribution functions (ECDF) and histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from dilaton.plan.network.bounds import Network
from dilaton.report.style import BLACK, BLUE, LINES_MAX, ORANGE, RED, Drawing, axes, legend, unit

SPREAD_LINEAR_MAX = 20
"""How many times larger than a small value the largest may be on a linear axis."""

STEPS_MIN = 10
"""Fewer values are drawn one by one: steps would suggest a distribution that nobody has measured."""
STEPS_MAX = 2000
"""An ECDF of more values is drawn through so many of its quantiles, which no eye tells from all."""


def draw_ecdf(where: Axes, values: Any, **options: Any) -> None:
    """Draws an ECDF on axes, or of few values each of them, as high as the share of those that are not larger."""
    ordered = np.sort(np.asarray(values, dtype=float))
    ordered = ordered[np.isfinite(ordered)]
    if not len(ordered):
        return
    ratios = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) < STEPS_MIN:
        where.plot(
            ordered, ratios, **{**options, "linestyle": "none", "marker": "o", "markersize": 4, "clip_on": False}
        )
        return
    if len(ordered) > STEPS_MAX:
        at = np.unique(np.linspace(0, len(ordered) - 1, STEPS_MAX).astype(int))
        ordered, ratios = ordered[at], ratios[at]
    where.step(np.concatenate([ordered[:1], ordered]), np.concatenate([[0.0], ratios]), where="post", **options)


def ecdfs(name: str, title: str, caption: str, series: Mapping[str, Any], label: str, symbol: str) -> Drawing:
    """A figure with an ECDF for each series, at most `LINES_MAX`; over a logarithmic axis when values are far apart."""
    figure, (where,) = axes()
    for number, (each, values) in enumerate(list(series.items())[:LINES_MAX]):
        draw_ecdf(where, values, label=each, linestyle=["-", "--", "-."][number % 3])
    values = np.concatenate([np.asarray(each, float) for each in list(series.values())[:LINES_MAX]])
    if len(values) and np.quantile(values, 0.01) > 0 and values.max() > SPREAD_LINEAR_MAX * np.quantile(values, 0.01):
        where.set_xscale("log")
    where.set_xlabel(label)
    unit(where.xaxis, symbol)
    where.set_ylabel("share of values")
    where.set_ylim(0, 1)
    legend(where)
    return Drawing(name, title, caption, figure)


def draw_lateness(counts: Sequence[int], network: Network) -> Drawing:
    """The histogram of lateness, with the bounds of the verdict.

    Args:
        counts: As in `Fidelity.lateness_ns_counts`.
        network: What the plan asks for.
    """
    figure, (where,) = axes()
    last = max((number for number, count in enumerate(counts) if count), default=1)
    lefts = [0.5] + [2.0 ** (number - 1) for number in range(1, last + 1)]
    widths = [0.5] + [2.0 ** (number - 1) for number in range(1, last + 1)]
    total = max(1, sum(counts))
    shares = [count / total for count in counts[: last + 1]]
    where.bar(
        [left * 1e-9 for left in lefts],
        shares,
        [width * 1e-9 for width in widths],
        align="edge",
        color=BLUE,
        linewidth=0,
    )
    where.set_xscale("log")
    where.set_yscale("log")
    where.set_ylim(0.5 / total, 2)
    where.axhline(0.01, color=BLACK, linewidth=0.5, linestyle=":")
    bounds = []
    if network.frame_ns_min:
        bounds.append((network.frame_ns_min, ORANGE, f"a full frame on {network.frame_link}"))
    if network.delay_ns_min:
        share = network.delay_share_max
        bounds.append((network.delay_ns_min * share, RED, f"{share * 100:g} % of the delay of {network.delay_link}"))
    for bound_ns, colour, text in bounds:
        where.axvline(bound_ns * 1e-9, color=colour, linestyle="--", label=text)
    where.set_xlabel("lateness of timers, virtual (leftmost: on time)")
    where.set_ylabel("share of timers")
    unit(where.xaxis, "s")
    legend(where)
    caption = (
        f"How late {total} timers were served, and the bounds of the verdict: at most 1 % (dotted) of them may be to "
        "the right of a dashed line."
    )
    return Drawing("lateness", "Lateness", caption, figure)
