"""One pair of runs acquits and never accuses; chance is told from change by repeats; the search doubles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dilaton.report.confirmation import (
    REPEATS,
    RUNGS_MAX,
    Confirmation,
    EnoughError,
    Measured,
    confirm,
)
from dilaton.report.metrics import Metric

TOLERANCE = 0.05
Lab = Callable[[int, int], dict[str, float]]
"""What a lab measures: by rung and repeat."""


class Bench:
    """Runs of a made lab, and which were made."""

    def __init__(self, lab: Lab, runs_max: int = 1000, least: dict[str, float] | None = None) -> None:
        self.lab, self.runs_max, self.least = lab, runs_max, least or {}
        self.made: list[tuple[int, int]] = []

    def measure(self, rung: int, repeat: int) -> Measured:
        if (rung, repeat) not in self.made:
            if len(self.made) >= self.runs_max:
                raise EnoughError("so many were made")
            self.made.append((rung, repeat))
        metrics = {name: Metric(name, "s", np.array([value])) for name, value in self.lab(rung, repeat).items()}
        return Measured(metrics, frozenset(name for name in metrics if name != "single"), self.least)


def drawn(rung: int, repeat: int, spread: float, which: int = 0) -> float:
    """1 with so much chance in it, the same for the same run."""
    return float(np.random.default_rng([which, rung, repeat]).normal(1, spread))


def outcome(lab: Lab, **options: object) -> tuple[Confirmation, Bench]:
    bench = Bench(lab, **options)  # type: ignore[arg-type]
    return confirm(bench, 2, TOLERANCE), bench


def test_results_that_stay_are_confirmed_by_one_more_run() -> None:
    found, bench = outcome(lambda rung, repeat: {"rtt": 1 + 0.005 * rung})
    assert (found.outcome, found.needed, bench.made) == ("same", 0, [(0, 0), (2, 0)])


def test_results_that_differ_a_little_are_confirmed_by_a_second_pair() -> None:
    found, bench = outcome(lambda rung, repeat: {"rtt": 1 + 0.01 * rung + 0.01 * repeat})
    assert (found.outcome, bench.made) == ("same", [(0, 0), (2, 0), (0, 1), (2, 1)])


def test_a_pair_that_is_near_by_chance_does_not_acquit_where_others_are_not() -> None:
    values = {0: [1.0, 1.3, 0.9, 1.25, 1.1], 2: [1.03, 0.7, 0.8, 0.75, 0.7]}
    found, bench = outcome(lambda rung, repeat: {"rtt": values[rung][repeat]}, runs_max=2 * REPEATS)
    assert (found.outcome, len(bench.made)) == ("changed", 2 * REPEATS)


def test_a_change_is_proven_by_repeats_and_the_least_tdf_without_is_found() -> None:
    found, bench = outcome(lambda rung, repeat: {"rtt": 1 + max(0, 3 - rung) * (1 + 0.01 * repeat)})
    first = found.judged[0]
    assert (found.outcome, first.repeats) == ("changed", REPEATS)
    assert [(each.metric, each.is_different) for each in first.changes] == [("rtt", True)]
    assert [each.outcome for each in found.judged] == ["changed", "changed", "changed", "same"]
    assert found.needed == 3
    # What is known to change needs no second proof.
    assert [each.repeats for each in found.judged] == [REPEATS, 1, 1, 1]
    assert set(bench.made) == {(rung, repeat) for rung in (0, 2) for repeat in range(REPEATS)} | {
        (rung, 0) for rung in (1, 3, 4, 5)
    }


def test_one_pair_never_accuses() -> None:
    """Whatever a pair shows: it takes all repeats to call something changed at the lab's own TDF."""
    found, _ = outcome(lambda rung, repeat: {"rtt": 9.0 if rung else 1.0}, runs_max=9)
    assert (found.outcome, found.needed, found.gave_up) == ("unclear", None, "so many were made")


def test_chance_is_not_called_a_change() -> None:
    """Labs with nothing but chance in them, of five metrics with a spread of 20 %: at most one in twenty is accused."""
    labs = 100

    def lab(number: int) -> Lab:
        return lambda rung, repeat: {f"m{which}": drawn(rung, repeat, 0.2, 10 * number + which) for which in range(5)}

    accused = sum(outcome(lab(number), runs_max=2 * REPEATS)[0].outcome == "changed" for number in range(labs))
    # Of 100 with a chance of one in twenty, 13 or more are accused in one of 700 cases.
    assert accused < 13


@pytest.mark.parametrize(("change", "spread", "found_min"), [(0.10, 0.02, 0.95), (0.40, 0.10, 0.95)])
def test_changes_beyond_chance_are_found(change: float, spread: float, found_min: float) -> None:
    """A change of 4 to 5 times what runs vary by."""
    labs = 60

    def lab(number: int) -> Lab:
        return lambda rung, repeat: {"rtt": drawn(rung, repeat, spread, number) + (0 if rung else change)}

    outcomes = [outcome(lab(number), runs_max=2 * REPEATS)[0].outcome for number in range(labs)]
    assert outcomes.count("changed") >= found_min * labs
    assert outcomes.count("same") <= 0.02 * labs


