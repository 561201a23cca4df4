"""A few of the random labs over several guests (`tests/random_labs.py`); `./dev labs` runs a thousand."""

from __future__ import annotations

import json

import pytest

from tests.conftest import RunLab
from tests.random_labs import check, make_lab


@pytest.mark.parametrize("seed", range(3))
def test_a_random_lab_over_several_guests_ends_with_every_frame_in_time(run_lab: RunLab, seed: int) -> None:
    lab = make_lab(seed)
    check(lab, run_lab(json.dumps(lab)))
