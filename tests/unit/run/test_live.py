"""Runs that are started from Python are this program, whatever lies where they are started."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.run import live


@pytest.mark.parametrize("variable", [None, "/nowhere"])
def test_nothing_in_the_present_directory_is_imported(
    variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv("PYTHONPATH", variable)
    else:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "asyncio.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    started = live._spawn(["ps"], detached=False)
    assert started.close() != "imported"
    assert started.process.returncode == 0
