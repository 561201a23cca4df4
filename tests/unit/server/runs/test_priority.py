"""A server that is root goes before what it starts, and what reads for people who wait before runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dilaton.host.processes import below
from dilaton.run.control.answers import SHOW
from dilaton.run.control.requests import Client as Control
from dilaton.server.priority import FIRST, SOON
from dilaton.service.launch import BEHIND, behind_of
from tests.unit.server.runs.server_process import process
from tests.unit.server.serving import ENDLESS


def nice(pid: int) -> tuple[int, int]:
    """How nice a process is, and its session, where Linux has such groups."""
    here, group = os.getpriority(os.PRIO_PROCESS, pid), Path(f"/proc/{pid}/autogroup")
    return here, int(group.read_text().rpartition(" nice ")[2]) if group.exists() else here


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lets processes go first")
def test_a_server_that_may_goes_first_and_its_runs_are_as_without_that(tmp_path: Path) -> None:
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with process(tmp_path) as server:
        pid, me = server.process.pid, server.client
        me.api("POST", "/check", {"text": ENDLESS})
        run = me.launch(me.keep(ENDLESS))
        me.wait(run, "running")
        with Control(tmp_path / "runs" / run / "run") as control:
            runner = control.request(SHOW)["pid"]
        assert nice(pid) == (FIRST, FIRST)
        assert nice(below(pid)[-1]) == (SOON, SOON), "what forks readers"
        assert nice(runner) == (usual + BEHIND, usual + BEHIND)
        me.api("POST", f"/runs/{run}/stop")
        me.wait(run, "aborted")


def test_the_more_runs_go_at_once_the_further_their_guests_go_behind() -> None:
    assert [behind_of(runs) for runs in (1, 2, 4, 8, 30)] == [0, 2, 4, 6, 10]
