"""Outputs of runs, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.cli.logs import print_logs

PLAN = Path(__file__).parents[1] / "plan" / "golden" / "plan.json"


@pytest.fixture
def booting(tmp_path: Path) -> str:
    """The directory of a run whose guests have not made their nodes yet."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "plan.json").write_text(PLAN.read_text())
    return str(tmp_path)


def test_a_process_of_the_plan_is_known_before_it_has_begun(booting: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_logs(booting, "client/ping", follow=False) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("z", "z: no such node; there are alone, client, router, server"),
        ("server/ping", "ping: no such process of server; there are echo, iperf"),
    ],
)
def test_what_the_plan_does_not_have_is_refused(
    who: str, said: str, booting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_logs(booting, who, follow=False) == 2
    assert said in capsys.readouterr().err