def test_what_chance_hides_is_said_to_be_unclear() -> None:
    values = {0: [0.7, 1.5, 0.8, 1.4, 0.9], 2: [1.6, 0.8, 1.7, 0.9, 1.5]}
    found, _ = outcome(lambda rung, repeat: {"rtt": values[rung][repeat]})
    assert found.outcome == "unclear"
    assert [(each.matters, each.is_different) for each in found.judged[0].changes] == [(True, False)]


def test_what_single_flows_get_is_chance_as_long_as_their_sum_stays() -> None:
    shares = {0: [0.3, 0.7, 0.4, 0.6, 0.5], 2: [0.75, 0.35, 0.65, 0.3, 0.7]}
    found, _ = outcome(lambda rung, repeat: {"single": shares[rung][repeat], "sum": 1.0})
    assert (found.outcome, found.judged[0].repeats) == ("same", REPEATS)


def test_a_single_flow_that_changes_beyond_chance_is_named() -> None:
    found, _ = outcome(lambda rung, repeat: {"single": 0.3 + 0.3 * (rung > 0) + 0.01 * repeat, "sum": 1.0})
    assert found.outcome == "changed"
    assert [each.metric for each in found.judged[0].changes if each.is_different] == ["single"]


def test_differences_too_small_to_matter_are_left_out() -> None:
    jitter = lambda rung, repeat: {"rtt": 1.0, "jitter": 1e-6 * (4 - rung) + 1e-8 * repeat}  # noqa: E731
    assert outcome(jitter)[0].outcome == "changed"
    found, bench = outcome(jitter, least={"jitter": 1e-5})
    assert (found.outcome, len(bench.made)) == ("same", 2)


def test_what_is_too_small_to_matter_does_not_let_chance_be_called_a_change() -> None:
    """A jitter of microseconds that changes with certainty, beside a flow that varies by chance."""

    def lab(rung: int, repeat: int) -> dict[str, float]:
        return {"jitter": 1e-6 * (4 - rung) + 1e-8 * repeat, "rtt": [0.9, 1.1, 1.0, 0.95, 1.05][(repeat + rung) % 5]}

    assert outcome(lab, least={"jitter": 1e-5})[0].outcome in ("same", "unclear")


def test_what_is_within_the_tolerance_does_not_let_chance_be_called_a_change() -> None:
    """Round trips that are certainly one hundredth longer, and less steady, beside a flow that varies by chance."""
    labs = 40

    def lab(number: int) -> Lab:
        def runs(rung: int, repeat: int) -> dict[str, float]:
            longer = 0.0 if rung else 0.015
            rtts = {f"rtt{n}": drawn(rung, repeat, 0.003, 10 * number + n) + longer for n in range(4)}
            return rtts | {"jitter": drawn(rung, repeat, 0.2, 10 * number + 5)}

        return runs

    accused = sum(outcome(lab(number), runs_max=2 * REPEATS)[0].outcome == "changed" for number in range(labs))
    # Of 40 with a chance of one in twenty, 7 or more are accused in one of 300 cases.
    assert accused < 7


def test_changes_beyond_the_tolerance_that_none_has_alone_are_found_together() -> None:
    labs = 40

    def lab(number: int) -> Lab:
        return lambda rung, repeat: {
            f"rtt{n}": drawn(rung, repeat, 0.1, 100 * number + n) + (0.0 if rung else 0.12) for n in range(12)
        }

    found = [outcome(lab(number), runs_max=2 * REPEATS)[0] for number in range(labs)]
    alone = [each for each in found if any(change.is_different for change in each.judged[0].changes)]
    assert sum(each.outcome == "changed" for each in found) >= 0.95 * labs > 2 * len(alone)


def test_the_search_ends() -> None:
    found, _ = outcome(lambda rung, repeat: {"rtt": 2.0**-rung * (1 + 0.01 * repeat)})
    assert (found.outcome, found.needed, len(found.judged)) == ("changed", None, RUNGS_MAX)
    assert found.gave_up == f"{RUNGS_MAX} TDFs were tried"
    found, bench = outcome(lambda rung, repeat: {"rtt": 2.0**-rung * (1 + 0.01 * repeat)}, runs_max=14)
    assert (found.outcome, found.needed, found.gave_up, len(bench.made)) == ("changed", None, "so many were made", 14)


def test_a_result_that_some_runs_do_not_have_is_not_the_same() -> None:
    found, _ = outcome(lambda rung, repeat: {"done": 1.0} | ({"rtt": 1.0} if rung or repeat != 3 else {}))
    assert found.outcome == "same", "one pair suffices, and both have it"
    found, _ = outcome(lambda rung, repeat: {"done": 1.0} | ({"rtt": 1.0} if rung or repeat else {}))
    assert (found.outcome, found.judged[0].missing) == ("unclear", ("rtt",))


def test_runs_without_a_result_in_common_cannot_be_compared() -> None:
    found, _ = outcome(lambda rung, repeat: {f"rtt{rung}": 1.0})
    assert (found.outcome, found.gave_up) == ("unclear", "there is no result to compare")
