"""A relay and what is said to it: the hub of a run, or the side of a machine (crates/relay)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from dilaton.host import files
from dilaton.host.errors import GuestError
from dilaton.host.tasks import within

HEADER = struct.Struct("<III")
NOBODY = 2**32 - 1
"""No machine in particular."""

KEY_BYTES = 32
END_HOST_S_MAX = 1.0

Saying = Mapping[str, Any]
"""What agents and who conducts the run say to each other: an object of JSON."""


class What(IntEnum):
    """What a message is; `crates/relay/src/pipes.rs` has the same."""

    CONTROL = 0
    LISTENS = 1
    JOINED = 2
    GONE = 3
    LAYOUT = 4


class Relay:
    """A process, whose standard streams carry messages. Make it with `start`; `close` ends it."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        """Use `start`."""
        self._name = name
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._to, self._from = process, process.stdin, process.stdout

    @classmethod
    async def start(cls, key: bytes, *arguments: str, fds: Sequence[int] = ()) -> Relay:
        """Starts one.

        Args:
            key: Of the run.
            arguments: Of its command line.
            fds: What it inherits.

        Raises:
            HostLacksError: It is not built.
        """
        process = await asyncio.create_subprocess_exec(
            files.built(files.RELAY),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=fds,
            # Ctrl-C is for who conducts the run alone.
            start_new_session=True,
        )
        relay = cls(process, arguments[0])
        relay._to.write(key)
        return relay

    async def send(self, machine: int, what: What, message: bytes) -> None:
        """Says something; that the relay is gone is seen by who listens."""
        self._put(machine, what, message)
        with contextlib.suppress(ConnectionError):
            await self._to.drain()

    def _put(self, machine: int, what: What, message: bytes) -> None:
        self._to.write(HEADER.pack(machine, what, len(message)) + message)

    async def say(self, machine: int, saying: Saying) -> None:
        """Says something to the other side of the run."""
        await self.send(machine, What.CONTROL, json.dumps(saying).encode())

    def put(self, machine: int, saying: Saying) -> None:
        """As `say`, without waiting until it is on its way: for what is bounded elsewhere, as by windows."""
        self._put(machine, What.CONTROL, json.dumps(saying).encode())

    async def hear(self) -> tuple[int, What, bytes]:
        """The next message.

        Raises:
            GuestError: The relay has ended.
        """
        try:
            machine, what, length = HEADER.unpack(await self._from.readexactly(HEADER.size))
            return machine, What(what), await self._from.readexactly(length)
        except asyncio.IncompleteReadError as error:
            raise GuestError(f"the relay of the {self._name} has ended") from error

    def kill(self) -> None:
        """Ends one that does not answer."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """Ends it."""
        self._to.close()
        try:
            await within(END_HOST_S_MAX, self._process.wait())
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
