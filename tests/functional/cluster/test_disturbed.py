"""A few rounds of `disturbed.py`, one of each kind: never a wrong result, and nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.cluster.disturbed import VICTIMS, Disturbance, do, undisturbed


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    return undisturbed(tmp_path_factory.mktemp("well"))


@pytest.mark.parametrize("victim", VICTIMS)
def test_what_is_disturbed_says_so_or_has_the_same_results(
    well: tuple[dict[str, bytes], float], victim: str, tmp_path: Path
) -> None:
    # So early the run goes on for sure, while a later moment may find it over but for its report.
    became = do(Disturbance(victim, 0.15), *well, tmp_path / "run")
    assert became == ("well" if "stalled" in victim else "failed")
