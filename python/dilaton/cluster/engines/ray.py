"""Machines of a cluster of Ray's (https://ray.io): it reserves cores and memory on each, and an actor starts the agent.

All that a run knows of Ray is a process beside it (`ray_driver.py`). Cores and memory are those of the guests, divided
evenly, in one group of which each part is on another machine: a run has all of it or waits. Ray restarts nothing: a run
without one of its machines is worth nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Collection, Sequence
from typing import IO, TYPE_CHECKING, Any

from dilaton.cluster import own
from dilaton.cluster.engines.asking import Asking
from dilaton.cluster.engines.engine import Host
from dilaton.cluster.engines.processes import LINE_BYTES_MAX, environment, last_line
from dilaton.cluster.host_agent import THERE
from dilaton.cluster.values import to_json
from dilaton.host.errors import GuestError, HostLacksError, MachineLostError
from dilaton.host.processes import ending_with_us
from dilaton.host.tasks import within

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

END_HOST_S_MAX = 10.0


class Carried:
    """Agents that actors have started, by the names of their machines, over the lines of the driver."""

    def __init__(self) -> None:
        """There are none yet."""
        self._driver: asyncio.subprocess.Process | None = None
        self._errors: IO[bytes] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._heard: dict[str, asyncio.Queue[str | None]] = {}
        self._there: dict[str, int] = {}
        self._ended: dict[str, asyncio.Future[str]] = {}
        self.addresses: dict[str, str] = {}

    async def reserve(self, **wanted: Any) -> list[str]:
        """Waits for machines with what is wanted, and for agents on them; the names of the machines.

        Raises:
            HostLacksError: Ray is not installed.
            MachineLostError: One is lost meanwhile.
            GuestError: There is no cluster, or it has not so much.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the driver is there
        self._driver = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dilaton.cluster.engines.ray_driver"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            env=environment() | own.variables(),
            limit=LINE_BYTES_MAX,
            # Ctrl-C is for who conducts the run alone.
            start_new_session=True,
            preexec_fn=ending_with_us(),
        )
        await self._say(**wanted)
        said = await self._next()
        if said is None:
            why = last_line(self._errors)
            if "No module named 'ray'" in why:
                raise HostLacksError("Ray is not installed", "pip install dilaton[cluster]")
            raise GuestError(f"what speaks with Ray has ended: {why}")
        if "failed" in said:
            why = f"Ray: {said['failed']}"
            raise MachineLostError("a machine of Ray's", why) if said["is_lost"] else GuestError(why)
        names = [str(name) for name in said["names"]]
        self.addresses = dict(zip(names, said["addresses"], strict=True))
        self._heard = {name: asyncio.Queue() for name in names}
        self._there = dict.fromkeys(names, 0)
        self._ended = {name: asyncio.get_running_loop().create_future() for name in names}
        self._reading = asyncio.create_task(self._read(names))
        return names

    async def _say(self, **said: Any) -> None:
        assert self._driver is not None and self._driver.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._driver.stdin.write(json.dumps(said).encode() + b"\n")
            await self._driver.stdin.drain()

    async def _next(self) -> dict[str, Any] | None:
        assert self._driver is not None and self._driver.stdout is not None
        line = await self._driver.stdout.readline()
        return json.loads(line) if line else None

    async def _read(self, names: Sequence[str]) -> None:
        while said := await self._next():
            name = names[said["machine"]]
            if said.get("line") == THERE.decode():
                self._there[name] += 1
            elif "line" in said:
                self._heard[name].put_nowait(said["line"])
            else:
                self._end(name, f"the host agent of {name} {said['ended']}")
        for name in names:
            self._end(name, f"what speaks with Ray for {name} has ended")

    def _end(self, name: str, how: str) -> None:
        if not self._ended[name].done():
            self._ended[name].set_result(how)
            self._heard[name].put_nowait(None)

    async def start(self, name: str, command: Sequence[str]) -> None:
        """Its actor has started it."""

    async def tell(self, name: str, value: Any) -> None:
        """Tells an agent a value, as a line; that it has ended is seen by who listens."""
        await self._say(machine=list(self._heard).index(name), line=json.dumps(to_json(value)))

    async def hear(self, name: str, mark: bytes) -> Any:
        """What an agent says in a line that begins with `mark`.

        Raises:
            MachineLostError: It ends before, for whatever reason: Ray has started it.
        """
        while line := await self._heard[name].get():
            if line.startswith(mark.decode()):
                return json.loads(line.removeprefix(mark.decode()))
        raise MachineLostError(name, await self.ended(name))

    def there(self, name: str) -> int:
        """How often an agent has said that it is there."""
        return self._there[name]

    def printed(self, name: str) -> str:
        """See `Agents`: nothing is between Ray and its agents that would print."""
        return ""

    async def ended(self, name: str) -> str:
        """Waits until an agent has ended, and says how, and what its last word was."""
        how = await asyncio.shield(self._ended[name])
        said = None
        while not self._heard[name].empty():
            said = self._heard[name].get_nowait() or said
        return said.strip() if said else how

    async def stop(self, lost: Collection[str] = ()) -> None:
        """Ends all of them; those of lost machines without patience."""
        if self._driver is None:
            return
        driver, self._driver = self._driver, None
        assert driver.stdin is not None
        driver.stdin.close()
        try:
            await within(END_HOST_S_MAX, driver.wait())
        except TimeoutError:
            driver.kill()
            await driver.wait()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._errors is not None:
            self._errors.close()


class Ray(Asking):
    """The engine of so many machines."""

    def __init__(self, machines: int, hub: str) -> None:
        """Asks for so many machines, not yet; `hub` as `Asking` has it."""
        self._carried = Carried()
        super().__init__(hub, self._carried)
        self._machines = machines
        self._names: list[str] = []

    @property
    def names(self) -> Sequence[str]:
        """See `Asking`."""
        return self._names

    @property
    def fix(self) -> str:
        """See `Asking`."""
        return "dilaton doctor, on each machine of the cluster"

    def _command(self, name: str) -> Sequence[str]:
        return ()

    def _reached_at(self, name: str) -> str | None:
        return self._carried.addresses[name]

    async def hosts(self, planned: Plan, *, jailed: bool) -> Sequence[Host]:
        """See `Engine`: it may wait until others have given back what they have of the cluster."""
        guests = len(planned.guests)
        memory_bytes = sum(guest.memory_bytes for guest in planned.guests)
        self._names = await self._carried.reserve(
            machines=self._machines,
            cores=-(-guests // self._machines),
            memory_bytes=-(-memory_bytes // self._machines),
        )
        return await super().hosts(planned, jailed=jailed)
