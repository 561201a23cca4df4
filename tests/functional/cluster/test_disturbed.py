"""A few rounds of `disturbed.py`, one of each kind: never a wrong result, and nothing is left.

Two at once: for most of a round somebody waits, for the end of a stall or until a silence has lasted too long.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.functional.cluster.disturbed import CONNECTION, MADE, PARTS, ROUNDS, Became, Disturbance, do, undisturbed


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    return undisturbed(tmp_path_factory.mktemp("well"), MADE)


@pytest.mark.parametrize("victim", [*PARTS, CONNECTION])
def test_what_is_disturbed_says_so_or_has_the_same_results(
    well: tuple[dict[str, bytes], float], victim: str, tmp_path: Path
) -> None:
    def disturbed(act: str) -> Became:
        if Disturbance(victim, act, 0).is_short:
            return do(Disturbance(victim, act, 0.5), *well, tmp_path / act)
        # What is to end the run finds it going on, however much faster the host is than when none was disturbed.
        return do(Disturbance(victim, act, 0.15), *well, tmp_path / act, arguments=("--hold-at", "500ms"))

    acts = [act for disturbs, act in ROUNDS if disturbs == victim]
    assert acts
    with ThreadPoolExecutor(2) as rounds:
        became = {act: rounds.submit(disturbed, act) for act in acts}
    for act, round_ in became.items():
        assert round_.result().is_well == Disturbance(victim, act, 0).is_short, act


def test_an_agent_that_is_stopped_before_it_joins_is_given_up_as_one_that_has_joined(
    well: tuple[dict[str, bytes], float], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert not do(Disturbance("agent", "stopped", 0), *well, out).is_well
    record = json.loads((out / "run.json").read_text())
    lost = record["lost_machine"]
    assert record["reason"] == f"{lost} did not join the run: its host agent has said nothing for 3.9 seconds"
