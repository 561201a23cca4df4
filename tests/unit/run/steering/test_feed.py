"""Who follows a run is told all of it, from the beginning to the end, whenever it comes and however slowly it reads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest

from dilaton.host.messages import Started
from dilaton.host.port import Progress
from dilaton.run.control.happenings import BegunAgain, Built, ClockTurned, Entered, Happened, Happening
from dilaton.run.control.requests import serve
from dilaton.run.observer import Observer
from dilaton.run.record.model import ClockChange
from dilaton.run.steering import feed as feeding
from dilaton.run.steering.feed import Feed
from dilaton.service.live import AsyncRun
from tests.unit.measure.made import plan

CHANGE = ClockChange(virtual_s=0, host_s=0, tdf=10, reason="released")


async def followed(run_dir: Path) -> list[Happening]:
    return [happening async for happening in AsyncRun(run_dir).follow()]


async def following(feed: Feed, count: int) -> None:
    """Waits until so many follow."""
    while len(feed._following) < count:
        await asyncio.sleep(0.01)


def event(number: int) -> Started:
    return Started(t_ns=number, process="\udcff", node="a", pid=number)


def test_everybody_is_told_everything_in_order(tmp_path: Path) -> None:
    observer = Mock(spec=Observer)

    async def run() -> list[list[Happening]]:
        feed = Feed(observer)
        async with serve(tmp_path, feed.handlers):
            feed.state("boot")
            feed.progress(Progress(1, 2, "nodes"))
            early = asyncio.create_task(followed(tmp_path))
            await following(feed, 1)
            feed.clock_changed(CHANGE)
            for number in range(2500):
                feed.event(event(number))
            late = asyncio.create_task(followed(tmp_path))
            await following(feed, 2)
            feed.begun_again("late timers", plan("name: x\nnodes: {a: }\ntime: {tdf: 20}\n"))
            feed.state("finished")
            await feed.close()
        return [await early, await late]

    early, late = asyncio.run(run())
    assert early == late
    assert early == [
        Entered(state="boot"),
        Built(done=1, total=2, what="nodes"),
        ClockTurned(change=CHANGE),
        *(Happened(event=event(number).record()) for number in range(2500)),
        BegunAgain(why="late timers", tdf=20),
        Entered(state="finished"),
    ]
    assert observer.event.call_count == 2500, "who shows the run is told as before"
    assert [call.args for call in observer.state.call_args_list] == [("boot",), ("finished",)]


def test_who_rests_or_leaves_does_not_keep_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "LAST_LINES_HOST_S", 0.1)

    async def run() -> None:
        feed = Feed(Mock(spec=Observer))
        async with serve(tmp_path, feed.handlers):
            resting = AsyncRun(tmp_path).follow()
            leaving = AsyncRun(tmp_path).follow()
            feed.state("boot")
            assert [await anext(resting), await anext(leaving)] == [Entered(state="boot")] * 2
            await leaving.aclose()
            for number in range(100_000):
                feed.event(event(number))
            await feed.close()
        await resting.aclose()

    asyncio.run(asyncio.wait_for(run(), 60))
