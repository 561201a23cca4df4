"""Mistakes on the command line: one line each, of one shape, and the exit status 2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dilaton.cli.labs.check import check_labs
from dilaton.cli.main import main
from dilaton.service.request import Overrides
from tests.conftest import ROOT

FILES = "tests/unit/importers/fixtures"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dance", "no such command 'dance'; see dilaton --help"),
        ("rnu", "no such command 'rnu'; did you mean 'run'?; see dilaton --help"),
        ("run", "missing argument 'LAB'; see dilaton run --help"),
        ("check", "missing argument 'LAB'; see dilaton check --help"),
        ("run --tdf", "option '--tdf' requires an argument; see"),
        ("run x --fast", "no such option: --fast"),
        ("scale x --onto 0", "--onto: Input should be greater than or equal to 1; see dilaton scale --help"),
        ("check examples/dumbbell --set tdf", "--set tdf: write PATH=VALUE"),
        ("run none.yaml", "none.yaml: cannot be read: No such file or directory"),
        ("run office.clab.yml", "office.clab.yml: cannot be read: No such file or directory"),
        (
            f"check {FILES}/office.clab.yml",
            f"{FILES}/office.clab.yml: topology: nodes.a: image: a lab cannot honour this",
        ),
        (f"check {FILES}/shadow.yaml", f"{FILES}/shadow.yaml: a network for shadow, not a lab; dilaton new LAB --from"),
        (f"new first --from {FILES}/triangle.txt", f"{FILES}/triangle.txt: cannot be read"),
        ("scale examples/dumbbell --onto 9", "--onto: 9: the lab falls into only 2 parts"),
        ("up examples/dumbbell --tdf fast", "--tdf: fast: the time dilation factor must be a number"),
        ("up examples/dumbbell --hold-at 5", "--hold-at: 5: a duration needs a unit"),
        ("cp none a:/etc/hosts -", "-: not a file; write ./- for one, or dilaton shell RUN NODE cat PATH"),
        ("link none a--b set loss", "set loss: write FIELD=VALUE"),
        ("report addressing", "addressing: of which lab? write dilaton report addressing LAB"),
        ("validate link --rate 10", "--rate: 10: a rate needs a unit"),
        ("validate link --delay x", "--delay: x: a delay is a number with a unit"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["dilaton", *line.split()])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    assert (left.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert printed.err.startswith(f"dilaton: {said}")


def test_a_run_that_would_be_over_before_it_measures_anything_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: still\nnodes: {a: {}, b: {}}\nlinks: [a -- b]\nmeasure: {interfaces: 100ms}\n")
    monkeypatch.setattr(sys, "argv", ["dilaton", "run", str(lab)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "the run would end at once" in capsys.readouterr().err
    assert check_labs([lab], Overrides()) == 0
    assert capsys.readouterr().out.rstrip().endswith("good for dilaton up; dilaton run needs a stop_after")


def test_no_arguments_are_a_call_for_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["dilaton"])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    assert (left.value.code, printed.err) == (2, "")
    assert "Usage" in printed.out
