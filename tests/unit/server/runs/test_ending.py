"""How a server ends while something goes on: in good order, with nothing left open and no fault in its log."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dilaton.run.control.answers import STOP
from dilaton.run.control.requests import Client as Control
from dilaton.server import serve
from dilaton.server.forks import forks
from dilaton.service.launch import RunProcess
from tests.unit.server.serving import ENDLESS, LAB, served, use_stub


async def _forks_nothing(*_: object) -> None:
    """What is asked to fork a worker where that cannot be."""


def test_a_lab_that_is_being_read_then_is_told_so_and_its_worker_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go_on = tmp_path / "begun", "while true; do sleep 0.1; done"
    monkeypatch.setattr(serve, "GRACE_HOST_S", 1)
    # One that is a process of its own, as where none can be forked.
    monkeypatch.setattr(forks, "jail", lambda *_, **__: [])
    monkeypatch.setattr(forks, "PYTHON", ("sh", "-c", f"echo $$ > {begun}; {go_on}"))
    monkeypatch.setattr(forks.Forks, "_forked", _forks_nothing)
    with ThreadPoolExecutor(1) as others:
        with caplog.at_level(logging.WARNING), served(tmp_path / "server") as server:
            asked = others.submit(server.client().ask, "POST", "/api/v1/check", {"text": LAB})
            while not begun.exists() or not begun.read_text():
                assert not asked.done()
        answer = asked.result()
    assert (answer.status, answer.json["type"]) == (503, "urn:dilaton:ending")
    assert not Path(f"/proc/{begun.read_text().strip()}").exists()
    assert [record for record in caplog.records if record.exc_info] == []


def test_a_run_that_goes_on_then_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stub(monkeypatch)
    left = list[RunProcess]()
    leave = RunProcess.leave

    async def noted(process: RunProcess) -> None:
        left.append(process)
        await leave(process)

    monkeypatch.setattr(RunProcess, "leave", noted)
    with served(tmp_path / "server") as server:
        me = server.client()
        run = me.launch(me.keep(ENDLESS))
        me.wait(run, "running")
        run_dir = server.state.keeper.run_dir(run)
    with Control(run_dir) as control:
        control.request(STOP)
    assert len(left) == 1, "it is let go of, wherever the server has been with it"
