"""Labs are read once, wherever they come from, and their mistakes told at their lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dilaton
from dilaton.cli.check import Overrides, read_source
from dilaton.cli.sweep import sweep_lab
from dilaton.lab import LabError

GOOD = "name: piped\nnodes: {a: {}}\n"
FOR_NOBODY = f"{GOOD}run:\n  - {{on: a, exec: 'true', user: nobody-at-all}}\n"
"""In which only planning finds the mistake."""


@contextmanager
def piped(text: str) -> Iterator[Path]:
    """A lab in a pipe, as a shell's `<(...)` names it."""
    ours, theirs = os.pipe()
    os.write(theirs, text.encode())
    os.close(theirs)
    yield Path(f"/dev/fd/{ours}")
    os.close(ours)


def test_a_lab_from_a_pipe_is_read_once() -> None:
    with piped(GOOD) as path:
        lab, plan, text = read_source(path, Overrides())
    assert (lab.name, plan.lab, text) == ("piped", "piped", GOOD)
    with piped(FOR_NOBODY) as path, pytest.raises(LabError) as error:
        read_source(path, Overrides())
    assert str(error.value).startswith(f"{path}:4:33: run[0].user: unknown user nobody-at-all; ")


def test_a_lab_that_others_could_not_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with piped(GOOD) as path, pytest.raises(LabError, match=f"{path}: is read again by other processes"):
        dilaton.start(path)
    with piped(GOOD) as path, pytest.raises(LabError, match=f"{path}: is read again by other processes"):
        sweep_lab(path, ["seed=1,2"], 1, 1, None)
    os.mkfifo("pipe.yaml")
    with pytest.raises(LabError, match=r"^pipe\.yaml: is read again"):
        dilaton.start("pipe.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.yaml"]
