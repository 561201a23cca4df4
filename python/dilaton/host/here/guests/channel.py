"""The channel: JSON lines between the host and the agent of a guest (`crates/agent/PROTOCOL.md`)."""

from __future__ import annotations

import asyncio
import json
import socket

from dilaton.host.errors import GuestError
from dilaton.host.messages import Event, FromAgent, ToAgent, parse

PROTOCOL = 1
LINE_BYTES_MAX = 64 * 1024

LINE_BYTES_SHOWN = 200
"""How much is shown of a line that is no message."""


class Channel:
    """The host's end of a channel. `guest_fd` is to be inherited by the guest and then closed."""

    def __init__(self) -> None:
        """Makes both ends."""
        self._host, guest = socket.socketpair()
        self._host.setblocking(False)
        self.guest_fd = guest.detach()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Begins to read."""
        self._reader, self._writer = await asyncio.open_unix_connection(sock=self._host, limit=LINE_BYTES_MAX)

    async def send(self, message: ToAgent) -> None:
        """Sends one message; a guest that is gone is noticed by `receive`."""
        assert self._writer is not None, "send before open"
        self._writer.write(json.dumps(message.json()).encode() + b"\n")
        try:
            await self._writer.drain()
        except ConnectionError:
            pass

    async def receive(self) -> FromAgent | Event | None:
        """The next message; None when the guest has closed the channel.

        Raises:
            GuestError: when the line is not a message.
        """
        assert self._reader is not None, "receive before open"
        try:
            line = await self._reader.readline()
        except ConnectionError:
            return None
        except ValueError as error:
            raise GuestError(f"the agent sent a line of more than {LINE_BYTES_MAX} bytes") from error
        if not line.endswith(b"\n"):
            return None
        try:
            return parse(line)
        except ValueError as error:
            said = line[:LINE_BYTES_SHOWN]
            raise GuestError(f"the agent sent something that is no message ({error}): {said!r}") from error

    def close(self) -> None:
        """Closes the host's end."""
        if self._writer is not None:
            self._writer.close()
        else:
            self._host.close()
