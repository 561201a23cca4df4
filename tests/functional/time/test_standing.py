"""A run whose virtual time really stands: its guest's kernel gets no CPU, since somebody has stopped it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from dilaton.host.messages import Event
from dilaton.run.control.answers import SHOW, STATUS, STOP
from dilaton.run.control.requests import Client
from dilaton.run.execute import Options, execute
from dilaton.run.files.directory import RunDir
from dilaton.run.record.record import Record
from dilaton.service.journal import Silent
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides
from tests.host.processes import kernels

LAB = """
name: stands
nodes: {a: {}}
run: [{on: a, name: busy, exec: "sh -c 'while :; do :; done'"}]
"""

PATIENCE_HOST_S = 1.0
"""In place of the half minute that a person would wait: nothing moves in it, however long it is."""

LOOK_HOST_S = 0.05


class Begun(Silent):
    """Who watches the run, and knows when its program has begun."""

    def __init__(self) -> None:
        self.begun = False

    def event(self, event: Event) -> None:
        self.begun = True


def test_a_run_whose_virtual_time_stands_says_so_until_it_goes_on(tmp_path: Path) -> None:
    others = set(kernels(os.getpid()))

    def notices() -> tuple[str | None, str | None]:
        """What `ps` tells, and what a server does."""
        with Client(tmp_path) as client:
            return client.request(SHOW)["notice"], client.request(STATUS)["run"]["notice"]

    def stop() -> None:
        with Client(tmp_path) as client:
            client.request(STOP)

    async def told(*, is_something: bool) -> tuple[str | None, str | None]:
        """What both tell, once there is something, or nothing."""
        while True:
            found = await asyncio.to_thread(notices)
            if all((notice is not None) == is_something for notice in found):
                return found
            await asyncio.sleep(LOOK_HOST_S)

    async def stood() -> tuple[tuple[str | None, str | None], Record]:
        prepared = prepare(LabText(text=LAB, name="lab.yaml"), Overrides())
        begun = Begun()
        options = Options(patience_host_s=PATIENCE_HOST_S)
        running = execute(prepared.plan, prepared.source, RunDir(tmp_path), begun, options, stop=asyncio.Event())
        going = asyncio.create_task(running)
        while not begun.begun:
            assert not going.done(), going.result()
            await asyncio.sleep(LOOK_HOST_S)
        (kernel,) = set(kernels(os.getpid())) - others
        os.kill(kernel, signal.SIGSTOP)
        found = await told(is_something=True)
        os.kill(kernel, signal.SIGCONT)
        await told(is_something=False)
        await asyncio.to_thread(stop)
        return found, await going

    found, record = asyncio.run(stood())
    for notice in found:
        # A busy host may have had it stand before, whose CPU is the guest's.
        assert notice and notice.startswith("has not moved in the last ")
        assert "of host time: guest guest0, with a/busy; it may get no CPU of the host, or this is a fault" in notice
    assert record.fidelity
    assert sum("has not moved" in change.reason for change in record.fidelity.tdf_trace) == 1, "it is told once"
    assert record.state == "aborted"
