"""Several coroutines at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any

import pytest

from dilaton.host.tasks import all_of, beside, finish, unless, within


class Ended(list[str]):
    """The names of those that have ended, in order."""

    async def forever(self, name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.append(name)

    async def fails(self, name: str) -> None:
        self.append(name)
        raise ValueError(name)

    async def turns(self, name: str) -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        self.append(name)
        return name


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def alone() -> Any:
        try:
            return await work
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}, "tasks are left behind"

    return asyncio.run(alone())


def test_the_results_of_all_come_in_their_order() -> None:
    ended = Ended()
    assert run(all_of(ended.turns(name) for name in "abc")) == ["a", "b", "c"]


def test_the_first_error_ends_the_others() -> None:
    ended = Ended()
    with pytest.raises(ValueError, match="b"):
        run(all_of([ended.forever("a"), ended.fails("b")]))
    assert ended == ["b", "a"]


def test_companions_end_with_the_work() -> None:
    ended = Ended()
    assert run(beside(ended.turns("work"), ended.forever("companion"))) == "work"
    assert ended == ["work", "companion"]


def test_a_companion_that_ends_does_not_end_the_work() -> None:
    ended = Ended()

    async def nothing() -> None:
        pass

    assert run(beside(ended.turns("work"), nothing(), ended.forever("companion"))) == "work"


def test_a_companion_that_fails_ends_the_work_and_is_heard() -> None:
    ended = Ended()
    with pytest.raises(ValueError, match="companion"):
        run(beside(ended.forever("work"), ended.fails("companion")))
    assert ended == ["companion", "work"]


def test_work_that_fails_ends_its_companions() -> None:
    ended = Ended()
    with pytest.raises(ValueError, match="work"):
        run(beside(ended.fails("work"), ended.forever("companion")))
    assert ended == ["work", "companion"]


def test_work_is_cancelled_by_its_event_and_gives_nothing() -> None:
    ended = Ended()

    async def asked() -> object:
        event = asyncio.Event()
        event.set()
        return await unless(event, ended.forever("work"))

    assert run(asked()) is None
    assert ended == ["work"]


def test_work_gives_its_result_while_its_event_is_not_set() -> None:
    async def asked() -> object:
        return await unless(asyncio.Event(), Ended().turns("work"))

    assert run(asked()) == "work"


def test_work_is_finished_whether_or_not_a_loop_runs_here() -> None:
    async def beside_a_loop() -> Any:
        return finish(Ended().turns("inside"))

    assert finish(Ended().turns("outside")) == "outside"
    assert asyncio.run(beside_a_loop()) == "inside"


def test_an_error_of_work_beside_a_loop_is_raised() -> None:
    async def beside_a_loop() -> None:
        finish(Ended().fails("wrong"))

    with pytest.raises(ValueError, match="wrong"):
        asyncio.run(beside_a_loop())


def test_ctrl_c_cancels_work_beside_a_loop_and_waits_for_its_end() -> None:
    ended = Ended()

    async def interrupting() -> None:
        # As of a terminal, to the thread that takes signals; raise_signal would be to this one, and wake nobody.
        os.kill(os.getpid(), signal.SIGINT)
        await ended.forever("work")

    async def beside_a_loop() -> None:
        # As in a notebook, whose loop does not take Ctrl-C itself.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        finish(interrupting())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(beside_a_loop())
    assert ended == ["work"]


def test_work_within_its_time_has_its_result() -> None:
    ended = Ended()
    assert run(within(60, ended.turns("work"))) == "work"
    assert run(within(None, ended.turns("work"))) == "work"
    with pytest.raises(ValueError, match="work"):
        run(within(60, ended.fails("work")))


def test_work_that_takes_longer_is_ended() -> None:
    ended = Ended()
    with pytest.raises(TimeoutError):
        run(within(0.01, ended.forever("work")))
    assert ended == ["work"]


def test_who_is_cancelled_as_the_work_ends_is_cancelled() -> None:
    async def both() -> asyncio.Task[None]:
        work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(within(60, work))
        await asyncio.sleep(0)
        work.set_result(None)
        waiting.cancel()
        await asyncio.wait([waiting])
        return waiting

    assert run(both()).cancelled()


def test_a_cancelled_task_is_told_of_its_time_at_its_end() -> None:
    ended = Ended()

    async def tidies_up() -> None:
        try:
            await ended.forever("task")
        finally:
            try:
                await within(0.01, ended.forever("last words"))
            except TimeoutError:
                ended.append("no longer")

    async def cancelled() -> None:
        task = asyncio.create_task(tidies_up())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    run(cancelled())
    assert ended == ["task", "last words", "no longer"]
