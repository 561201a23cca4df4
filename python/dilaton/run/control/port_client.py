"""Connections to ports of nodes, from outside: a connection here and one in the node, joined by a session.

Bytes go both ways as fast as the slower side takes them, and virtual time no faster than host time. There is no way
from the node to here: only who is here connects.
"""

from __future__ import annotations

import asyncio

from dilaton.run.control.session_client import Reached, over
from dilaton.run.control.terminal_client import Terminal

PIECE_BYTES = 1 << 15


async def join(run: Reached, node: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """Joins a connection with a TCP port of a node, until the node's side has sent everything.

    Args:
        run: The run.
        node: Where.
        port: 1 to 65535.
        reader: What is to be sent there; its end is passed on.
        writer: Gets what comes from there; closing it is the caller's.

    Returns:
        Why there was no connection, or what broke it off; empty: nothing did.

    Raises:
        ControlError: no run goes on there, or it refuses.
        ConnectionError: who reads from `writer` is gone.
    """
    async with over(run.port(node, port), Terminal) as joined:
        sending = asyncio.create_task(_send(joined, reader))
        try:
            while data := await joined.read():
                writer.write(data)
                await writer.drain()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        ending = joined.ending
        assert ending is not None, "nothing more comes because it has ended"
        return (joined.errors or ending.reason or f"status {ending.status}") if ending.status else ""


async def _send(joined: Terminal, reader: asyncio.StreamReader) -> None:
    try:
        while data := await reader.read(PIECE_BYTES):
            await joined.hand_over(data)
    except ConnectionError:
        pass  # as if it had ended: what still comes from the node nobody takes
    joined.end_input()
