"""Workers are forked from a process that is there, and are as apart as if each had been started by itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dilaton.host import processes
from dilaton.host.processes import PYTHON
from dilaton.server.forks import forks
from dilaton.server.forks.forks import Forks
from dilaton.server.workers import BrokenError
from tests.conftest import PATIENCE_HOST_S, ROOT

Asks = Callable[..., Coroutine[Any, Any, Any]]


def below(pid: int) -> set[int]:
    """All that a process has started, directly or not."""
    return set(processes.below(pid))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_HOST_S):
        while not condition():
            await asyncio.sleep(0.02)


@pytest.fixture(autouse=True)
def _seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked is what our own tests have."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def with_forks(work: Callable[[Forks, Asks], Awaitable[None]], place: Path, *, stays: bool = False) -> None:
    """Does something with workers that see this machine's files, of which none is left."""
    hidden = place / "hidden"
    hidden.mkdir()

    async def body() -> None:
        workers = Forks(hidden, stays=stays)

        async def ask(do: str, **others: Any) -> Any:
            asked = json.dumps({"do": do} | others).encode()
            return await workers.answer_of("tests.unit.server.labs.forked", asked, sees_host=True)

        before = below(os.getpid())
        try:
            await work(workers, ask)
        finally:
            await workers.close()
        assert below(os.getpid()) <= before

    asyncio.run(body())


def test_what_one_worker_does_no_other_meets(tmp_path: Path) -> None:
    # Of what is in /tmp no worker sees anything.
    go = Path("/var/tmp") / tmp_path.name  # noqa: S108

    async def work(_: Forks, ask: Asks) -> None:
        waiting = asyncio.create_task(ask("wait", until=str(go)))
        seen: list[str] = []
        # Once the other is there, it is among those that are tried.
        async with asyncio.timeout(PATIENCE_HOST_S):
            while len(seen) < 4:
                attacked = await ask("attack")
                assert attacked["said"]["worked"] == []
                seen = attacked["said"]["others"]
        go.touch()
        waited = await waiting
        assert waited["said"] == "mine" and waited["pid"] != attacked["pid"]

    try:
        with_forks(work, tmp_path)
    finally:
        go.unlink(missing_ok=True)


def test_one_that_takes_too_much_or_breaks_is_told_and_the_next_one_answers(tmp_path: Path) -> None:
    async def work(_: Forks, ask: Asks) -> None:
        with pytest.raises(BrokenError, match="MemoryError"):
            await ask("memory")
        with pytest.raises(BrokenError, match="KeyError: 'what is this'"):
            await ask("what is this")
        with pytest.raises(BrokenError, match=r"or the worker broke$"):
            await ask("end")
        assert (await ask("nothing"))["said"] is None

    with_forks(work, tmp_path)


def test_one_that_nobody_asks_any_more_is_ended_and_one_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    async def work(_: Forks, ask: Asks) -> None:
        before = below(os.getpid())
        await ask("nothing")
        await until(lambda: len(below(os.getpid()) - before) == 3)  # what has answered is gone
        forker = below(os.getpid()) - before
        given_up = asyncio.create_task(ask("wait", until=str(tmp_path / "never")))
        await until(lambda: len(below(os.getpid()) - before) == len(forker) + 2)
        given_up.cancel()
        await until(lambda: below(os.getpid()) - before == forker)
        assert (await ask("nothing"))["said"] is None
        [forks] = [pid for pid in forker if not below(pid)]
        os.kill(forks, signal.SIGKILL)
        await until(lambda: below(os.getpid()) == before)
        assert (await ask("nothing"))["said"] is None

    with_forks(work, tmp_path)


@pytest.mark.parametrize("stays", [False, True])
def test_what_forks_goes_when_nothing_is_asked_unless_it_is_to_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    monkeypatch.setattr(forks, "WAITS_HOST_S", 0.05)

    async def work(_: Forks, ask: Asks) -> None:
        before = below(os.getpid())
        await ask("nothing")
        if stays:
            await asyncio.sleep(0.2)
            assert below(os.getpid()) > before
        else:
            await until(lambda: below(os.getpid()) == before)
        assert (await ask("nothing"))["said"] is None

    with_forks(work, tmp_path, stays=stays)


@pytest.mark.parametrize("says", ["import os; os.write(0, b'0')", "pass"], ids=["cannot", "breaks"])
def test_where_processes_cannot_be_forked_apart_each_question_starts_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    monkeypatch.setattr(forks, "FORKER", (*PYTHON, "-c", says))

    async def work(workers: Forks, _: Asks) -> None:
        asked = json.dumps({"text": "nodes: 3", "overrides": {}, "is_drawn": True, "machines": 1}).encode()
        said = await workers.answer_of("dilaton.server.labs.worker", asked, sees_host=True)
        assert said["problems"], "it was read"

    with_forks(work, tmp_path)
