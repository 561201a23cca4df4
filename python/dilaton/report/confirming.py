"""What has come out of confirming a run, in the words and numbers of its record, and the verdict that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dilaton.measure import numbers
from dilaton.report.confirmation import REPEATS, Change, Confirmation, Judged
from dilaton.run.record.model import (
    BELIEVED,
    ChangeRecord,
    ComparisonRecord,
    ConfirmationRecord,
    Level,
    ReasonRecord,
    VerdictRecord,
)

SHOWN = 3
"""Results that a sentence names."""

Place = Callable[[int, int], str]
"""Where the run of a rung and a repeat is, from the run's own directory."""


def record_of(
    found: Confirmation, verdict: VerdictRecord, tdf: Fraction, place: Place, tolerance: float, runs: int, host_s: float
) -> ConfirmationRecord:
    """The record.

    Args:
        found: What has come out.
        verdict: On the run itself, before.
        tdf: The TDF of rung 0.
        place: Where runs are.
        tolerance: The relative change that does not matter.
        runs, host_s: How many were made beside the run, and what they took.
    """
    needed = found.needed if found.outcome == "changed" else None
    return ConfirmationRecord(
        outcome="confirmed" if found.outcome == "same" else found.outcome,
        what=_sentence(found, tdf, tolerance),
        indicated=verdict.level,
        tolerance=tolerance,
        tdf_needed=None if needed is None else _number(tdf * 2**needed),
        gave_up=found.gave_up or None,
        runs=runs,
        host_s=host_s,
        comparisons=[_comparison(each, tdf, place) for each in found.judged],
    )


def verdict_of(
    confirmation: ConfirmationRecord, before: VerdictRecord, references: Sequence[Level | None], *, is_adaptive: bool
) -> VerdictRecord:
    """The verdict after that.

    Args:
        confirmation: What has come out.
        before: The verdict on the run itself.
        references: Those on the runs with more time with which it was compared.
        is_adaptive: Whether the TDF of the run followed the load.
    """
    if confirmation.outcome == "confirmed":
        # A run that exceeded a bound is as good as what it equals.
        believed = before.level in BELIEVED or all(level in BELIEVED for level in references)
        return VerdictRecord(level="confirmed", reasons=[]) if believed else before
    if confirmation.outcome == "unclear":
        return before
    first = confirmation.comparisons[0]
    worst = next((each.change for each in first.changes if each.is_different), None)
    reason = ReasonRecord(
        level="suspect",
        what=confirmation.what,
        value=worst if worst is not None else confirmation.tolerance,
        bound=confirmation.tolerance,
        unit="ratio",
        advice=_advice(confirmation, is_adaptive),
    )
    level: Level = "invalid" if before.level == "invalid" else "suspect"
    reasons = sorted([reason, *before.reasons], key=lambda each: each.level != "invalid")
    return VerdictRecord(level=level, reasons=reasons)


def _advice(confirmation: ConfirmationRecord, is_adaptive: bool) -> str:
    if confirmation.tdf_needed is None:
        raised = "raise tdf further than was tried"
    else:
        tdf = numbers.significant(confirmation.tdf_needed, 6)
        raised = f"write tdf: {tdf} in place of auto" if is_adaptive else f"raise tdf to {tdf}"
        raised += ", from which on nothing changes"
    return f"{raised}, or give a cpu to nodes whose programs compute"


def _sentence(found: Confirmation, tdf: Fraction, tolerance: float) -> str:
    if not found.judged:
        return f"the run could not be compared: {found.gave_up}"
    first = found.judged[0]
    more = numbers.tdf(tdf * 2**first.reference)
    beside = f"at TDF {more}" + (f", in {first.repeats} runs of each" if first.repeats > 1 else "")
    if first.outcome == "same":
        chance = " and by more than chance" if first.repeats == REPEATS else ""
        return f"{beside}, no result differs by more than {numbers.apart(tolerance)}{chance}"
    if first.outcome == "changed":
        different = [each for each in first.changes if each.is_different]
        if not different:
            return f"{beside}, all results together differ by more than chance (p = {first.p:.2g}), though none alone"
        return f"{beside}, {_named(different)}"
    if not first.changes:
        return f"the run could not be compared: {first.gave_up}"
    apart = [each for each in first.changes if each.matters]
    said = [f"{_named(apart)}, which so few runs cannot tell from chance"] if apart else []
    said += [f"not all runs have a result for {', '.join(first.missing[:SHOWN])}"] if first.missing else []
    said += [f"no more runs were made: {first.gave_up}"] if first.gave_up else []
    return f"{beside}, {'; '.join(said)}"


def _named(changes: Sequence[Change]) -> str:
    shown = [_words(each) for each in changes[:SHOWN]]
    return "; ".join(shown) + (f"; and {len(changes) - SHOWN} more" if len(changes) > SHOWN else "")


def _words(change: Change) -> str:
    value, reference = (numbers.quantity(each, change.unit) for each in (change.value, change.reference))
    chance = "" if math.isnan(change.by_chance) else f", by chance up to {numbers.apart(change.by_chance)}"
    return f"{change.metric} is {reference} instead of {value}, {numbers.apart(change.relative)} apart{chance}"


def _comparison(judged: Judged, tdf: Fraction, place: Place) -> ComparisonRecord:
    repeats = range(judged.repeats)
    return ComparisonRecord(
        tdf=_number(tdf * 2**judged.rung),
        reference_tdf=_number(tdf * 2**judged.reference),
        runs=[place(judged.rung, repeat) for repeat in repeats],
        reference_runs=[place(judged.reference, repeat) for repeat in repeats],
        outcome=judged.outcome,
        p=_finite(judged.p),
        changes=[
            ChangeRecord(
                metric=each.metric,
                unit=each.unit,
                value=each.value,
                reference=each.reference,
                change=_finite(each.relative),
                by_chance=_finite(each.by_chance),
                is_different=each.is_different,
            )
            for each in judged.changes
        ],
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(tdf: Fraction) -> int | float:
    return int(tdf) if tdf.denominator == 1 else float(tdf)
