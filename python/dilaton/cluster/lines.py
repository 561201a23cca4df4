"""The lines from who conducts a run to its host agents: questions, their answers, and what agents say by themselves."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import Callable, Sequence
from typing import IO, Any

from dilaton.cluster.beats import BEAT_HOST_S, SILENCE_HOST_S_MAX, SILENT_BEATS_MAX, silence
from dilaton.cluster.engines.engine import Engine, Host
from dilaton.cluster.relay import Relay, Saying, What
from dilaton.host.errors import GuestError, HostLacksError, MachineLostError
from dilaton.host.tasks import all_of, within

ENGINE_WORD_HOST_S = 0.5
"""How long an engine has to say how an agent ended whose line did."""


class Lines:
    """The lines of a run's machines."""

    def __init__(self, hub: Relay, engine: Engine, hosts: Sequence[Host]) -> None:
        """Takes the hub, and its machines by number."""
        self._hub, self._engine, self._hosts = hub, engine, hosts
        self._names = [host.name for host in hosts]
        self._numbers = itertools.count()
        self._waiting: dict[tuple[int, int], asyncio.Future[Any]] = {}
        self._joined = [asyncio.Event() for _ in hosts]
        self._parts: dict[int, IO[bytes]] = {}
        self._silent_beats = [0] * len(hosts)
        """For how many beats nothing was heard of each machine."""
        self._there = [0] * len(hosts)
        """How often each agent had said that it is there, when it was looked."""
        self._gone: set[int] = set()
        self._listening = asyncio.create_task(self._listen())
        self._watching = asyncio.create_task(self._watch())
        self.lost: asyncio.Future[GuestError] = asyncio.get_running_loop().create_future()
        """Set to why once a machine is gone; nothing is asked from then on but what the others' guests have written."""
        self.seen: Callable[[int, Saying], None] = lambda machine, seen: None
        self.told: Callable[[int, int, Saying], None] = lambda machine, guest, message: None
        self.of_line: Callable[[int, int, Saying], None] = lambda machine, guest, saying: None
        self.progressed: Callable[[Saying], None] = lambda progress: None

    @property
    def machines(self) -> range:
        """Their numbers."""
        return range(len(self._names))

    def name(self, machine: int) -> str:
        """By which messages name a machine."""
        return self._names[machine]

    async def all_there(self, patience_host_s: float) -> None:
        """Waits until all machines have joined, as long as their agents are heard of, and for so long at most.

        Raises:
            MachineLostError: One does not, or is lost meanwhile.
            GuestError: The hub is.
        """
        joining = [asyncio.create_task(joined.wait()) for joined in self._joined]
        ends = [asyncio.create_task(self._engine.ended(host)) for host in self._hosts]
        try:
            everything = asyncio.gather(*joining, return_exceptions=True)
            first: set[asyncio.Future[Any]] = {everything, self.lost, *ends}
            await asyncio.wait(first, timeout=patience_host_s, return_when=asyncio.FIRST_COMPLETED)
            if self.lost.done():
                raise self.lost.result()
            if not everything.done():
                for machine, ended in enumerate(ends):
                    if ended.done():
                        raise self._lost(machine, ended.result())
                missing = next(machine for machine, joined in enumerate(self._joined) if not joined.is_set())
                raise self._lost(missing, f"it took more than {patience_host_s:g} s")
        finally:
            for task in (*joining, *ends):
                task.cancel()

    async def _listen(self) -> None:
        try:
            while True:
                machine, what, message = await self._hub.hear()
                if what is What.GONE:
                    await self._lose(machine, message.decode(errors="replace"))
                elif what is What.JOINED and machine in self.machines:
                    self._silent_beats[machine] = 0
                    self._joined[machine].set()
                elif what is What.CONTROL:
                    self._hear(machine, json.loads(message))
        except GuestError as error:
            self._gone.update(self.machines)
            self._fail(error)
        except Exception as error:
            # Nobody else would hear of it, and all would wait for ever.
            self._gone.update(self.machines)
            self._fail(GuestError(f"a host agent said what it cannot: {type(error).__name__}: {error}"))

    async def _lose(self, machine: int, why: str) -> None:
        if machine not in self.machines:
            self._gone.update(self.machines)
            self._fail(GuestError(f"the hub of the run has failed: {why}"))
            return
        self._gone.add(machine)
        # A line ends for what its agent ends for, which may know more.
        with contextlib.suppress(TimeoutError):
            why = await within(ENGINE_WORD_HOST_S, self._engine.ended(self._hosts[machine]))
        self._fail(self._lost(machine, why))

    def _lost(self, machine: int, why: str) -> MachineLostError:
        became = "was lost" if self._joined[machine].is_set() else "did not join the run"
        return MachineLostError(self._names[machine], f"{self._names[machine]} {became}: {why}")

    def _fail(self, error: GuestError) -> None:
        if not self.lost.done():
            self.lost.set_result(error)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)

    def _hear(self, machine: int, saying: Saying) -> None:
        self._silent_beats[machine] = 0
        if "part" in saying and machine in self._parts:
            self._parts[machine].write(base64.b64decode(saying["part"]))
        if "progress" in saying:
            self.progressed(saying["progress"])
        if "seen" in saying:
            self.seen(machine, saying["seen"])
        if "told" in saying:
            self.told(machine, saying["told"], saying["message"])
        if "line" in saying:
            self.of_line(machine, saying["line"], saying)
        waiting = self._waiting.pop((machine, saying["answers"]), None) if "answers" in saying else None
        if waiting is None or waiting.done():
            return
        if "lacks" in saying:
            waiting.set_exception(HostLacksError(f"{self._names[machine]}: {saying['lacks']}", saying["fix"]))
        elif "error" in saying:
            waiting.set_exception(GuestError(saying["error"]))
        else:
            waiting.set_result(saying.get("value"))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(BEAT_HOST_S)
            silent = self._silent() - self._gone
            if len(silent) == len(self.machines) > 1 and all(joined.is_set() for joined in self._joined):
                self._fail(GuestError(f"the hub of the run has passed nothing on for {SILENCE_HOST_S_MAX:g} seconds"))
                self._hub.kill()
            self._gone |= silent
            for machine in sorted(silent):
                if self._joined[machine].is_set():
                    self._fail(self._lost(machine, silence()))
                else:
                    # Its relay may have said just now why it does not reach the hub.
                    await self._lose(machine, silence())

    def _silent(self) -> set[int]:
        """The machines of which nothing was heard for too long."""
        for machine, host in enumerate(self._hosts):
            self._silent_beats[machine] += 1
            if (there := self._engine.there(host)) != self._there[machine]:
                self._there[machine], self._silent_beats[machine] = there, 0
        return {machine for machine, beats in enumerate(self._silent_beats) if beats > SILENT_BEATS_MAX}

    def put(self, machine: int, saying: Saying) -> None:
        """Says something of a line to the agent of a machine, which does not answer; one that is gone hears nothing."""
        if machine not in self._gone:
            self._hub.put(machine, saying)

    async def ask(self, machine: int, do: str, **arguments: Any) -> Any:
        """Asks the agent of a machine to do something, and waits for the answer.

        Raises:
            GuestError: It cannot, or is gone.
            HostLacksError: Its machine lacks something.
        """
        if self.lost.done():
            raise self.lost.result()
        return await self._ask(machine, do, **arguments)

    async def _ask(self, machine: int, do: str, **arguments: Any) -> Any:
        number = next(self._numbers)
        waiting = self._waiting[machine, number] = asyncio.get_running_loop().create_future()
        await self._hub.say(machine, {"do": do, "number": number, **arguments})
        return await waiting

    async def ask_all(self, do: str, **arguments: Any) -> list[Any]:
        """Asks all, at the same time."""
        return await all_of(self.ask(machine, do, **arguments) for machine in self.machines)

    async def collect(self, machine: int, into: IO[bytes]) -> bool:
        """Puts an archive of what the guests of a machine have written into a file; false if it is gone, or never came.

        Raises:
            GuestError: It cannot, or goes meanwhile.
        """
        if machine in self._gone or not self._joined[machine].is_set():
            return False
        self._parts[machine] = into
        try:
            await self._ask(machine, "collect")
        finally:
            del self._parts[machine]
        into.seek(0)
        return True

    async def end(self) -> None:
        """Has all agents end, and the hub."""
        for machine in self.machines:
            if machine not in self._gone:
                await self._hub.say(machine, {"do": "end"})
        if not self.lost.done():
            # What becomes of them now is no failure any more.
            self.lost.set_result(GuestError("the run is over"))
        await self._engine.stop([self._hosts[machine] for machine in sorted(self._gone)])
        for task in (self._listening, self._watching):
            task.cancel()
        await asyncio.gather(self._listening, self._watching, return_exceptions=True)
        await self._hub.close()
