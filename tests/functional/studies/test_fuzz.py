"""Two of the random labs of `./dev fuzz`, in which nobody is at work: on the event drive, run again or stood in again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.host.here.uml import kernels
from tests.conftest import PATIENCE_HOST_S
from tests.fuzz.rounds import Round


@pytest.mark.parametrize(("seed", "then"), [(307, "run"), (344, "resume")])
def test_a_random_lab_runs_as_each_has_to(tmp_path: Path, seed: int, then: str) -> None:
    report = Round(seed, kernels.chosen_name(), tmp_path, PATIENCE_HOST_S).go()
    assert report.failures == []
    first, second = (words.split() for words in report.words)
    assert first[:3] == ["run", "0", "finished"]
    assert second[:2] == [then, "0"], "or nothing was compared"
