"""The server's end of the processes that fork workers, one for each jail.

One is begun by the first question for its jail, and ended after a while without any, unless it is to stay: a person who
does not edit has no process that waits. Where it cannot fork (`forker.py`), questions go to workers that are begun
before them (`ready.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.host.processes import PYTHON
from dilaton.host.tasks import within
from dilaton.server.forks.ready import Ready
from dilaton.server.priority import go_soon
from dilaton.server.workers import WAIT_HOST_S_MAX, ended, jail, said_by, started

FORKER = (*PYTHON, "-m", "dilaton.server.forks.forker")

WAITS_HOST_S = 60.0
"""How long a process that forks waits for a question."""


Jail = tuple[str, ...]
"""The command line of one, by which it is known: it is another one once there is more to be seen."""


@dataclass
class _Forker:
    """A process that forks, by whose control socket it is asked to.

    Attributes:
        answering: How many that it has forked are at work.
        timer: What ends it when nothing more is asked.
    """

    place: Jail
    process: Process
    control: socket.socket
    answering: int = 0
    timer: asyncio.TimerHandle | None = None


class Forks:
    """Workers, each of which answers one question; see `answer_of`."""

    def __init__(self, hidden: Path, *, stays: bool = False) -> None:
        """None is there before the first question.

        Args:
            hidden: A directory that none of them sees.
            stays: Whether what forks them is there for good, once it is.
        """
        self._hidden, self._stays = hidden, stays
        self._begun: dict[Jail, asyncio.Task[_Forker | None]] = {}
        """Without a process where it cannot fork."""
        self._ready = Ready()
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer_of(
        self, module: str, asked: bytes, *, sees_host: bool = False, is_forked: bool = True
    ) -> dict[str, Any]:
        """What a worker says that is asked one thing, with limits of CPU and memory.

        Args:
            module: What answers, by its `answer`, or as a program.
            asked: The question, as JSON.
            sees_host: Whether it sees the files of this machine.
            is_forked: Whether it may be forked. One that has a program in a further jail may not, since that takes a
                /proc of its own namespace of processes.

        Raises:
            BrokenError: it took too much, or broke.
        """
        place = tuple(jail(self._hidden, sees_host=sees_host, is_shared=True))
        if not is_forked or (forked := await self._forked(place, module)) is None:
            return await self._ready.answer_of([*jail(self._hidden, sees_host=sees_host), *PYTHON, "-m", module], asked)
        forker, fork = forked
        try:
            output = await within(WAIT_HOST_S_MAX, _talk(fork, asked))
        except (TimeoutError, ConnectionError):
            output = b""
        finally:
            fork.close()
            self._rest(forker)
        return said_by(output, output)

    async def close(self) -> None:
        """Ends them all."""
        for place in list(self._begun):
            self._forget(place)
        await asyncio.gather(*self._tasks)
        await self._ready.close()

    async def _forked(self, place: Jail, module: str) -> tuple[_Forker, socket.socket] | None:
        """What has forked a worker, and the socket where that waits for a question; None: nothing can be forked."""
        while (forker := await self._forker(place)) is not None:
            if forker.timer is not None:
                forker.timer.cancel()
            ours, its = socket.socketpair()
            ours.setblocking(False)
            try:
                socket.send_fds(forker.control, [module.encode()], [its.fileno()])
            except OSError:
                # It is gone, as by who looks for memory: the next one answers.
                ours.close()
                self._forget(place, forker)
            else:
                forker.answering += 1
                return forker, ours
            finally:
                its.close()
        return None

    async def _forker(self, place: Jail) -> _Forker | None:
        if place not in self._begun:
            self._begun[place] = asyncio.create_task(self._begin(place))
        # Others wait for it, too.
        return await asyncio.shield(self._begun[place])

    async def _begin(self, place: Jail) -> _Forker | None:
        control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        control.setblocking(False)
        process = None
        try:
            with its:
                process = await started([*place, *FORKER], stdin=its.fileno(), stdout=DEVNULL, stderr=DEVNULL)
            said = await within(WAIT_HOST_S_MAX, asyncio.get_running_loop().sock_recv(control, 1))
            if said == b"1":
                go_soon(process.pid)
                return _Forker(place, process, control)
        except (TimeoutError, OSError):
            said = b""
        except asyncio.CancelledError:
            await _let_go(process, control)
            raise
        await _let_go(process, control)
        if said != b"0":
            # It has broken, by which nobody knows whether the next one will.
            self._begun.pop(place, None)
        return None

    def _rest(self, forker: _Forker) -> None:
        """A worker has answered; what has forked it ends after a while in which it has none."""
        forker.answering -= 1
        if not self._stays and forker.answering == 0:
            forker.timer = asyncio.get_running_loop().call_later(WAITS_HOST_S, self._forget, forker.place, forker)

    def _forget(self, place: Jail, forker: _Forker | None = None) -> None:
        """Ends one that forks, and all that it has forked; where `forker` is given, that one and no later one."""
        task = self._begun.get(place)
        if task is not None and (forker is None or (task.done() and task.result() is forker)):
            del self._begun[place]
            ending = asyncio.create_task(_end(task))
            self._tasks.add(ending)
            ending.add_done_callback(self._tasks.discard)


async def _end(begun: asyncio.Task[_Forker | None]) -> None:
    begun.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        if (forker := await begun) is not None:
            if forker.timer is not None:
                forker.timer.cancel()
            await _let_go(forker.process, forker.control)


async def _let_go(process: Process | None, control: socket.socket) -> None:
    control.close()
    if process is not None:
        await ended(process)


async def _talk(fork: socket.socket, asked: bytes) -> bytes:
    """Asks a worker, and hears its answer to the end."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(fork, asked)
    fork.shutdown(socket.SHUT_WR)
    parts = []
    while part := await loop.sock_recv(fork, 1 << 18):
        parts.append(part)
    return b"".join(parts)
