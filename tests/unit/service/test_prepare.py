"""Labs are read once, wherever they come from, and their mistakes told at their lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dilaton
from dilaton.lab import LabError
from dilaton.service.errors import RequestError
from dilaton.service.prepare import TOLD_HOST_S, doubts, prepare, says_cost
from dilaton.service.request import LabText, Overrides
from tests.conftest import ROOT

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
        prepared = prepare(LabText.read(path), Overrides())
    assert (prepared.lab.name, prepared.plan.lab, prepared.text.text) == ("piped", "piped", GOOD)
    with piped(FOR_NOBODY) as path, pytest.raises(LabError) as error:
        prepare(LabText.read(path), Overrides())
    assert str(error.value).startswith(f"{path}:4:33: run[0].user: unknown user nobody-at-all; ")


def test_a_text_that_leaves_no_doubt_is_not_read_again_for_the_places_of_doubts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doubtful = f"{GOOD}run:\n  - {{on: a, exec: iperf -s}}\n"
    texts = []
    monkeypatch.setattr("dilaton.service.prepare.locate", lambda error, text, *_: texts.append(text) or error)
    assert doubts(prepare(LabText(text=GOOD, name="lab.yaml"), Overrides())) == []
    assert doubts(prepare(LabText(text=doubtful, name="lab.yaml"), Overrides()))
    assert texts == [doubtful]


def test_a_lab_from_a_pipe_may_be_run_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with piped(FOR_NOBODY) as path, pytest.raises(LabError, match=f"^{path}:4:33: run.0..user: unknown user"):
        dilaton.start(path)
    assert not list(tmp_path.iterdir())


def test_what_counts_instead_of_the_lab_is_told_by_its_field() -> None:
    lab = LabText(text=GOOD, name="lab.yaml")
    with pytest.raises(RequestError) as error:
        prepare(lab, Overrides(tdf="fast"))
    assert (error.value.field, error.value.message.startswith("fast: ")) == ("tdf", True)
    with pytest.raises(RequestError) as error:
        prepare(lab, Overrides(drive="event", confirm=True))
    assert error.value.field == "confirm"
    assert prepare(lab, Overrides(tdf="10", settings=("seed=7",))).plan.seed == 7


def test_the_cost_of_a_first_run_is_not_announced_and_that_of_a_long_one_is() -> None:
    text = (ROOT / "examples" / "dumbbell" / "lab.yaml").read_text()
    for seconds, is_told in ((1, False), (60, True)):
        asked = text.replace("-t 1 -O", f"-t {seconds} -O")
        assert f"-t {seconds} -O" in asked
        prepared = prepare(LabText(text=asked, name="lab.yaml"), Overrides())
        assert says_cost(prepared)
        assert bool(says_cost(prepared, TOLD_HOST_S)) == is_told
