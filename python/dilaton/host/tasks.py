"""Several coroutines at once: whichever way it ends, none of them is left behind, and no failure goes unheard."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")
Work = Coroutine[Any, Any, Result]


async def all_of(work: Iterable[Work[Result]]) -> list[Result]:
    """The results of all, in their order; at the first error the others are cancelled, and it is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _end(tasks)


async def beside(work: Work[Result], *companions: Work[None]) -> Result:
    """The result of `work`, while the companions go on, which are cancelled when it ends; they may end earlier.

    Raises:
        Exception: What `work` raises, or a companion, which ends `work`.
    """
    main = asyncio.create_task(work)
    pending: set[asyncio.Task[Any]] = {main, *map(asyncio.create_task, companions)}
    everything = list(pending)
    try:
        while not main.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {main}:
                task.result()
        return main.result()
    finally:
        await _end(everything)


async def unless(event: asyncio.Event, work: Work[Result]) -> Result | None:
    """The result of `work`; None, and `work` is cancelled, if `event` is set before."""
    task, asked = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await _end([task, asked])


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
