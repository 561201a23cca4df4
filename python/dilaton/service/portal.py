"""Waiting for coroutines in a program that has no event loop, or has one that goes on meanwhile, as every notebook.

A thread of its own has the loop in which they run. It lives as long as the program, so that what belongs to it, such as
a run that ends with the thread that launched it, is there until then.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

Result = TypeVar("Result")

WAIT_HOST_S = 0.2
"""How late a Ctrl-C may be noticed, in seconds of the host: one that comes just before a wait without end would be
noticed after it."""


def wait(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`. Ctrl-C cancels it, and is raised when it has ended."""
    loop = _loop()
    begun: concurrent.futures.Future[asyncio.Task[Result]] = concurrent.futures.Future()
    over = threading.Event()

    def begin() -> None:
        task = loop.create_task(work)
        task.add_done_callback(lambda _: over.set())
        begun.set_result(task)

    loop.call_soon_threadsafe(begin)
    try:
        while not over.wait(WAIT_HOST_S):
            pass
    except BaseException:
        # After `begin`, whatever that has come to.
        loop.call_soon_threadsafe(lambda: begun.result().cancel())
        while not over.wait(WAIT_HOST_S):
            pass
        raise
    return begun.result().result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="dilaton", daemon=True).start()
    return loop


# A process that is forked off has no such thread.
os.register_at_fork(after_in_child=_loop.cache_clear)
