"""A few random kills of a server at work, as `./dev server-kills` does fifty of with either database."""

from __future__ import annotations

from pathlib import Path

from tests.postgresql import cluster
from tests.unit.server.runs.random_kills import kill

ROUNDS = 3


def test_a_server_that_is_killed_at_work_loses_and_doubles_nothing(tmp_path: Path) -> None:
    assert kill(tmp_path, ROUNDS, seed=1)["finished"]


def test_nor_does_one_whose_database_is_stopped_meanwhile(tmp_path: Path) -> None:
    with cluster() as database:
        assert kill(tmp_path, ROUNDS, seed=2, database=database)["finished"]
