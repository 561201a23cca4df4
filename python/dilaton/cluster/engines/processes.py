"""The processes of host agents: each ends when its standard input does, and what it says last is how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from dilaton.cluster import beats
from dilaton.cluster.host_agent import THERE
from dilaton.cluster.values import to_json
from dilaton.host.errors import GuestError, MachineLostError

END_HOST_S_MAX = 3.0
"""In which an agent ends its guests, which takes milliseconds where nobody has stopped any; then it is killed, and they
with it."""

LAST_WORD_HOST_S, LAST_WORD_BYTES_MAX = 0.2, 4096
"""How long the last word of an agent that has ended is waited for, and how long it may be."""

LINE_BYTES_MAX = 1 << 20
"""The longest line that an agent says."""

LINES_MAX = 100
"""How many lines of an agent, or of who has started it, are kept for whoever asks for them."""


BY_SIGNAL = 128
"""What a shell adds to the number of the signal that has ended a program to make an exit status."""


@dataclass
class _Agent:
    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    """Of its standard output."""
    transport: asyncio.ReadTransport
    """What that comes from, which ends with us: what an agent leaves behind may never close it."""
    errors: IO[bytes]
    """What it, and whatever has started it, has complained of."""
    lines: deque[bytes] = field(default_factory=lambda: deque(maxlen=LINES_MAX))
    """What it has said that nobody has asked for yet."""
    passed_over: bytes = b""
    """The last line that was none of its, as of whatever has started it."""
    there: int = 0
    """How often it has said that it is there."""
    failure: str = ""
    """Why nothing is heard of it any more, if that is no fault of its end."""
    said: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has said something, or never will again."""
    reading: asyncio.Task[None] | None = None
    ending: asyncio.Task[int] | None = None
    """Until it has ended and its last word is here; the exit status."""

    def begin(self) -> None:
        """Hears it, and waits for its end."""
        self.reading = asyncio.create_task(self.read())
        self.ending = asyncio.create_task(self.end(self.reading))

    async def end(self, reading: asyncio.Task[None]) -> int:
        """Waits until it has ended, and a moment for its last word: what it leaves behind may keep its pipe open."""
        status = await exited(self.process)
        await asyncio.wait({reading}, timeout=LAST_WORD_HOST_S)
        self.said.set()
        return status

    async def read(self) -> None:
        """Hears what it says until it says no more."""
        try:
            while line := await self.reader.readline():
                if line == THERE:
                    self.there += 1
                else:
                    self.lines.append(line)
                    self.said.set()
        except ValueError as error:
            self.failure = str(error)
        finally:
            self.said.set()

    @property
    def was_lost(self) -> bool:
        """Whether it was there when it ended, or a signal ended it, which whoever has started it tells as a shell does.

        A host that ssh does not reach, which is 255 then, or that has no such program, has lost nothing.
        """
        status = self.process.returncode or 0
        return self.there > 0 or status < 0 or status - BY_SIGNAL in signal.valid_signals()

    @property
    def last_word(self) -> str:
        """All that it said and nobody has asked for."""
        return b"".join(self.lines)[-LAST_WORD_BYTES_MAX:].decode(errors="replace").strip()


class Agents(Protocol):
    """Agents by the names of their machines."""

    async def start(self, name: str, command: Sequence[str]) -> None:
        """Starts the agent of a machine.

        Raises:
            GuestError: It cannot be started.
        """

    async def tell(self, name: str, value: Any) -> None:
        """Tells an agent a value, as a line; that it has ended is seen by who listens."""

    async def hear(self, name: str, mark: bytes) -> Any:
        """What an agent says in a line that begins with `mark`; whatever is said before is of who has started it.

        Raises:
            MachineLostError: It was there, or is killed, and ends before.
            GuestError: It ends before for another reason, or says what none says.
        """

    def there(self, name: str) -> int:
        """How often an agent has said that it is there."""

    def printed(self, name: str) -> str:
        """The last line that whatever starts an agent has printed in place of its first word; empty: none."""

    async def ended(self, name: str) -> str:
        """Waits until an agent has ended, and says how, and what its last word was."""

    async def stop(self, lost: Collection[str] = ()) -> None:
        """Ends all of them; those of lost machines without patience."""


