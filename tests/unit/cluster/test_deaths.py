"""Whenever an agent is killed, the run ends as one that has lost a machine, so that whoever sweeps runs it again."""

from __future__ import annotations

import asyncio
import base64
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dilaton.cluster import machine as machine_module
from dilaton.cluster.engines.engine import Host, Order
from dilaton.cluster.files import archive
from dilaton.cluster.machine import Cluster
from dilaton.cluster.relay import Relay, Saying, What
from dilaton.cluster.values import to_json
from dilaton.host.errors import MachineLostError
from dilaton.host.identity import Identity
from dilaton.host.messages import Finished
from dilaton.host.orders import Orders
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from tests.unit.cluster.test_lines import Engine, Hub

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

PATIENCE_HOST_S = 20

LAB = (
    "name: two\nguests: per-node\nnodes: {a: , b: }\nlinks: [{endpoints: [a, b], delay: 1ms}]\nrun: [{on: a, exec: sh}]"
)

KILLED = "the host agent of machine1 was killed by signal 9"

ASKED = ["boot", "arm", "order", "follow", "stop_clocks", "halt", "collect"]
"""What agents are asked in a run, in that order."""


class Dying(Hub):
    """A hub of agents that answer, of which that of machine 1 dies when it is asked something, before or after it answers."""

    def __init__(self, engine: Engine, asked: str, *, answers: bool) -> None:
        super().__init__()
        self._engine, self._asked, self._answers = engine, asked, answers

    async def send(self, machine: int, what: What, message: bytes) -> None:
        """The layout is nothing to it."""

    def join(self, machine: int) -> None:
        """An agent is started."""
        if (machine, self._asked) == (1, "joining"):
            self._engine.words["machine1"].set_result(KILLED)
        else:
            self.heard.put_nowait((machine, What.JOINED, b""))

    async def say(self, machine: int, saying: Saying) -> None:
        """An agent is asked something."""
        is_last = (machine, self._asked) == (1, saying["do"])
        if saying["do"] == "collect":
            archive.pack([], lambda part: self.tell(machine, part=base64.b64encode(part).decode()))
        if "number" in saying and (self._answers or not is_last):
            self.tell(machine, answers=saying["number"], value=self._value(saying["do"]))
        if is_last:
            self._engine.words["machine1"].set_result(KILLED)
            self.heard.put_nowait((1, What.GONE, b"the connection has ended"))

    def _value(self, do: str) -> object:
        return {"boot": to_json(Identity()), "follow": [Finished(t_ns=7, outcome="done", reason="").json()]}.get(do)


class Starting(Engine):
    """An engine whose agents join as soon as they are started."""

    hub: Dying

    async def start(self, host: Host, order: Order) -> None:
        """See `Engine`."""
        self.hub.join(order.number)


async def live(cluster: Cluster, planned: Plan, run_dir: Path) -> None:
    """A run, as the port has it."""
    guests = await cluster.boot(planned, run_dir, jailed=True, disk_bytes=1, progress=lambda made: None)
    try:
        await guests.arm(0)
        await guests.order(Orders(Fraction(1)))
        await guests.follow(lambda guest, message: None)
        await guests.stop_clocks()
        await guests.halt()
    finally:
        await guests.close()


def died(asked: str, run_dir: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool) -> None:
    async def do() -> None:
        engine = Starting()
        engine.hub = Dying(engine, asked, answers=answers)

        async def listening(key: bytes, address: str) -> tuple[Relay, str]:
            return engine.hub, address

        monkeypatch.setattr(machine_module, "listening", listening)
        cluster = Cluster(lambda: engine)
        await asyncio.wait_for(live(cluster, compile_plan(loads(LAB, "lab.yaml")), run_dir), PATIENCE_HOST_S)

    asyncio.run(do())


def test_a_run_of_which_nobody_dies_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died("nothing", tmp_path, monkeypatch, answers=True)


@pytest.mark.parametrize(
    ("asked", "answers"),
    [("joining", False), *((asked, False) for asked in ASKED), *((asked, True) for asked in ASKED[:-1])],
)
def test_whenever_an_agent_is_killed_its_machine_is_lost(
    asked: str, answers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MachineLostError, match="machine1") as lost:
        died(asked, tmp_path, monkeypatch, answers=answers)
    assert lost.value.machine == "machine1"
