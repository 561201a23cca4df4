"""Machines that are all this one: each has a host agent of its own, and shares nothing with the others but the host."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dilaton.cluster import archive
from dilaton.cluster.engine import Host, Order

END_HOST_S_MAX = 3.0
"""In which an agent ends its guests, which takes milliseconds where nobody has stopped any; then it is killed, and they
with it."""

LAST_WORD_HOST_S, LAST_WORD_BYTES_MAX = 0.2, 4096
"""How long the last word of an agent that has ended is waited for, and how long it may be."""


class Local:
    """The engine of that many machines."""

    def __init__(self, machines: int) -> None:
        """Starts nothing yet."""
        # Each may take all of it, since they share it; that all together do not take more is seen to by the plan.
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
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
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(package)},
            start_new_session=True,
        )
        self._agents[host.name] = process
        self._directories.append(order.directory)
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
            await process.stdin.drain()

    async def ended(self, host: Host) -> str:
        """See `Engine`."""
        process = self._agents[host.name]
        status = await process.wait()
        assert process.stdout is not None
        # What the agent has left behind may have its standard output open for a moment more.
        with contextlib.suppress(TimeoutError):
            last_word = await asyncio.wait_for(process.stdout.read(LAST_WORD_BYTES_MAX), LAST_WORD_HOST_S)
            if last_word:
                return last_word.decode(errors="replace").strip()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"the host agent of {host.name} {how}"

    async def stop(self, lost: Sequence[Host] = ()) -> None:
        """See `Engine`: an agent ends when its standard input does, and whatever it has started when it does."""
        for host in lost:
            if (process := self._agents.get(host.name)) and process.returncode is None:
                process.kill()
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
            await archive.remove(directory)
