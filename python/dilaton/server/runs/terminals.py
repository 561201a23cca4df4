"""Terminals in nodes, which outlive the connections of those who look at them.

A browser's connection is lost more easily than what goes on in a terminal may be. So a terminal is the server's: it
keeps the end of what was written, and whoever comes again within a while names the byte up to which they have it, and
goes on from there. One connection has a terminal at a time; a newer one takes it over, since the older one may be dead
without anybody's knowing. While there is one, a program waits for who reads it, as it does with ssh; while there is
none, it goes on, and only the end of what it writes is kept.

Everything here is in one event loop, and bounded: terminals of a person and of all, bytes that are kept, and how long
nobody needs to look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dilaton.host.tasks import within
from dilaton.run.control.errors import ControlError
from dilaton.run.control.terminal_client import Terminal, terminal
from dilaton.server.access.secrets import identity
from dilaton.server.problems import Problem, missing

OF_PERSON_MAX = 20
ALL_MAX = 200

KEPT_BYTES = 1 << 18
"""Of what a terminal has written, for who comes again."""

UNSEEN_HOST_S = 60.0
"""How long a terminal stays that nobody looks at: virtual time runs no faster than host time meanwhile."""

LOOK_HOST_S = 5.0

ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


@dataclass(eq=False)
class Kept:
    """A terminal that somebody has opened.

    Attributes:
        name: Its identity.
        run: That of the run.
        person: Who has opened it, and alone sees it.
        terminal: What goes on in it.
        output: The end of what was written.
        first: The number of the byte with which `output` begins.
        seen_s: When somebody looked at it last, by the host's clock.
    """

    name: str
    run: str
    person: str
    node: str
    argv: list[str]
    terminal: Terminal
    output: bytearray = field(default_factory=bytearray)
    first: int = 0
    viewer: object | None = None
    seen_s: float = field(default_factory=time.monotonic)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_read_out: bool = False
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _taken: int = 0

    @property
    def end(self) -> int:
        """The number of the byte that comes next."""
        return self.first + len(self.output)

    def attach(self) -> object:
        """Looks at it from now on, and nobody else; returns by which mark."""
        self.viewer, self._taken = object(), 0
        self._move()
        return self.viewer

    def detach(self, viewer: object) -> None:
        """Looks at it no longer."""
        if self.viewer is viewer:
            self.viewer, self.seen_s = None, time.monotonic()
            self._move()

    async def behind(self, viewer: object, byte: int) -> bytes:
        """What was written from a byte on, once there is some; nothing: there will be no more for this viewer."""
        self._taken = max(self._taken, byte)
        self._move()
        while self.viewer is viewer and byte >= self.end and not self.is_over:
            await self._moved.wait()
        return bytes(self.output[max(0, byte - self.first) :]) if self.viewer is viewer else b""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be written."""
        return self._is_read_out or self.closed.is_set()

    async def gather(self) -> None:
        """Keeps what is written, until there is no more."""
        while data := await self.terminal.read():
            self.output += data
            if (beyond := len(self.output) - KEPT_BYTES) > 0:
                del self.output[:beyond]
                self.first += beyond
            self._move()
            # Who looks at it is to get all of it: the program waits for them.
            while self.viewer is not None and self._taken < self.end - KEPT_BYTES // 2:
                await self._moved.wait()
        self._is_read_out = True
        self._move()

    def close(self) -> None:
        """Hangs up."""
        self.closed.set()
        self._move()

    def _move(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


class Terminals:
    """All terminals of a server."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._tasks: dict[asyncio.Task[None], str] = {}
        """With whose terminal each keeps: what is being opened counts, too."""

    async def open(
        self, run_dir: Path, run: str, person: str, node: str, argv: Sequence[str], size: tuple[int, int]
    ) -> Kept:
        """Starts a program with a terminal.

        Raises:
            Problem: there are too many.
            ControlError: the run does not go on, or refuses.
        """
        mine = sum(whose == person for whose in self._tasks.values())
        if mine >= OF_PERSON_MAX or len(self._tasks) >= ALL_MAX:
            raise Problem(
                409,
                "limit",
                f"there are {mine} terminals of yours and {len(self._tasks)} of all; "
                f"at most {OF_PERSON_MAX} and {ALL_MAX} are kept: close one",
            )
        opened: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._keep(opened, run_dir, run, person, node, list(argv), size))
        self._tasks[task] = person
        task.add_done_callback(lambda done: self._tasks.pop(done))
        try:
            # A terminal that cannot be opened ends its task, whatever the reason.
            await asyncio.wait((opened, task), return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                await task
            return opened.result()
        except asyncio.CancelledError:
            task.cancel()
            raise

    def __len__(self) -> int:
        """How many there are."""
        return len(self._kept)

    def of(self, run: str, person: str) -> list[Kept]:
        """The terminals that a person has in a run."""
        return [one for one in self._kept.values() if (one.run, one.person) == (run, person)]

    def find(self, run: str, person: str, name: str) -> Kept:
        """One of them.

        Raises:
            Problem: there is none of that name.
        """
        found = self._kept.get(name)
        if found is None or (found.run, found.person) != (run, person):
            raise missing("terminal", name)
        return found

    async def close(self) -> None:
        """Hangs up on all."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(
        self,
        opened: asyncio.Future[Kept],
        run_dir: Path,
        run: str,
        person: str,
        node: str,
        argv: list[str],
        size: tuple[int, int],
    ) -> None:
        try:
            async with terminal(run_dir, node, argv, size, ENVIRONMENT) as begun:
                kept = Kept(identity(), run, person, node, argv, begun)
                self._kept[kept.name] = kept
                opened.set_result(kept)
                gathering = asyncio.create_task(kept.gather())
                try:
                    await _unneeded(kept)
                finally:
                    gathering.cancel()
                    kept.close()
                    self._kept.pop(kept.name)
        except OSError as error:
            raise ControlError(f"{node}: no terminal: {error}", "host") from error


async def _unneeded(kept: Kept) -> None:
    """Waits until a terminal is closed, or nobody has looked at it for too long."""
    while not kept.closed.is_set() and (kept.viewer is not None or time.monotonic() - kept.seen_s < UNSEEN_HOST_S):
        try:
            await within(LOOK_HOST_S, kept.closed.wait())
        except TimeoutError:
            continue
