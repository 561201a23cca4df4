"""Workers that are ready: each answers one question, as every worker, but has been started before it is asked.

To start a worker takes a second, nearly all of it for what it imports, and whoever types a lab waits for that at each
pause. So once a command has answered, another process of it is started, in a jail of its own, which waits for the next
question, and is ended after a while if there is none: who does not edit has no process that waits.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Any

from dilaton.server.workers import answer, begun, ended, is_alive

WAITS_HOST_S = 60.0
"""How long a worker waits for a question."""


class Ready:
    """Workers by their commands, of each of which at most one is ready."""

    def __init__(self) -> None:
        """None is ready before the first question."""
        self._waiting: dict[tuple[str, ...], tuple[Process, asyncio.TimerHandle]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def answer_of(self, command: Sequence[str], asked: bytes) -> dict[str, Any]:
        """What a worker says that is asked one thing, with limits of CPU and memory.

        Raises:
            BrokenError: it took too much, or broke.
        """
        key = tuple(command)
        process = self._taken(key)
        said = await answer(await begun(key) if process is None else process, asked)
        self._do(self._prepare(key))
        return said

    async def close(self) -> None:
        """Ends those that wait."""
        self._is_closed = True
        for key in list(self._waiting):
            self._forget(key)
        await asyncio.gather(*self._tasks)

    def _taken(self, key: tuple[str, ...]) -> Process | None:
        """One that is ready, which it is no more then; one that has ended, as by who looks for memory, is none."""
        if key not in self._waiting:
            return None
        process, timer = self._waiting.pop(key)
        timer.cancel()
        if is_alive(process):
            return process
        self._do(ended(process))
        return None

    async def _prepare(self, key: tuple[str, ...]) -> None:
        if key in self._waiting or self._is_closed:
            return
        process = await begun(key)
        if key in self._waiting or self._is_closed:
            await ended(process)
            return
        timer = asyncio.get_running_loop().call_later(WAITS_HOST_S, self._forget, key)
        self._waiting[key] = process, timer

    def _forget(self, key: tuple[str, ...]) -> None:
        process, timer = self._waiting.pop(key)
        timer.cancel()
        self._do(ended(process))

    def _do(self, work: Any) -> None:
        """Does something that nobody waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
