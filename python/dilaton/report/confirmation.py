"""Do the results of a lab depend on the TDF it was run at? The proof, where the verdict is an indicator.

**Problem.** With more time for the guests' CPUs nothing may change, or it was the machine that was measured and not the
network. So the lab is run again with a larger TDF. But two runs differ by chance, too: flows that share a queue part
differently, losses fall elsewhere. To call that a change would condemn every lab with chance in it; to let all pass
that chance might have done would find nothing.

**Rule.** Pairs of runs can acquit and cannot accuse. Where no result of a run and of one of the same seed with more
time differs by more than a quarter of the tolerance, there is nothing that chance would have to explain, nor much
chance that could hide anything. Where they differ by up to the tolerance, a second pair with another seed has to look
the same, and the runs of one TDF as well: then chance is small in this lab, too. In all other cases both TDFs get
further runs, and whole runs are dealt anew between them (`dilaton.measure.relabelling`), which tells what chance does
in this very lab, however its results depend on each other. A result has *changed* when that is significant and beyond
the tolerance. One that is beyond the tolerance and not significant is *unclear*, and said to be so: five runs cannot
tell it from chance.

Dealings are tested twice, each metric among all and all of them together, each at half the level, so that a lab with
nothing but chance in it is accused in at most one of twenty cases. Five and five runs reach that level; four do not.
In all together counts only what is beyond the tolerance, in each dealing: a machine that makes all round trips one
hundredth longer, with certainty, makes a jitter that varies by chance no change.

What a flow gets of a shared queue is chance in most labs, but not what all get together. So where there are several
throughputs their sum decides between same and unclear, and a single one can only be found to have changed.

**Search.** The TDF from which on nothing changes is looked for by doubling. A result that was proven to change needs no
second proof at the next TDF: there a pair accuses if it is as far apart still as runs of one TDF were not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal, Protocol

import numpy as np

from dilaton.measure.statistics import SIGNIFICANCE, distance
from dilaton.report.comparison import Row, compare, compare_sets
from dilaton.report.metrics import Metric

REPEATS = 5
"""Runs of each TDF where chance has to be told from change: the least whose dealings reach half of `SIGNIFICANCE`."""

RUNGS_MAX = 8
"""TDFs that are judged, each twice the one before."""

NEAR = 0.25
"""A pair that is no further apart than this share of the tolerance is the same."""

LEVEL = SIGNIFICANCE / 2
"""The level of each of the two tests."""

Outcome = Literal["same", "changed", "unclear"]


class EnoughError(Exception):
    """No further run may be made; the text says why."""


@dataclass(frozen=True)
class Measured:
    """The results of a run.

    Attributes:
        metrics: By name.
        decisive: Those that must be told from chance, if they differ, before a lab counts as confirmed.
        least: Of some metrics the difference, in their own unit, up to which it does not matter.
    """

    metrics: Mapping[str, Metric]
    decisive: frozenset[str]
    least: Mapping[str, float] = field(default_factory=dict)


class Bench(Protocol):
    """Where runs come from."""

    def measure(self, rung: int, repeat: int) -> Measured:
        """The results of a run at 2^rung times the TDF, with the seed of that repeat; equal for equal arguments.

        Raises:
            EnoughError: no further run may be made.
        """


@dataclass(frozen=True)
class Change:
    """A result at a TDF beside the same with more time.

    Attributes:
        metric, unit: What it is.
        value, reference: Means at the TDF, and with more time.
        relative: The Wasserstein distance over the mean with more time; infinite where that is 0.
        by_chance: What of that chance exceeds in 5 of 100 cases; NaN of a pair.
        matters: Whether it is beyond the tolerance.
        is_different: Whether it is also beyond chance.
    """

    metric: str
    unit: str
    value: float
    reference: float
    relative: float
    by_chance: float
    matters: bool
    is_different: bool


@dataclass(frozen=True)
class Judged:
    """A TDF beside one with more time.

    Attributes:
        rung, reference: Which.
        repeats: How many runs of each.
        outcome: See above.
        changes: All results that both have; those that are different first, then by how far they are apart.
        p: Of all results together; NaN of a pair.
        gave_up: Why there are no repeats, where there should be some; else empty.
        missing: Decisive results that not all runs have, so that they cannot be compared.
    """

    rung: int
    reference: int
    repeats: int
    outcome: Outcome
    changes: tuple[Change, ...]
    p: float = math.nan
    gave_up: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Confirmation:
    """What has come out.

    Attributes:
        judged: TDF by TDF; the first is that of the run.
        gave_up: Why the search ended without a TDF; else empty.
    """

    judged: tuple[Judged, ...]
    gave_up: str = ""

    @property
    def outcome(self) -> Outcome:
        """The outcome for the whole run."""
        return self.judged[0].outcome if self.judged else "unclear"

    @property
    def needed(self) -> int | None:
        """The rung from which on nothing changes, as far as was found; None if none was found."""
        last = self.judged[-1] if self.judged else None
        return last.rung if last and last.outcome != "changed" and not last.gave_up else None


def confirm(bench: Bench, steps: int, tolerance: float) -> Confirmation:
    """Compares a lab with itself at larger TDFs.

    Args:
        bench: Where runs come from.
        steps: How many doublings more time is.
        tolerance: A relative difference up to this does not matter, 0..1.
    """
    judged: list[Judged] = []
    spreads: dict[str, float] = {}
    try:
        for rung in range(RUNGS_MAX):
            judged.append(_judge(bench, rung, rung + steps, tolerance, spreads))
            if judged[-1].outcome != "changed":
                return Confirmation(tuple(judged), judged[-1].gave_up)
    except EnoughError as error:
        return Confirmation(tuple(judged), str(error))
    return Confirmation(tuple(judged), f"{RUNGS_MAX} TDFs were tried")


def _judge(bench: Bench, rung: int, reference: int, tolerance: float, spreads: dict[str, float]) -> Judged:
    """Judges a TDF; `spreads` is by how much, within one TDF, runs differ in results that are known to change."""
    here, there = [bench.measure(rung, 0)], [bench.measure(reference, 0)]
    pair = _ordered(_in_pair(here[0], there[0], tolerance))
    if not pair:
        return Judged(rung, reference, 1, "unclear", pair, gave_up="there is no result to compare")
    if _are_near(here[0], there[0], tolerance * NEAR):
        return Judged(rung, reference, 1, "same", pair)
    known = {each.metric for each in pair if each.matters and _is_beyond(each, spreads)}
    if known:
        changes = _ordered([replace(each, is_different=each.metric in known) for each in pair])
        return Judged(rung, reference, 1, "changed", changes)
    try:
        for repeat in range(1, REPEATS):
            here.append(bench.measure(rung, repeat))
            there.append(bench.measure(reference, repeat))
            if repeat == 1 and all(_are_near(one, other, tolerance) for one, other in combinations([*here, *there], 2)):
                return Judged(rung, reference, 2, "same", pair)
    except EnoughError as error:
        return Judged(rung, reference, 1, "unclear", pair, gave_up=str(error))
    judged = _in_sets(rung, reference, here, there, tolerance)
    for each in judged.changes:
        if each.is_different:
            spreads[each.metric] = max(_spread(here, each.metric), _spread(there, each.metric))
    return judged


def _are_near(one: Measured, other: Measured, tolerance: float) -> bool:
    return not _missing([one, other]) and not any(each.matters for each in _in_pair(one, other, tolerance))


def _missing(runs: Sequence[Measured]) -> tuple[str, ...]:
    """The decisive results of some of these runs that others do not have."""
    known = sorted(frozenset[str]().union(*(run.decisive for run in runs)))
    return tuple(name for name in known if not all(name in run.metrics for run in runs))


def _is_beyond(change: Change, spreads: Mapping[str, float]) -> bool:
    """Whether a result that is known to change is further apart than runs of one TDF are."""
    return abs(change.value - change.reference) > spreads.get(change.metric, math.inf)


def _in_pair(here: Measured, there: Measured, tolerance: float) -> list[Change]:
    rows = compare({"more": there.metrics, "here": here.metrics}, tolerance).rows
    return [_change(row, tolerance, here, is_significant=False) for row in rows]


def _in_sets(rung: int, reference: int, here: list[Measured], there: list[Measured], tolerance: float) -> Judged:
    runs = [*here, *there]
    small = {
        name
        for name, least in here[0].least.items()
        if all(name in run.metrics for run in runs) and _all_within([run.metrics[name] for run in runs], least)
    }
    sets = {
        name: {"": [{key: each for key, each in run.metrics.items() if key not in small} for run in which]}
        for name, which in (("more", there), ("here", here))
    }
    compared = compare_sets(sets, tolerance, there[0].least)
    changes = _ordered(
        [_change(row, tolerance, here[0], is_significant=row.distance.p <= LEVEL) for row in compared.rows]
    )
    p = compared.together[0].p
    beyond = [each for each in changes if each.matters]
    outcome: Outcome = "same"
    if any(each.is_different for each in beyond) or (beyond and p <= LEVEL):
        outcome = "changed"
    elif _missing(runs) or any(each.metric in here[0].decisive for each in beyond):
        outcome = "unclear"
    return Judged(rung, reference, len(here), outcome, changes, p, missing=_missing(runs))


def _all_within(runs: Sequence[Metric], least: float) -> bool:
    """Whether no two runs differ by more than that: which does not ask of what TDF a run is."""
    return all(distance(one.values, other.values).wasserstein <= least for one, other in combinations(runs, 2))


def _change(row: Row, tolerance: float, measured: Measured, *, is_significant: bool) -> Change:
    apart = row.distance
    matters = apart.relative > tolerance and apart.wasserstein > measured.least.get(row.metric, 0.0)
    return Change(
        row.metric,
        row.unit,
        row.other.mean,
        row.reference.mean,
        apart.relative,
        row.by_chance,
        matters,
        matters and is_significant,
    )


def _ordered(changes: list[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda each: (not each.is_different, not each.matters, -each.relative)))


def _spread(runs: Sequence[Measured], metric: str) -> float:
    means = [float(np.mean(run.metrics[metric].values)) for run in runs]
    return max(means) - min(means)
