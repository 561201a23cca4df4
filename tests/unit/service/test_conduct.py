"""The whole life of a run without a kernel: on a machine that is nothing but the port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.messages import Event, OfProcess, Stop
from dilaton.lab.errors import Problem
from dilaton.plan.model import Plan
from dilaton.run.control.answers import CLOCK_RELEASE, CLOCK_SHOW, STOP, Name
from dilaton.run.control.requests import Client, Result
from dilaton.run.execute import Options
from dilaton.run.files.directory import RunDir
from dilaton.run.loading import load
from dilaton.run.observer import Observer
from dilaton.run.record.record import Record, State
from dilaton.service.conduct import executed
from dilaton.service.journal import Silent
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides
from tests.stub_machine import STEP_NS, StubMachine

LAB = """
name: stubbed
nodes: {a: {}, b: {}}
links: [a -- b]
run:
  - {on: b, name: server, exec: sleep 100, background: true}
  - {on: a, name: first, exec: "true"}
  - {on: a, name: second, exec: "true", after: first}
expect: [first.exit == 0]
"""


class Told(Silent):
    """An observer that keeps what it is told, and the watcher who has it."""

    def __init__(self, act: Callable[[str], None] = lambda _: None) -> None:
        self.states: list[str] = []
        self.events: list[tuple[str, str]] = []
        self._act = act

    def doubted(self, problem: Problem) -> None:
        raise AssertionError(problem)

    def noted(self, what: str) -> None:
        raise AssertionError(what)

    def concluded(self, plan: Plan, record: Record, run_dir: Path) -> None:
        raise AssertionError("only the run itself is watched here")

    def confirmed(self, record: Record) -> None:
        raise AssertionError("only the run itself is watched here")

    def reported(self, report: Path) -> None:
        raise AssertionError("only the run itself is watched here")

    def state(self, state: State) -> None:
        self.states.append(state)

    def event(self, event: Event) -> None:
        assert isinstance(event, OfProcess)
        self.events.append((event.tag, event.process))
        self._act(f"{event.process} {event.tag}")

    @contextlib.contextmanager
    def watching(self, plan: Plan, run_dir: Path, *, is_beside: bool) -> Iterator[Observer]:
        yield self


def run(path: Path, machine: StubMachine, told: Told, hold_at_ns: int | None = None) -> Record:
    """Runs the lab on a machine, as a face would have it run."""
    prepared = prepare(LabText(text=LAB, name="lab.yaml"), Overrides())
    options = Options(hold_at_ns=hold_at_ns, machine=machine)
    return asyncio.run(executed(prepared.plan, prepared.source, RunDir(path), options, told))


def test_a_run_goes_through_its_states_and_leaves_its_events_and_its_record(tmp_path: Path) -> None:
    machine, told = StubMachine(), Told()
    record = run(tmp_path, machine, told)
    assert told.states == ["prepare", "boot", "ready", "running", "collecting", "finished"]
    assert told.events == [
        ("started", "server"),
        ("started", "first"),
        ("exited", "first"),
        ("started", "second"),
        ("exited", "second"),
    ]
    assert (record.state, record.reason, record.time.virtual_s) == ("finished", None, 3 * STEP_NS / 1e9)
    assert (record.host.guest_kernel, record.host.guest_kernel_path) == ("0.0-stub", "stub")
    assert [(check.text, check.passed) for check in record.checks] == [("first.exit == 0", True)]
    assert load(tmp_path).record == record
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["t_ns"] // STEP_NS for line in lines] == [0, 1, 2, 2, 3]
    assert [guests.is_closed for guests in machine.guests] == [True]


def test_a_run_in_which_a_program_fails_has_failed(tmp_path: Path) -> None:
    record = run(tmp_path, StubMachine(statuses={"first": 3}), Told())
    assert (record.state, record.reason) == ("failed", "first exited with status 3")
    assert [check.passed for check in record.checks] == [False]
    assert {process.name: process.exit for process in record.processes}["first"] == 3


def test_a_run_whose_guest_ends_has_failed_and_keeps_what_had_happened(tmp_path: Path) -> None:
    machine, told = StubMachine(dies_at_ns=2 * STEP_NS), Told()
    record = run(tmp_path, machine, told)
    assert (record.state, record.reason) == ("failed", "guest guest0 ended by itself")
    assert told.states[-2:] == ["running", "failed"]
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == len(told.events) == 2
    assert [guests.is_closed for guests in machine.guests] == [True]


def test_a_run_that_is_interrupted_ends_in_good_order(tmp_path: Path) -> None:
    def interrupt(what: str) -> None:
        if what == "first started":
            os.kill(os.getpid(), signal.SIGTERM)

    machine, told = StubMachine(endless="first"), Told(interrupt)
    record = run(tmp_path, machine, told)
    assert (record.state, record.reason) == ("aborted", "interrupted")
    assert told.states[-2:] == ["collecting", "aborted"]
    guests = machine.guests[0]
    assert guests.is_closed and guests.all[0].told == [Stop(reason="interrupted")]


@pytest.mark.parametrize("verb", [CLOCK_RELEASE, STOP])
def test_a_run_stands_at_the_instant_that_it_was_to_be_held_at_until_somebody_asks(
    tmp_path: Path, verb: Name[Any]
) -> None:
    machine, told = StubMachine(), Told()
    seen: list[tuple[str, str]] = []

    def asked(verb: Name[Any]) -> Any:
        with Client(tmp_path) as client:
            return client.request(verb)

    async def steered() -> tuple[Result, Record]:
        prepared = prepare(LabText(text=LAB, name="lab.yaml"), Overrides())
        options = Options(hold_at_ns=3 * STEP_NS // 2, machine=machine)
        going = asyncio.create_task(executed(prepared.plan, prepared.source, RunDir(tmp_path), options, told))
        while not machine.guests or machine.guests[0].look() != (3 * STEP_NS // 2, True):
            assert not going.done()
            await asyncio.sleep(0)
        seen.extend(told.events)
        clock = await asyncio.to_thread(asked, CLOCK_SHOW)
        await asyncio.to_thread(asked, verb)
        return clock, await going

    clock, record = asyncio.run(steered())
    assert seen == [("started", "server"), ("started", "first")]
    assert (clock["virtual_s"], clock["held"]) == (1.5 * STEP_NS / 1e9, True)
    assert record.state == ("finished" if verb == CLOCK_RELEASE else "aborted")
    # Were time to go on first, it might be at the end of all sleeps before anybody hears of the stop.
    assert machine.guests[0].stopped_while_held is (True if verb == STOP else None)
