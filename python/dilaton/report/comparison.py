"""Compares runs, or sets of runs, metric by metric, with the first of them as the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from dilaton.measure.numbers import counted
from dilaton.measure.relabelling import Block, least_p, sets_apart
from dilaton.measure.statistics import (
    SIGNIFICANCE,
    Distance,
    Summary,
    are_different,
    correlation_time,
    distance,
    summarise,
)
from dilaton.report.figures.distributions import draw_ecdf
from dilaton.report.metrics import Metric
from dilaton.report.style import COLOURS, WIDTH_IN, Drawing, below, unit

TOLERANCE = 0.05
FIGURE_METRICS_MAX = 8

Metrics = Mapping[str, Metric]
"""Those of a run, by name."""

Sets = Mapping[str, Mapping[str, Sequence[Metrics]]]
"""Runs, by the name of their set, and by what else tells them apart: the other fields of a sweep, "" for nothing."""


@dataclass(frozen=True)
class Row:
    """One metric of one run beside that of the reference.

    Attributes:
        metric, unit: What is compared.
        run: The name of the run.
        reference, other: Both in brief.
        distance: Between them.
        is_different: Whether they differ (see `dilaton.measure.statistics`).
        by_chance: Of sets of runs, the relative Wasserstein distance that chance exceeds in 5 of 100 cases; else NaN.
        is_untold: Whether they are as far apart as sets of so few runs can be, and by more than the tolerance.
    """

    metric: str
    unit: str
    run: str
    reference: Summary
    other: Summary
    distance: Distance
    is_different: bool
    by_chance: float = math.nan
    is_untold: bool = False


@dataclass(frozen=True)
class Together:
    """All metrics of a set of runs together beside those of the reference.

    Attributes:
        run: The name of the set.
        p: See `dilaton.measure.relabelling`.
        is_different: Whether they differ.
    """

    run: str
    p: float
    is_different: bool


@dataclass(frozen=True)
class Comparison:
    """The outcome.

    Attributes:
        rows: Metric by metric.
        missing: Metrics that some run does not have, which are not compared.
        together: Of sets of runs, each set beside the reference.
        least_p: Of sets of runs, the smallest p that one of them and the reference can give.
    """

    rows: list[Row]
    missing: list[str]
    together: Sequence[Together] = ()
    least_p: float = 0.0

    @property
    def different(self) -> list[str]:
        """The metrics that differ in some run."""
        return list(dict.fromkeys(row.metric for row in self.rows if row.is_different))

    @property
    def untold(self) -> list[str]:
        """The metrics of which so few runs cannot tell whether they differ."""
        return list(dict.fromkeys(row.metric for row in self.rows if row.is_untold))

    @property
    def is_different(self) -> bool:
        """Whether some run or set is not like the reference."""
        return bool(self.different) or any(each.is_different for each in self.together)

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        if not self.rows:
            return "nothing to compare: the runs have no metric in common"
        if self.different:
            return f"different in {', '.join(self.different)}"
        if self.is_different:
            return "different in all metrics together, though in none alone"
        if self.untold:
            often = f"as by chance in {round(self.least_p * 100)} of 100 cases"
            where = ", ".join(self.untold)
            return f"cannot tell: as far apart as so few runs can be, {often}, in {where}; --repeat 4 tells"
        compared = len({row.metric for row in self.rows})
        share = f" in {compared} of {counted(compared + len(self.missing), 'metric')}, the others not compared"
        return "indistinguishable" + (share if self.missing else "")


def compare(runs: Mapping[str, Metrics], tolerance: float = TOLERANCE) -> Comparison:
    """Compares runs.

    Args:
        runs: The metrics of each, by the run's name; the first is the reference.
        tolerance: A relative difference up to this is of no relevance, 0..1.
    """
    names = list(runs)
    reference = runs[names[0]]
    everywhere = _in_all([runs[each] for each in names])
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


def compare_sets(sets: Sets, tolerance: float = TOLERANCE, least: Mapping[str, float] | None = None) -> Comparison:
    """Compares sets of runs, such as the repeats of each value of a sweep (see `dilaton.measure.relabelling`).

    Args:
        sets: The first is the reference. All have the same circumstances.
        tolerance: As for `compare`. What differs by no more does not count for all metrics together either.
        least: Of some metrics the difference, in their own unit, up to which it does not count there, if that is more.
    """
    reference, *others = sets
    everywhere = {where: _in_all([run for runs in sets.values() for run in runs[where]]) for where in sets[reference]}
    rows: list[Row] = []
    together = []
    for name in others:
        both = {where: (ones, sets[name][where]) for where, ones in sets[reference].items()}
        blocks = [
            Block(
                len(ones),
                len(twos),
                [[run[metric].values for run in (*ones, *twos)] for metric in everywhere[where]],
                [max(tolerance * _mean(ones, metric), (least or {}).get(metric, 0.0)) for metric in everywhere[where]],
            )
            for where, (ones, twos) in both.items()
        ]
        apart_in_all = sets_apart(blocks)
        for (where, (ones, twos)), found in zip(both.items(), apart_in_all.blocks, strict=True):
            rows += [
                Row(
                    _named(where, metric),
                    ones[0][metric].unit,
                    name,
                    summarise(np.concatenate([run[metric].values for run in ones])),
                    summarise(np.concatenate([run[metric].values for run in twos])),
                    apart.distance,
                    apart.distance.p <= SIGNIFICANCE and apart.distance.relative > tolerance,
                    apart.by_chance,
                    apart.is_farthest and apart.distance.relative > tolerance,
                )
                for metric, apart in zip(everywhere[where], found, strict=True)
            ]
        together.append(Together(name, apart_in_all.p, apart_in_all.p <= SIGNIFICANCE))
    known = {
        _named(where, metric): metric in everywhere[where]
        for runs_by_where in sets.values()
        for where, runs in runs_by_where.items()
        for run in runs
        for metric in run
    }
    missing = [name for name, is_everywhere in known.items() if not is_everywhere]
    runs = [(len(ones), len(sets[name][where])) for name in others for where, ones in sets[reference].items()]
    return Comparison(rows, missing, together, max(least_p(*each) for each in runs))


def pooled(sets: Sets) -> dict[str, dict[str, Metric]]:
    """The values of all runs of a set together, to draw them, by the names that `compare_sets` gives metrics."""
    found: dict[str, dict[str, Metric]] = {}
    for name, by_where in sets.items():
        found[name] = {}
        for where, runs in by_where.items():
            for metric in _in_all(runs):
                values = np.concatenate([run[metric].values for run in runs])
                found[name][_named(where, metric)] = Metric(metric, runs[0][metric].unit, values)
    return found


def _mean(runs: Sequence[Metrics], metric: str) -> float:
    """The mean of a metric over all values of runs, without its sign."""
    return abs(float(np.mean(np.concatenate([run[metric].values for run in runs]))))


def _in_all(runs: Sequence[Metrics]) -> list[str]:
    """The metrics that all have."""
    return [metric for metric in runs[0] if all(metric in run for run in runs)]


def _named(where: str, metric: str) -> str:
    return f"{where}: {metric}" if where else metric


def draw_comparison(runs: Mapping[str, Metrics], names: Sequence[str]) -> Drawing:
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
        # A single value is no series.
        right.set_visible(any(len(metrics[name].values) > 1 for metrics in runs.values()))
        left.set_title(name)
        left.locator_params(axis="x", nbins=4)
        left.set_ylabel("share of values")
        left.set_ylim(0, 1)
        right.set_xlabel("virtual time (s)" if metric.t_s is not None else "number of the value")
        unit(left.xaxis, metric.unit if metric.unit != "packets" else "")
        unit(right.yaxis, metric.unit if metric.unit != "packets" else "")
    handles, labels = panels[0][0].get_legend_handles_labels()
    below(figure, handles, labels)
    of_all = f"{len(shown)} of {counted(len(names), 'metric')}"
    caption = f"Distributions and series of {of_all} of {counted(len(runs), 'run')}, overlaid."
    return Drawing("comparison", "Comparison", caption, figure)
