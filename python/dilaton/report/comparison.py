"""Compares runs, metric by metric, with the first of them as the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from dilaton.measure.statistics import Distance, Summary, are_different, correlation_time, distance, summarise
from dilaton.report.figures.distributions import draw_ecdf
from dilaton.report.metrics import Metric
from dilaton.report.style import COLOURS, WIDTH_IN, Drawing, below, unit

TOLERANCE = 0.05
FIGURE_METRICS_MAX = 8


@dataclass(frozen=True)
class Row:
    """One metric of one run beside that of the reference.

    Attributes:
        metric, unit: What is compared.
        run: The name of the run.
        reference, other: Both in brief.
        distance: Between them.
        is_different: Whether they differ (see `dilaton.measure.statistics`).
    """

    metric: str
    unit: str
    run: str
    reference: Summary
    other: Summary
    distance: Distance
    is_different: bool


@dataclass(frozen=True)
class Comparison:
    """The outcome. `missing`: metrics that some run does not have, which are not compared."""

    rows: list[Row]
    missing: list[str]

    @property
    def different(self) -> list[str]:
        """The metrics that differ in some run."""
        return list(dict.fromkeys(row.metric for row in self.rows if row.is_different))

    @property
    def verdict(self) -> str:
        """In a sentence."""
        if not self.rows:
            return "nothing to compare: the runs have no metric in common"
        return f"different in {', '.join(self.different)}" if self.different else "indistinguishable"


def compare(runs: Mapping[str, Mapping[str, Metric]], tolerance: float = TOLERANCE) -> Comparison:
    """Compares runs.

    Args:
        runs: The metrics of each, by the run's name; the first is the reference.
        tolerance: A relative difference up to this is of no relevance, 0..1.
    """
    names = list(runs)
    reference = runs[names[0]]
    everywhere = [name for name in reference if all(name in runs[each] for each in names)]
    pairs = [(metric, run) for metric in everywhere for run in names[1:]]
    distances = [_distance(reference[metric], runs[run][metric]) for metric, run in pairs]
    rows = [
        Row(
            metric,
            reference[metric].unit,
            run,
            summarise(reference[metric].values),
            summarise(runs[run][metric].values),
            apart,
            is_different,
        )
        for (metric, run), apart, is_different in zip(
            pairs, distances, are_different(distances, tolerance), strict=True
        )
    ]
    known = dict.fromkeys(name for run in runs.values() for name in run)
    return Comparison(rows, [name for name in known if name not in everywhere])


def _distance(reference: Metric, other: Metric) -> Distance:
    times = _correlation_time(reference, other), _correlation_time(other, reference)
    return distance(reference.values, other.values, min(times))


def _correlation_time(metric: Metric, beside: Metric) -> float:
    places = metric.places()
    return correlation_time(metric.values, np.interp(places, *beside.means()), places, metric.whose)


def draw_comparison(runs: Mapping[str, Mapping[str, Metric]], names: Sequence[str]) -> Drawing:
    """Overlaid distributions of metrics, and beside them the series where they are some.

    Args:
        runs: As for `compare`.
        names: The metrics to draw; at most `FIGURE_METRICS_MAX` are.
    """
    shown = list(names[:FIGURE_METRICS_MAX])
    figure = Figure(figsize=(WIDTH_IN, 1.8 * len(shown) + 0.4))
    panels = figure.subplots(len(shown), 2, squeeze=False)
    for name, (left, right) in zip(shown, panels, strict=True):
        for number, (run, metrics) in enumerate(runs.items()):
            metric = metrics[name]
            style = {"color": COLOURS[number % len(COLOURS)], "linestyle": ["-", "--", "-.", ":"][number % 4]}
            draw_ecdf(left, metric.values, label=run, **style)
            across = metric.t_s if metric.t_s is not None else range(1, len(metric.values) + 1)
            right.plot(across, metric.values, linewidth=0.7, **style)
        left.set_title(name)
        left.set_ylabel("share of values")
        left.set_ylim(0, 1)
        right.set_xlabel("virtual time (s)" if metric.t_s is not None else "number of the value")
        unit(left.xaxis, metric.unit if metric.unit != "packets" else "")
        unit(right.yaxis, metric.unit if metric.unit != "packets" else "")
    handles, labels = panels[0][0].get_legend_handles_labels()
    below(figure, handles, labels)
    caption = f"Distributions and series of {len(shown)} of {len(names)} metrics of {len(runs)} runs, overlaid."
    return Drawing("comparison", "Comparison", caption, figure)
