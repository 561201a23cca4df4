"""The end of a run, as those see it who wait for that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from dilaton.host.errors import GuestError
from dilaton.host.here.guests.guests import Guests
from dilaton.host.messages import Finished
from dilaton.lab.loader import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from dilaton.run.execute import Options, _Run, execute
from dilaton.run.files.directory import RunDir
from dilaton.run.observer import Observer
from dilaton.run.record import record as records
from dilaton.run.source import Source

LAB = "name: short\nnodes: {a: {}}\n"


def test_a_run_that_no_longer_listens_has_its_last_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def entered(state: str) -> None:
        Client(tmp_path).close()
        seen.append((state, records.load(tmp_path).state))

    monkeypatch.setattr(Guests, "boot", Mock(side_effect=GuestError("no guest here")))
    observer = Mock(spec=Observer)
    observer.state.side_effect = entered
    lab = loads(LAB, "lab.yaml")

    async def run() -> records.Record:
        source = Source(lab, LAB)
        return await execute(compile_plan(lab), source, RunDir(tmp_path), observer, Options(), stop=asyncio.Event())

    record = asyncio.run(run())
    assert (record.state, record.reason) == ("failed", "no guest here")
    assert seen == [(state, state) for state in ("prepare", "boot", "failed")]
    with pytest.raises(ControlError, match="no run is going on there"):
        Client(tmp_path)


def test_what_an_attempt_has_left_may_be_in_the_way_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live(run: Any) -> None:
        run.violation = run
        run.fail("out of bounds")
        (tmp_path / "attempt-1").mkdir()

    monkeypatch.setattr("dilaton.run.execute._Run.live", live)
    monkeypatch.setattr("dilaton.run.execute.replanned", lambda plan, _: plan)
    lab = loads(LAB, "lab.yaml")

    async def run() -> records.Record:
        source = Source(lab, LAB)
        observer = Mock(spec=Observer)
        return await execute(compile_plan(lab), source, RunDir(tmp_path), observer, Options(), stop=asyncio.Event())

    record = asyncio.run(run())
    assert (record.state, record.attempts) == ("failed", 2)
    assert f"File exists: '{tmp_path}/attempt-1'" in str(record.reason)
    assert records.load(tmp_path) == record


STOPPED = Finished(t_ns=0, outcome="stopped", reason="interrupted")
FAILED = Finished(t_ns=0, outcome="failed", reason="p on a exited with status 1, expected 0")


def ended(path: Path, message: Finished, *, stays: bool, broken: str | None = None) -> tuple[str, str | None]:
    """The state and the reason of a run that was stopped in good order, from the last message of its agent."""
    lab, stop = loads(LAB, "lab.yaml"), asyncio.Event()
    stop.set()
    plan = compile_plan(lab).model_copy(update={"stays": stays})
    run = _Run(plan, Source(lab, LAB), RunDir(path), Mock(spec=Observer), Options(), stop, {})
    run.judge([message], broken)
    record = run.conclude()
    return record.state, record.reason


@pytest.mark.parametrize(
    ("stays", "message", "outcome"),
    [
        (False, STOPPED, ("aborted", "interrupted")),
        (False, FAILED, ("aborted", "interrupted")),
        (True, STOPPED, ("finished", None)),
        (True, FAILED, ("failed", FAILED.reason)),
    ],
)
def test_a_run_that_stays_has_failed_where_another_was_interrupted(
    tmp_path: Path, *, stays: bool, message: Finished, outcome: tuple[str, str | None]
) -> None:
    assert ended(tmp_path, message, stays=stays) == outcome


def test_a_run_that_is_interrupted_as_it_does_not_get_on_says_so(tmp_path: Path) -> None:
    lab, stop = loads(LAB, "lab.yaml"), asyncio.Event()
    stop.set()
    run = _Run(compile_plan(lab), Source(lab, LAB), RunDir(tmp_path), Mock(spec=Observer), Options(), stop, {})
    run.getting_on = Mock(notice="has not moved")
    run.break_off("the guest has ended")
    assert run.conclude().reason == "interrupted; virtual time has not moved"


@pytest.mark.parametrize("stays", [False, True])
def test_what_dilaton_broke_is_told_of_a_run_that_was_stopped(tmp_path: Path, *, stays: bool) -> None:
    assert ended(tmp_path, STOPPED, stays=stays, broken="a frame was late") == ("failed", "a frame was late")
