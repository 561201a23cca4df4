"""A worker is started before it is asked, and still answers one question."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dilaton.server.forks import ready
from dilaton.server.forks.ready import Ready
from dilaton.server.workers import BrokenError
from tests.conftest import PATIENCE_HOST_S

WORKER = """
import json, os, pathlib, sys
began = pathlib.Path(sys.argv[1]) / str(os.getpid())
began.touch()
asked = sys.stdin.read()
print("no JSON" if asked == "break" else json.dumps({"asked": asked, "pid": os.getpid()}))
"""


def begun(place: Path) -> set[int]:
    """Workers that have begun."""
    return {int(one.name) for one in place.iterdir()}


def alive(place: Path) -> set[int]:
    """Those of them that have not ended."""
    return {pid for pid in begun(place) if Path(f"/proc/{pid}").exists()}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_HOST_S):
        while not condition():
            await asyncio.sleep(0.02)


def with_ready(work: Callable[[Ready, list[str]], Awaitable[None]], place: Path) -> None:
    """Does something with workers, of which none is left."""

    async def body() -> None:
        workers = Ready()
        try:
            await work(workers, [sys.executable, "-c", WORKER, str(place)])
        finally:
            await workers.close()
        assert not alive(place)

    asyncio.run(body())


def test_the_next_question_goes_to_a_worker_that_was_there_before_it_and_to_no_other(tmp_path: Path) -> None:
    async def work(workers: Ready, command: list[str]) -> None:
        answered = []
        for number in range(3):
            said = await workers.answer_of(command, str(number).encode())
            assert said["asked"] == str(number)
            answered.append(said["pid"])
            await until(lambda: len(begun(tmp_path)) == len(answered) + 1)
            assert begun(tmp_path) - set(answered) == alive(tmp_path)
        assert len(set(answered)) == len(answered)
        waiting = alive(tmp_path)
        assert {(await workers.answer_of(command, b"last"))["pid"]} == waiting

    with_ready(work, tmp_path)


def test_one_that_is_asked_nothing_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "WAITS_HOST_S", 0.05)

    async def work(workers: Ready, command: list[str]) -> None:
        await workers.answer_of(command, b"")
        await until(lambda: len(begun(tmp_path)) >= 1 and not alive(tmp_path))
        assert (await workers.answer_of(command, b"again"))["asked"] == "again"

    with_ready(work, tmp_path)


def test_one_that_was_killed_while_it_waited_keeps_nobody_from_an_answer(tmp_path: Path) -> None:
    async def work(workers: Ready, command: list[str]) -> None:
        await workers.answer_of(command, b"")
        await until(lambda: bool(alive(tmp_path)))
        for pid in alive(tmp_path):
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(tmp_path))
        await asyncio.sleep(0)
        assert (await workers.answer_of(command, b"again"))["asked"] == "again"

    with_ready(work, tmp_path)


def test_one_that_breaks_is_told_and_the_next_one_answers(tmp_path: Path) -> None:
    async def work(workers: Ready, command: list[str]) -> None:
        with pytest.raises(BrokenError, match="broke"):
            await workers.answer_of(command, b"break")
        assert (await workers.answer_of(command, b"well"))["asked"] == "well"

    with_ready(work, tmp_path)


ENDS = """\
import asyncio, sys
from dilaton.server.workers import answer_of, settled

async def ends(steps: int) -> None:
    task = asyncio.create_task(answer_of([sys.executable, "-c", "import sys; sys.stdin.read()"], b""))
    for _ in range(steps):
        await asyncio.sleep(0)
    if sys.argv[2] == "cancelled":
        task.cancel()
    await settled()

asyncio.run(ends(int(sys.argv[1])))
"""


@pytest.mark.parametrize("how", ["cancelled", "forgotten"])
@pytest.mark.parametrize("steps", [2, 4, 6, 8])
def test_a_server_that_ends_while_a_worker_starts_ends_and_leaves_nothing_open(steps: int, how: str) -> None:
    command = [sys.executable, "-W", "error", "-c", ENDS, str(steps), how]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_HOST_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
