"""A few rounds of `disturbed.py`, one of each kind: never a wrong result, and nothing is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.functional.cluster.disturbed import MADE, ROUNDS, Disturbance, do, undisturbed


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    return undisturbed(tmp_path_factory.mktemp("well"), MADE)


@pytest.mark.parametrize(("victim", "act"), ROUNDS, ids=map(" ".join, ROUNDS))
def test_what_is_disturbed_says_so_or_has_the_same_results(
    well: tuple[dict[str, bytes], float], victim: str, act: str, tmp_path: Path
) -> None:
    # So early the run goes on for sure, while a later moment, at which guests run, may find it over.
    is_short = Disturbance(victim, act, 0).is_short
    disturbance = Disturbance(victim, act, 0.5 if is_short else 0.15)
    assert do(disturbance, *well, tmp_path / "run").is_well == is_short


def test_an_agent_that_is_stopped_before_it_joins_is_given_up_as_one_that_has_joined(
    well: tuple[dict[str, bytes], float], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert not do(Disturbance("agent", "stopped", 0), *well, out).is_well
    record = json.loads((out / "run.json").read_text())
    lost = record["lost_machine"]
    assert record["reason"] == f"{lost} did not join the run: its host agent has said nothing for 3.9 seconds"
