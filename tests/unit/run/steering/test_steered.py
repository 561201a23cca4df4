"""What several guests take over together is told them where they listen, or refused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from dilaton.host.messages import ToAgent, Updated, UpdateFaults
from dilaton.host.port import Guest
from dilaton.run.control.errors import ControlError
from dilaton.run.files.directory import RunDir
from dilaton.run.steering import steered
from dilaton.run.steering.steered import Steered
from dilaton.run.steering.updates import Updates


class Clock:
    """A clock that stands when asked to, and keeps how often."""

    def __init__(self, *, is_event: bool = True, is_held: bool = False) -> None:
        self.is_event, self.is_held = is_event, is_held
        self.stood = 0

    @contextlib.asynccontextmanager
    async def standing(self, reason: str) -> AsyncIterator[bool]:
        self.stood += 1
        yield self.is_held


class Silent:
    """Updates that so many times do not reach guest b."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def reach(self, guests: Sequence[int], host_s: float) -> list[str]:
        self.times -= 1
        return ["b"] if self.times >= 0 else []


def told(clock: Clock, updates: Silent) -> int:
    """How often the clock stood when that was told for which it did."""

    async def tell() -> int:
        run = Steered(cast(Any, None), cast(Any, None), cast(Any, updates), cast(Any, clock), cast(Any, None))
        async with run.at_one_instant([0, 1], "a link is changed"):
            return clock.stood

    return asyncio.run(tell())


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time goes on for as long as nobody looks."""
    monkeypatch.setattr(steered, "GO_ON_HOST_S", (0.0,) * len(steered.GO_ON_HOST_S))


def test_it_stands_again_further_on_until_all_listen() -> None:
    assert told(Clock(), Silent(0)) == 1
    assert told(Clock(), Silent(2)) == 3


def test_it_is_refused_where_none_listens_in_the_end_or_somebody_holds_the_clock() -> None:
    for clock, stood in [(Clock(), len(steered.GO_ON_HOST_S)), (Clock(is_held=True), 1)]:
        with pytest.raises(ControlError, match="guest b does not listen where virtual time stands"):
            told(clock, Silent(99))
        assert clock.stood == stood


def test_guests_of_other_drives_always_listen() -> None:
    assert told(Clock(is_event=False), Silent(99)) == 1


class Agent:
    """An agent that takes an update over when it is told to listen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[ToAgent] = []

    async def send(self, message: ToAgent) -> None:
        self.heard.append(message)


def test_who_has_answered_is_reached_and_who_answers_later_disturbs_nobody(tmp_path: Path) -> None:
    async def reach() -> None:
        agents = [Agent("a"), Agent("b")]
        updates = Updates(RunDir(tmp_path), cast(Sequence[Guest], agents))

        def answer(agent: Agent) -> None:
            for message in agent.heard:
                assert isinstance(message, UpdateFaults)
                assert updates.answered(Updated(file=message.file, t_ns=1)) is None
            agent.heard.clear()

        reaching = asyncio.create_task(updates.reach([0, 1], 0.05))
        while not agents[0].heard:
            await asyncio.sleep(0)
        answer(agents[0])
        assert await reaching == ["b"]
        answer(agents[1])

    asyncio.run(reach())