class Processes:
    """Agents by the names of their machines."""

    def __init__(self) -> None:
        """There are none yet."""
        self._agents: dict[str, _Agent] = {}

    async def start(self, name: str, command: Sequence[str]) -> None:
        """Starts the agent of a machine.

        Raises:
            GuestError: There is no such program.
        """
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the agent is there
        reader, loop = asyncio.StreamReader(limit=LINE_BYTES_MAX), asyncio.get_running_loop()
        from_fd, to_fd = os.pipe()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_fd, "rb")
        )
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=to_fd,
                stderr=errors,
                env=environment(),
                # Ctrl-C is for who conducts the run alone.
                start_new_session=True,
            )
        except OSError as error:
            transport.close()
            errors.close()
            raise GuestError(f"{name}: {command[0]} cannot be started: {error.strerror}") from error
        finally:
            os.close(to_fd)
        self._agents[name] = agent = _Agent(process, reader, transport, errors)
        agent.begin()

    async def tell(self, name: str, value: Any) -> None:
        """Tells an agent a value, as a line; that it has ended is seen by who listens."""
        stdin = self._agents[name].process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError):
            stdin.write(json.dumps(to_json(value)).encode() + b"\n")
            await stdin.drain()

    async def hear(self, name: str, mark: bytes) -> Any:
        """What an agent says in a line that begins with `mark`; whatever is said before is of who has started it.

        Raises:
            MachineLostError: It was there, or is killed, and ends before.
            GuestError: It ends before for another reason, or says what none says.
        """
        agent = self._agents[name]
        assert agent.ending is not None
        while True:
            while agent.lines:
                line = agent.lines.popleft()
                if line.startswith(mark):
                    try:
                        return json.loads(line.removeprefix(mark))
                    except ValueError as error:
                        raise GuestError(f"{name} said what no host agent says: {error}") from error
                agent.passed_over = line
            if agent.failure:
                raise GuestError(f"{name} said what no host agent says: {agent.failure}")
            if agent.ending.done():
                why = await self.ended(name)
                raise MachineLostError(name, why) if agent.was_lost else GuestError(why)
            agent.said.clear()
            await agent.said.wait()

    def there(self, name: str) -> int:
        """How often an agent has said that it is there; one that was not started yet has not."""
        return self._agents[name].there if name in self._agents else 0

    def printed(self, name: str) -> str:
        """See `Agents`: what was complained of counts for more."""
        agent = self._agents[name]
        return last_line(agent.errors) or agent.passed_over.decode(errors="replace").strip()

    async def ended(self, name: str) -> str:
        """Waits until an agent has ended, and says how, and what its last word was."""
        agent = self._agents[name]
        assert agent.ending is not None
        status = await asyncio.shield(agent.ending)
        if agent.last_word:
            return agent.last_word
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        complaint = last_line(agent.errors) if status > 0 else ""
        return f"the host agent of {name} {how}{complaint and f': {complaint}'}"

    async def stop(self, lost: Collection[str] = ()) -> None:
        """Ends all of them; those of lost machines without patience."""
        for name, agent in self._agents.items():
            assert agent.process.stdin is not None
            if name in lost and agent.process.returncode is None:
                agent.process.kill()
            agent.process.stdin.close()
        for agent in self._agents.values():
            assert agent.reading is not None and agent.ending is not None
            await asyncio.wait({agent.ending}, timeout=END_HOST_S_MAX)
            if agent.process.returncode is None:
                agent.process.kill()
            agent.reading.cancel()
            await asyncio.gather(agent.reading, agent.ending, return_exceptions=True)
            agent.transport.close()
            agent.errors.close()
        self._agents.clear()


async def exited(process: asyncio.subprocess.Process) -> int:
    """Waits until a process has ended, whoever else has its pipes, for whom `wait` waits too; the exit status."""
    waiting = asyncio.ensure_future(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait({waiting}, timeout=beats.BEAT_HOST_S)
        return process.returncode
    finally:
        waiting.cancel()


def environment() -> dict[str, str]:
    """That of a process of ours, which finds this package."""
    places = filter(None, [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}


def last_line(errors: IO[bytes]) -> str:
    """The last line in a file, if there is one."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - LAST_WORD_BYTES_MAX))
    lines = errors.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
