"""Outputs of runs, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dilaton.cli.errors import BadInputError
from dilaton.cli.results import logs
from dilaton.cli.results.logs import print_logs
from tests.unit.measure import made

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
def test_what_the_plan_does_not_have_is_refused(who: str, said: str, booting: str) -> None:
    with pytest.raises(BadInputError, match=said):
        print_logs(booting, who, follow=False)


@pytest.fixture
def growing(booting: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[tuple[str, bytes]]], None]:
    """Follows a run until the last of some writes to outputs: the file and what is added to it, one between two looks."""

    def follow(writes: list[tuple[str, bytes]]) -> None:
        waiting = list(writes)

        def write(_host_s: float = 0) -> None:
            name, added = waiting.pop(0)
            path = Path(booting) / "nodes" / name
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as file:
                file.write(added)

        monkeypatch.setattr(logs, "_goes_on", lambda _: bool(waiting))
        monkeypatch.setattr(logs.time, "sleep", write)
        write()
        assert print_logs(booting, None, follow=True) == 0

    return follow


@pytest.mark.parametrize("piece_bytes", [1, 2, logs.PIECE_BYTES])
def test_followed_characters_and_lines_are_whole_wherever_a_look_parts_them(
    growing: Callable[[list[tuple[str, bytes]]], None],
    piece_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(logs, "PIECE_BYTES", piece_bytes)
    euro = "\N{EURO SIGN}".encode()
    growing([("a/x.stdout", b"5 " + euro[:2]), ("a/x.stdout", euro[2:]), ("a/x.stdout", b" each\n")])
    assert capsys.readouterr().out == "==> a/x.stdout <==\n5 \N{EURO SIGN} each\n"


def test_outputs_that_grow_in_turn_begin_lines_of_their_own(
    growing: Callable[[list[tuple[str, bytes]]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    growing([("a/x.stdout", b"one"), ("b/y.stdout", b"two"), ("a/x.stdout", b"more\xe2")])
    said = "==> a/x.stdout <==\none\n==> b/y.stdout <==\ntwo\n==> a/x.stdout <==\nmore\N{REPLACEMENT CHARACTER}\n"
    assert capsys.readouterr().out == said


def test_what_was_not_noted_is_not_put_in_order_and_the_way_is_said(tmp_path: Path) -> None:
    run = made.run_dir(tmp_path)
    (run / "nodes").mkdir(exist_ok=True)
    with pytest.raises(BadInputError, match=r"it was not noted when .* --set measure.outputs=true"):
        print_logs(str(run), None, follow=False, timeline=True)


def test_what_is_still_to_come_is_not_put_in_order(booting: str) -> None:
    with pytest.raises(BadInputError, match=r"--timeline: .* --follow"):
        print_logs(booting, None, follow=True, timeline=True)
