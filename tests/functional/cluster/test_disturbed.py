"""A few rounds of `disturbed.py`, one of each kind: never a wrong result, and nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.cluster.disturbed import ROUNDS, Disturbance, do, undisturbed


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    return undisturbed(tmp_path_factory.mktemp("well"))


@pytest.mark.parametrize(("victim", "act"), ROUNDS, ids=map(" ".join, ROUNDS))
def test_what_is_disturbed_says_so_or_has_the_same_results(
    well: tuple[dict[str, bytes], float], victim: str, act: str, tmp_path: Path
) -> None:
    # So early the run goes on for sure, while a later moment, at which guests run, may find it over.
    is_short = Disturbance(victim, act, 0).is_short
    disturbance = Disturbance(victim, act, 0.5 if is_short else 0.15)
    assert do(disturbance, *well, tmp_path / "run").is_well == is_short
