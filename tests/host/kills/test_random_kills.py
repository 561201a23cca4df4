"""A few random kills, as `./dev kills` does two thousand of."""

from __future__ import annotations

import pytest

from tests.conftest import PATIENCE_HOST_S
from tests.host.kills.test_kills import every_test_begins_alone, orphans_come_to_us
from tests.random_kills import Kill, do

__all__ = ["every_test_begins_alone", "orphans_come_to_us"]


@pytest.mark.parametrize("seed", range(12))
def test_a_random_kill_leaves_nothing(request: pytest.FixtureRequest, seed: int) -> None:
    kill = Kill.of(seed)
    if "--no-jail" in kill.way:
        request.getfixturevalue("unjailed")
    _, _, left = do(kill, PATIENCE_HOST_S)
    assert left == [], kill
