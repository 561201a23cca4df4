"""What was found of late, kept for a moment: a class has the same lab run, and who types one has it run as it was read.

What a lab is that may name no file of this machine says its text alone, but for the images that there are: a run reads
it anew before it begins. What is wrong with one is not kept, since that may be mended by whoever brings an image.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

KEPT_HOST_S = 60.0
"""How long something counts as found of late."""

KEPT_MAX = 64
"""How many things are kept, of which the oldest goes first."""

Found = TypeVar("Found")


class Lately(Generic[Found]):
    """What was found of late; in one event loop."""

    def __init__(self) -> None:
        """Nothing was."""
        self._found: dict[bytes, tuple[float, asyncio.Task[Found]]] = {}

    async def of(self, asked: str, find: Callable[[], Awaitable[Found]]) -> Found:
        """What answers a question, as it was found of late, or is being found for somebody else who asks the same.

        Raises:
            Whatever `find` does; then the next one who asks looks again.
        """
        key, now = hashlib.sha256(asked.encode()).digest(), asyncio.get_running_loop().time()
        while self._found and (len(self._found) > KEPT_MAX or now - next(iter(self._found.values()))[0] > KEPT_HOST_S):
            del self._found[next(iter(self._found))]
        if key not in self._found:
            task = asyncio.ensure_future(_awaited(find))
            self._found[key] = now, task
            task.add_done_callback(partial(self._settle, key))
        # Who goes away does not take it from others.
        return await asyncio.shield(self._found[key][1])

    def _settle(self, key: bytes, task: asyncio.Task[Found]) -> None:
        is_found = not task.cancelled() and task.exception() is None
        if not is_found and key in self._found and self._found[key][1] is task:
            del self._found[key]


async def _awaited(find: Callable[[], Awaitable[Found]]) -> Found:
    return await find()
