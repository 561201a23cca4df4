"""The end of a run, as those see it who wait for that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from dilaton.host.errors import GuestError
from dilaton.host.guests import Guests
from dilaton.lab.loader import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.run import record as records
from dilaton.run.control import Client, ControlError
from dilaton.run.directory import RunDir
from dilaton.run.execute import Options, Source, execute
from dilaton.run.observer import Observer

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
