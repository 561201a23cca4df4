"""`dilaton`, where what machines of a run say to each other goes through somebody who disturbs it.

`python -m tests.functional.cluster.connections DISTURBANCE ARGUMENT...`: all is 10 ms late from the start on, or, once this
process is told by SIGUSR1, the connection of the first machine is disturbed. Told by SIGUSR2 it says what it waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dilaton.cli.main import main
from dilaton.cluster.engines import local, ray
from dilaton.cluster.engines.engine import Host, Order

LATE_S, STALL_AT = 0.01, 150

STALL_S = 3.0
"""Shorter than any limit, and so to change nothing in virtual time."""

SILENT_S = 3600.0

LATE, CUT = "late", "cut"

DISTURBANCES: dict[str, tuple[float, float]] = {
    LATE: (0, 0),
    CUT: (0, 0),
    "stall": (STALL_S, STALL_S),
    "stall one way": (0, STALL_S),
    "silence one way": (SILENT_S, 0),
    "silence the other way": (0, SILENT_S),
}
"""For how many seconds nothing goes to the hub, and to the machine, once it is told so."""


class Way:
    """One direction of a connection."""

    def __init__(self, late_s: float) -> None:
        self._late_s, self._held_until_s = late_s, 0.0
        self._passed = 0

    def hold(self, seconds: float) -> None:
        """From now on nothing passes for so long."""
        self._held_until_s = asyncio.get_running_loop().time() + seconds

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on what comes until no more does."""
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def deliver() -> None:
            while True:
                due_s, some = await late.get()
                await asyncio.sleep(max(0, due_s - loop.time()))
                self._passed += 1
                if self._late_s and self._passed == STALL_AT and not Between.has_stalled:
                    Between.has_stalled = True
                    self.hold(STALL_S)
                held_s = self._held_until_s - loop.time()
                if held_s > 0:
                    await asyncio.sleep(held_s)
                    print(f"a connection stood still for {held_s:.0f} s", file=sys.stderr)
                writer.write(some)

        delivering = asyncio.create_task(deliver())
        with contextlib.suppress(ConnectionError):
            while some := await reader.read(1 << 16):
                late.put_nowait((loop.time() + self._late_s, some))
        delivering.cancel()
        writer.close()


class Between:
    """What is between machines and the hub."""

    has_stalled = False
    disturbance = LATE
    is_told = False
    disturb: Callable[[], object] = staticmethod(lambda: None)

    @classmethod
    def tell(cls, *_: object) -> None:
        """Has the connection disturbed: now, or as soon as there is one."""
        cls.is_told = True
        cls.disturb()

    @staticmethod
    async def listen(order: Order) -> Order:
        """What a machine is told instead, so that its connection goes through here."""
        address, _, port = order.hub.rpartition(":")
        late_s = LATE_S if Between.disturbance == LATE else 0.0

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            to_reader, to_writer = await asyncio.open_connection(address, int(port))
            to_hub, to_machine = Way(late_s), Way(late_s)

            def disturb() -> None:
                up_s, down_s = DISTURBANCES[Between.disturbance]
                if Between.disturbance == CUT:
                    writer.transport.abort()
                    to_writer.transport.abort()
                to_hub.hold(up_s)
                to_machine.hold(down_s)

            if order.number == 0:
                loop = asyncio.get_running_loop()
                Between.disturb = lambda: loop.is_closed() or loop.call_soon_threadsafe(disturb)
                if Between.is_told:
                    disturb()
            await asyncio.gather(to_hub.carry(reader, to_writer), to_machine.carry(to_reader, writer))

        server = await asyncio.start_server(connected, address, 0)
        near = server.sockets[0].getsockname()[1]
        return replace(order, hub=f"{address}:{near}")

    @staticmethod
    def come(engine: type[local.Local | ray.Ray]) -> None:
        """From now on machines of this engine are told so."""
        start = engine.start

        async def start_through(self: Any, host: Host, order: Order) -> None:
            await start(self, host, await Between.listen(order))

        engine.start = start_through  # type: ignore[method-assign]


def tell_tasks(*_: object) -> None:
    """Says where each task of this process is."""
    with contextlib.suppress(RuntimeError):
        for task in asyncio.all_tasks():
            task.print_stack()


if __name__ == "__main__":
    for engine in (local.Local, ray.Ray):
        Between.come(engine)
    Between.disturbance = sys.argv.pop(1)
    # Not by the loop's own handlers, after whose end the signal would end this process.
    signal.signal(signal.SIGUSR1, Between.tell)
    signal.signal(signal.SIGUSR2, tell_tasks)
    main()
