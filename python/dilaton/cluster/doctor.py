"""Whether a host has a part in a run as one would ask it to: its agent connects to a hub here, and answers.

What a host has is known by then; that says nothing of a firewall between the two, nor of how far they are apart.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
from dataclasses import dataclass

from dilaton.cluster.engines.asking import Asking
from dilaton.cluster.engines.engine import Host, Order
from dilaton.cluster.engines.having import Has, Needs
from dilaton.cluster.lines import Lines
from dilaton.cluster.machine import listening
from dilaton.cluster.relay import KEY_BYTES
from dilaton.host.errors import GuestError

JOIN_HOST_S_MAX = 15.0
"""In which a host has to connect, which takes it a second."""

QUESTIONS = 20


@dataclass(frozen=True)
class Examined:
    """A host, as it was found.

    Attributes:
        has: What it has, or why that is not known.
        answer_host_s: How long it takes to ask its agent something, the median; None: it cannot be asked.
        why: Why not; empty: it can.
    """

    has: Has | GuestError
    answer_host_s: float | None = None
    why: str = ""


async def examine(engine: Asking, needed: Needs) -> Examined:
    """Examines the host of an engine that has one; nothing is left there."""
    try:
        (has,) = await engine.look(needed)
        if isinstance(has, GuestError):
            return Examined(has)
        try:
            return Examined(has, await _answers(engine, Host(engine.names[0], has.memory_bytes)))
        except GuestError as error:
            return Examined(has, why=str(error))
    finally:
        await engine.stop()


async def _answers(engine: Asking, host: Host) -> float:
    key = secrets.token_bytes(KEY_BYTES)
    hub, address = await listening(key, engine.address())
    lines = Lines(hub, engine, [host])
    loop = asyncio.get_running_loop()
    try:
        await engine.start(host, Order(key.hex(), address, 0, ""))
        try:
            await lines.all_there(JOIN_HOST_S_MAX)
        except GuestError as error:
            fix = "set DILATON_HUB to an address and a port of this machine that it reaches"
            raise GuestError(f"it does not reach this machine at {address} ({error}); {fix}") from error
        taken_host_s = []
        for _ in range(QUESTIONS):
            begin_s = loop.time()
            await lines.ask(0, "look")
            taken_host_s.append(loop.time() - begin_s)
        return statistics.median(taken_host_s)
    finally:
        await lines.end()
