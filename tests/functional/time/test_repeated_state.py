"""A run on the event drive is repeated up to an instant, and hands over the state that it had there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import PYTHON, Outcome, dilaton, environment, run_in

LAB = f"""
name: again
time: {{drive: event}}
nodes: {{a: {{}}, b: {{files: {{/etc/word: {{from: word}}}}}}}}
links: [{{endpoints: [a, b], delay: 5ms, loss: 5%, rate: 10Mbit}}]
measure: {{interfaces: 500ms}}
run:
  - {{on: b, name: server, background: true, exec: iperf3 -s -1}}
  - {{on: a, name: draw, background: true, exec: [{PYTHON}, -u, -c, "DRAW"]}}
  - {{on: a, name: client, start: 1s, exec: iperf3 -c b -t 3 --json}}
"""
DRAW = "import os, time\\nkept = b''\\nwhile True:\\n  kept += os.urandom(9)\\n  print(kept.hex())\\n  time.sleep(0.3)"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    directory = tmp_path_factory.mktemp("again")
    (directory / "word").write_text("first\n")
    (directory / "lab.yaml").write_text(LAB.replace("DRAW", DRAW))
    outcome = run_in(directory, directory / "lab.yaml", "--set", "seed=7")
    assert outcome.status == 0, outcome.terminal
    return outcome


def everything(path: Path) -> dict[str, bytes]:
    files = [path / "events.jsonl", *path.glob("nodes/*/*"), *path.glob("measure/*/*.csv")]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def test_the_state_is_the_very_same_and_goes_on_as_it_did(first: Outcome, tmp_path: Path) -> None:
    again = tmp_path / "again"
    said = dilaton("resume", first.path, "--at", "2.5s", "--out", again)
    assert said.returncode == 0, said.stderr
    assert "held at 2.5s" in said.stdout and " events and " in said.stdout
    assert "held" in dilaton("clock", again).stdout
    drawn = (again / "nodes/a/draw.stdout").read_bytes()
    assert drawn and first.stdout("a", "draw").encode().startswith(drawn)
    assert dilaton("stop", again).returncode == 0


def test_what_follows_is_the_same_too(first: Outcome, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert dilaton("resume", first.path, "--at", "1.7s", "--out", again).returncode == 0
    # At some a packet is handled or a program begins, at others one polls.
    for at in ("2s", "2.5005s", "3s", "3.9s"):
        assert dilaton("clock", again, "until", at).returncode == 0
    assert dilaton("clock", again, "release").returncode == 0
    while dilaton("clock", again).returncode == 0:
        pass
    assert everything(again) == everything(first.path)


def test_another_state_is_found_and_what_cannot_be_repeated_is_told(first: Outcome, tmp_path: Path) -> None:
    drawn = first.path / "nodes/a/draw.stdout"
    kept = drawn.read_bytes()
    drawn.write_bytes(b"x" + kept[1:])
    try:
        refused = dilaton("resume", first.path, "--at", "2s", "--out", tmp_path / "other")
        assert refused.returncode == 2 and "not the same state: nodes/a/draw.stdout" in refused.stderr, refused.stderr
        assert dilaton("clock", tmp_path / "other").returncode == 2
    finally:
        drawn.write_bytes(kept)
    word = first.path.parent / "word"
    word.write_text("second\n")
    try:
        refused = dilaton("resume", first.path, "--at", "2s", "--out", tmp_path / "changed")
        assert refused.returncode == 2 and "has changed since" in refused.stderr, refused.stderr
    finally:
        word.write_text("first\n")
    work = run_in(tmp_path, "name: w\ntime: {drive: work}\nnodes: {a: {}}\nrun: [{on: a, exec: sleep 1}]\n")
    for words, why in {
        ("resume", first.path, "--at", "99s"): "the run ended at",
        ("resume", first.path, "--at", "soon"): "soon",
        ("resume", first.path): "no run is going on",
        ("resume", tmp_path, "--at", "1s"): "",
        ("resume", work.path, "--at", "1s"): "event drive",
    }.items():
        refused = dilaton(*words, cwd=tmp_path, env=environment())
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr
