"""Where runs leave what they leave."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dilaton.run.directory import RunDir, RunDirError, take_default

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_runs_that_start_in_one_second_get_directories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    taken = [take_default("lab", NOW) for _ in range(3)]
    assert [str(path) for path in taken] == [f"runs/lab-20260102T030405Z-{number}" for number in (1, 2, 3)]
    assert RunDir(taken[0]).path == tmp_path / taken[0]


@pytest.mark.parametrize("what", ["a file", "a link to nowhere"])
def test_runs_that_is_no_directory_is_refused(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if what == "a file":
        Path("runs").touch()
    else:
        Path("runs").symlink_to("nowhere")
    with pytest.raises(RunDirError, match="runs: no run directory can be made there: File exists"):
        take_default("lab", NOW)
