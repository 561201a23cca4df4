"""Machines that are all this one: each has a host agent of its own, and shares nothing with the others but the host."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dilaton.cluster.engine import Host, Order

END_HOST_S_MAX = 8.0
"""In which an agent ends its guests, which takes milliseconds where nobody has stopped any."""


class Local:
    """The engine of that many machines."""

    def __init__(self, machines: int) -> None:
        """Starts nothing yet."""
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // machines
        self._hosts = [Host(f"machine{number}", memory_bytes) for number in range(machines)]
        self._agents: dict[str, asyncio.subprocess.Process] = {}
        self._directories: list[str] = []

    def address(self) -> str:
        """See `Engine`: nobody else can reach it there."""
        return "127.0.0.1:0"

    def hosts(self) -> Sequence[Host]:
        """See `Engine`."""
        return self._hosts

    def directory(self, number: int, run_dir: Path) -> Path:
        """See `Engine`: within the run directory, so that nothing is left elsewhere, whatever is killed."""
        return run_dir / f"machine{number}"

    async def start(self, host: Host, order: Order) -> None:
        """See `Engine`."""
        package = Path(__file__).resolve().parents[2]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "dilaton.cluster.agent",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(package)},
            start_new_session=True,
        )
        self._agents[host.name] = process
        self._directories.append(order.directory)
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
            await process.stdin.drain()

    async def events(self) -> str:
        """See `Engine`."""

        async def ended(name: str, process: asyncio.subprocess.Process) -> str:
            status = await process.wait()
            how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            return f"the host agent of {name} {how}"

        waiting = [asyncio.create_task(ended(*agent)) for agent in self._agents.items()]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()
        finally:
            for task in waiting:
                task.cancel()

    async def stop(self) -> None:
        """See `Engine`: an agent ends when its standard input does."""
        for process in self._agents.values():
            assert process.stdin is not None
            process.stdin.close()
        for process in self._agents.values():
            try:
                await asyncio.wait_for(process.wait(), END_HOST_S_MAX)
            except TimeoutError:
                process.kill()
                await process.wait()
        self._agents.clear()
        for directory in self._directories:
            # Of an agent that was killed.
            shutil.rmtree(directory, ignore_errors=True)
