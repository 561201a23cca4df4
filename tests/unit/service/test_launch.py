"""Runs are launched in a process of their own, and what is wrong with them is told as the error that it is."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dilaton
from dilaton.cli.runs import up
from dilaton.host.errors import HostLacksError
from dilaton.lab.errors import LabError, Problem
from dilaton.run.control.errors import ControlError
from dilaton.service.errors import RequestError
from dilaton.service.portal import wait
from dilaton.service.request import LabText, RunRequest, from_json, to_json
from dilaton.service.tidings import Begun, Ended, line_of, refused, tiding_of
from tests.conftest import PATIENCE_HOST_S

NO_DELAY = """\
name: far-apart
nodes: {a: , b: }
guests: per-node
links: [a -- b]
"""
"""A lab in which only planning finds the mistake."""

NO_TEXT = os.fsdecode(b"/tmp/\xff")
"""A path that is no text."""


def test_what_planning_finds_is_raised_as_check_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab.yaml").write_text(NO_DELAY)
    request = RunRequest(lab=LabText.read(Path("lab.yaml")), stays=True)
    with pytest.raises(LabError) as error:
        up.bring_up(request, detached=True)
    [problem] = error.value.problems
    assert str(problem).startswith("lab.yaml:3:9: guests: link a:eth0--b:eth0: its ends are apart")
    assert not list(Path("runs").glob("*")), "a run that never began leaves nothing"


def test_a_directory_that_is_refused_is_told_in_the_words_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(RequestError, match=r": the run directory is not empty"):
        dilaton.start({"name": "x", "nodes": {"a": {}}}, out=tmp_path)


def test_files_that_a_lab_without_a_file_names_are_in_the_present_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lab = {"name": "x", "topology": {"file": "net.graphml"}}
    with pytest.raises(LabError, match=r"net\.graphml: cannot be read"):
        dilaton.start(lab)


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
    with pytest.raises(RequestError, match="confirm: a run that stays has no end of its own"):
        dilaton.start({"name": "x", "nodes": {"a": {}}}, stay=True, confirm=True)


def test_what_a_process_says_that_breaks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dilaton.service.launch.RUNNER", (sys.executable, "-c", "raise SystemExit('no room')"))
    with pytest.raises(ControlError, match=r"^the run ended before it could be steered: no room$"):
        dilaton.start({"name": "x", "nodes": {"a": {}}})


def test_requests_and_tidings_come_through_as_they_are() -> None:
    request = RunRequest(lab=LabText(text="ü", name=NO_TEXT, file=Path(NO_TEXT)), out=Path(NO_TEXT), metrics=0)
    assert RunRequest.model_validate(from_json(to_json(request))) == request
    for tiding in (
        Begun(run_dir=Path(NO_TEXT)),
        Ended(run_dir=Path("x"), state="failed", reason="because", is_well=False),
        refused(LabError([Problem("lab.yaml", 3, 1, "nodes", "no nodes")])),
        refused(RequestError("wrong", "tdf")),
        refused(HostLacksError("bwrap", "apt install it")),
    ):
        assert tiding_of(line_of(tiding)) == tiding
    with pytest.raises(ValueError, match="kind"):
        tiding_of(json.dumps({"kind": "nonsense"}).encode())


def test_errors_are_the_same_on_the_other_side() -> None:
    for error in (
        LabError([Problem("lab.yaml", 3, 1, "nodes", "no nodes"), Problem("lab.yaml", 0, 0, "", "nothing")]),
        RequestError("wrong", "tdf"),
        HostLacksError("bwrap", "apt install it"),
    ):
        other = tiding_of(line_of(refused(error))).error()  # type: ignore[union-attr]
        assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))


def test_who_waits_without_a_loop_gets_results_and_errors_and_may_give_up() -> None:
    async def answer() -> int:
        return threading.get_ident()

    async def fail() -> None:
        raise ControlError("no")

    assert wait(answer()) == wait(answer()) != threading.get_ident(), "always the same thread"
    with pytest.raises(ControlError, match=r"^no$"):
        wait(fail())

    async def inside() -> int:
        return wait(answer())

    assert asyncio.run(inside()) == wait(answer()), "also where a loop runs, as in a notebook"


def test_ctrl_c_ends_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def never() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    asks, usual = threading.get_ident(), threading.Event.wait

    def interrupt(self: threading.Event, timeout: float | None = None) -> bool:
        # Ctrl-C is for who asks; others wait, too, such as what has tests run side by side.
        if threading.get_ident() != asks:
            return usual(self, timeout)
        monkeypatch.undo()
        assert begun.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Event, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        wait(never())
    assert ended.is_set()


ENDS = """\
import asyncio, os, subprocess, sys, tempfile
from dilaton.service.launch import RunProcess

async def keep(run: RunProcess) -> None:
    try:
        await run.begin()
    finally:
        await run.leave()

async def ends(steps: int) -> None:
    theirs, ours = os.pipe()
    process = subprocess.Popen(["true"])
    task = asyncio.create_task(keep(RunProcess(process, theirs, tempfile.TemporaryFile())))
    for _ in range(steps):
        await asyncio.sleep(0)
    process.wait()

asyncio.run(ends(int(sys.argv[1])))
"""


@pytest.mark.parametrize("steps", range(1, 5))
def test_who_ends_while_a_run_is_to_begin_leaves_nothing_open(steps: int) -> None:
    command = [sys.executable, "-W", "error", "-c", ENDS, str(steps)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_HOST_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
