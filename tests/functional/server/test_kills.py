"""A few kills of a server at work whose runs have real guests, as `./dev server-kills --kernel` does fifty of."""

from __future__ import annotations

from pathlib import Path

from tests.unit.server.runs.random_kills import kill

ROUNDS = 3


def test_no_run_with_guests_ends_with_its_server_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    assert kill(tmp_path, ROUNDS, seed=3, has_kernel=True)["finished"]
