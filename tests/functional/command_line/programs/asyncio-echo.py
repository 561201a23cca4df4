"""Twenty clients and their server in one event loop, then a long wait."""

import asyncio
import time


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends one line back."""
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


async def ask(port: int, number: int) -> int:
    """Has a number sent back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"%d\n" % number)
    echo = int(await reader.readline())
    writer.close()
    return echo


async def main() -> None:
    """Prints the sum of what came back, and the whole seconds of a wait of a hundred."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    echoes = await asyncio.gather(*(ask(port, number) for number in range(20)))
    begin = time.monotonic()
    await asyncio.sleep(100)
    print(sum(echoes), int(time.monotonic() - begin))


asyncio.run(main())
