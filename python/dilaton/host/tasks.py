"""Several coroutines at once: whichever way it ends, none of them is left behind, and no failure goes unheard."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")
Work = Coroutine[Any, Any, Result]

WAIT_HOST_S = 0.2
"""How late a Ctrl-C may be noticed, in seconds of the host, by who waits for another thread."""


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


async def first_of(*work: Awaitable[None]) -> None:
    """Does several things until one is done; what that raises is raised, and the others are ended."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await _end(tasks)


async def within(host_s: float | None, work: Awaitable[Result]) -> Result:
    """The result of `work`, which is ended if it takes longer; None: it may take for ever.

    Python's own two ways fail where things end at one moment. Up to 3.11 `asyncio.wait_for` forgets that it was
    cancelled if the work is done just then; up to 3.11.2, which is Debian 12's, `asyncio.timeout` raises CancelledError
    in place of TimeoutError in what a cancelled task does at its end.

    Raises:
        TimeoutError: It took longer.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=host_s)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        await _end([task])


def finish(work: Work[Result]) -> Result:
    """The result of `work`, waited for here, whether or not this thread has an event loop that runs.

    Of a thread that has one, as in every notebook, another thread does the work, in a loop of its own. Ctrl-C cancels
    the work, and is raised when that has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    begun: concurrent.futures.Future[asyncio.Task[Any] | None] = concurrent.futures.Future()
    may_begin, is_given_up = threading.Event(), threading.Event()

    async def told() -> Result:
        begun.set_result(asyncio.current_task())
        # After that, so that whoever gives up is seen here, or sees the task there.
        if is_given_up.is_set():
            work.close()
            raise asyncio.CancelledError
        return await work

    def begin() -> Result:
        may_begin.wait()
        return asyncio.run(told())

    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        try:
            done = threads.submit(begin)
            may_begin.set()
            # A Ctrl-C that comes just before a wait without end would be noticed after it.
            while not done.done():
                concurrent.futures.wait([done], WAIT_HOST_S)
            return done.result()
        except BaseException:
            is_given_up.set()
            may_begin.set()
            if begun.done() and (task := begun.result()):
                # Unless its loop has come to its end.
                with contextlib.suppress(RuntimeError):
                    task.get_loop().call_soon_threadsafe(task.cancel)
            raise


async def _end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
