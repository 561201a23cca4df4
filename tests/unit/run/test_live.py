"""Runs that are started from Python are this program, and what they say where they cannot begin is told as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import dilaton
from dilaton.cli import up
from dilaton.run import live
from dilaton.run.live import NotBegunError

NO_DELAY = """\
name: far-apart
nodes: {a: , b: }
guests: per-node
links: [a -- b]
"""
"""A lab in which only planning finds the mistake."""


def test_what_planning_finds_is_told_as_check_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab.yaml").write_text(NO_DELAY)
    assert up.bring_up(Path("lab.yaml"), up.Options(), detached=True) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("lab.yaml:3:9: guests: link a:eth0--b:eth0: its ends are apart")
    assert not list(Path("runs").iterdir()), "a run that never began leaves nothing"


def test_a_directory_that_is_refused_is_told_in_the_words_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotBegunError, match=r"^dilaton: .*: the run directory is not empty") as caught:
        dilaton.start({"name": "x", "nodes": {"a": {}}}, out=tmp_path)
    assert caught.value.status == 2


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
