"""`dilaton`, where what machines of a run say to each other comes late: 10 ms, and once a connection stands still while guests run."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import replace

from dilaton.cli.main import main
from dilaton.cluster.engines import local
from dilaton.cluster.engines.engine import Host, Order

LATE_S, STALL_S, STALL_AT = 0.01, 2.5, 400


class Slow(local.Local):
    """Machines whose connections to the hub go through who holds bytes back."""

    passed = 0

    async def start(self, host: Host, order: Order) -> None:
        address, _, port = order.hub.rpartition(":")

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
            loop = asyncio.get_running_loop()

            async def deliver() -> None:
                while True:
                    due_s, some = await late.get()
                    await asyncio.sleep(max(0, due_s - loop.time()))
                    Slow.passed += 1
                    if Slow.passed == STALL_AT:
                        await asyncio.sleep(STALL_S)
                        print(f"a connection stood still for {STALL_S:g} s", file=sys.stderr)
                    writer.write(some)

            delivering = asyncio.create_task(deliver())
            with contextlib.suppress(ConnectionError):
                while some := await reader.read(1 << 16):
                    late.put_nowait((loop.time() + LATE_S, some))
            delivering.cancel()
            writer.close()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            to_reader, to_writer = await asyncio.open_connection(address, int(port))
            await asyncio.gather(carry(reader, to_writer), carry(to_reader, writer))

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        near = server.sockets[0].getsockname()[1]
        await super().start(host, replace(order, hub=f"127.0.0.1:{near}"))


if __name__ == "__main__":
    local.Local = Slow  # type: ignore[misc]
    main()
