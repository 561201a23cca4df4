"""The lines from who conducts a run to its host agents: questions, their answers, and what agents say by themselves."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

from dilaton.cluster.engine import Engine
from dilaton.cluster.relay import Relay, Saying, What
from dilaton.host.errors import GuestError, HostLacksError
from dilaton.host.tasks import all_of

SILENCE_HOST_S_MAX = 10.0
"""How long an agent whose guests are up may say nothing, which says what it sees four times a second. One that has
ended is missed at once, and a machine that is gone within four seconds; this is for agents that are stopped."""

ENGINE_WORD_HOST_S = 1.0
"""How long an engine has to say how an agent ended whose line did."""


class Lines:
    """The lines of a run's machines."""

    def __init__(self, hub: Relay, engine: Engine, names: Sequence[str]) -> None:
        """Takes the hub, and the names of its machines by number."""
        self._hub, self._engine, self._names = hub, engine, names
        self._numbers = itertools.count()
        self._waiting: dict[tuple[int, int], asyncio.Future[Any]] = {}
        self._joined = [asyncio.Event() for _ in names]
        self._parts: dict[int, bytearray] = {}
        self._listening = asyncio.create_task(self._listen())
        self._heard_s: dict[int, float] = {}
        """When each machine whose guests are up was heard of, in seconds of the loop."""
        self.lost: asyncio.Future[GuestError] = asyncio.get_running_loop().create_future()
        """Set to why once a machine is gone; nothing is answered from then on."""
        self.seen: Callable[[int, Saying], None] = lambda machine, seen: None
        self.told: Callable[[int, int, Saying], None] = lambda machine, guest, message: None
        self.progressed: Callable[[Saying], None] = lambda progress: None

    @property
    def machines(self) -> range:
        """Their numbers."""
        return range(len(self._names))

    async def all_there(self, patience_host_s: float) -> None:
        """Waits until all machines have joined.

        Raises:
            GuestError: One does not.
        """
        joining = [asyncio.create_task(joined.wait()) for joined in self._joined]
        ended = asyncio.create_task(self._engine.events())
        try:
            everything = asyncio.gather(*joining)
            first: set[asyncio.Future[Any]] = {everything, ended, self.lost}
            await asyncio.wait(first, timeout=patience_host_s, return_when=asyncio.FIRST_COMPLETED)
            if self.lost.done():
                raise self.lost.result()
            if not everything.done():
                missing = [name for name, joined in zip(self._names, self._joined, strict=True) if not joined.is_set()]
                why = ended.result() if ended.done() else f"nothing was heard for {patience_host_s:g} s"
                raise GuestError(f"{', '.join(missing)} did not join the run: {why}")
        finally:
            for task in (*joining, ended):
                task.cancel()

    async def _listen(self) -> None:
        try:
            while True:
                machine, what, message = await self._hub.hear()
                if what is What.GONE:
                    await self._lose(machine, message.decode(errors="replace"))
                elif what is What.JOINED and machine in self.machines:
                    self._joined[machine].set()
                elif what is What.CONTROL:
                    self._hear(machine, json.loads(message))
        except GuestError as error:
            self._fail(error)
        except (ValueError, KeyError, TypeError) as error:
            self._fail(GuestError(f"a host agent said what it cannot: {error}"))

    async def _lose(self, machine: int, why: str) -> None:
        if machine not in self.machines:
            self._fail(GuestError(f"the hub of the run has failed: {why}"))
            return
        with contextlib.suppress(TimeoutError):
            why = await asyncio.wait_for(self._engine.events(), ENGINE_WORD_HOST_S)
        self._fail(GuestError(f"{self._names[machine]} was lost: {why}"))

    def _fail(self, error: GuestError) -> None:
        if not self.lost.done():
            self.lost.set_result(error)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)

    def _hear(self, machine: int, saying: Saying) -> None:
        if "part" in saying:
            self._parts.setdefault(machine, bytearray()).extend(base64.b64decode(saying["part"]))
        if "progress" in saying:
            self.progressed(saying["progress"])
        if "seen" in saying:
            self._heard_s[machine] = asyncio.get_running_loop().time()
            self.seen(machine, saying["seen"])
        if "told" in saying:
            self.told(machine, saying["told"], saying["message"])
        waiting = self._waiting.pop((machine, saying["answers"]), None) if "answers" in saying else None
        if waiting is None or waiting.done():
            return
        if "lacks" in saying:
            waiting.set_exception(HostLacksError(f"{self._names[machine]}: {saying['lacks']}", saying["fix"]))
        elif "error" in saying:
            waiting.set_exception(GuestError(saying["error"]))
        else:
            waiting.set_result(saying.get("value"))

    async def watch(self) -> None:
        """Gives up a machine whose agent says nothing any more."""
        while True:
            before_s = asyncio.get_running_loop().time()
            await asyncio.sleep(1)
            # If this process was stopped itself, nobody is to blame.
            now_s = min(asyncio.get_running_loop().time(), before_s + 2)
            for machine, heard_s in self._heard_s.items():
                if now_s - heard_s > SILENCE_HOST_S_MAX:
                    why = f"its host agent has said nothing for {SILENCE_HOST_S_MAX:g} seconds"
                    self._fail(GuestError(f"{self._names[machine]} was lost: {why}"))

    async def ask(self, machine: int, do: str, **arguments: Any) -> Any:
        """Asks the agent of a machine to do something, and waits for the answer.

        Raises:
            GuestError: It cannot, or is gone.
            HostLacksError: Its machine lacks something.
        """
        if self.lost.done():
            raise self.lost.result()
        number = next(self._numbers)
        waiting = self._waiting[machine, number] = asyncio.get_running_loop().create_future()
        await self._hub.say(machine, {"do": do, "number": number, **arguments})
        return await waiting

    async def ask_all(self, do: str, **arguments: Any) -> list[Any]:
        """Asks all, at the same time."""
        return await all_of(self.ask(machine, do, **arguments) for machine in self.machines)

    async def collected(self, machine: int) -> bytes:
        """An archive of what the guests of a machine have written."""
        await self.ask(machine, "collect")
        return bytes(self._parts.pop(machine, b""))

    async def end(self) -> None:
        """Has all agents end, and the hub."""
        if not self.lost.done():
            for machine in self.machines:
                await self._hub.say(machine, {"do": "end"})
            # What becomes of them now is no failure any more.
            self.lost.set_result(GuestError("the run is over"))
        await self._engine.stop()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        await self._hub.close()
