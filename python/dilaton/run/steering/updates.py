"""What agents are told to take over in the middle of a run, and what they answer.

An update is a document in the run directory, which a message names. An agent takes it over as a whole or refuses it, at
one virtual instant; what it says of that comes among its events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dilaton.host.messages import Event, OfUpdate, Refused, ToAgent, Updated, UpdateFaults
from dilaton.host.port import Guest
from dilaton.plan.course.entries import FaultUpdate
from dilaton.run.control.errors import ControlError
from dilaton.run.files.directory import RunDir

NOTHING_ASKED = FaultUpdate(is_question=True, links=[], modules=[], again=[], begin=[], undo=[]).model_dump_json()
"""A question that every agent says yes to, once it hears of it."""


@dataclass(frozen=True)
class _Told:
    """What an agent has been told and has not answered yet."""

    taken: Callable[[Updated], Event | None]
    answer: asyncio.Future[OfUpdate]


class Updates:
    """The updates of a run."""

    def __init__(self, run_dir: RunDir, guests: Sequence[Guest]) -> None:
        """Tells the agents of these guests, which find documents in the run directory."""
        self._run_dir = run_dir
        self._guests = guests
        self._count = 0
        self._told: dict[str, _Told] = {}
        self.turn = asyncio.Lock()
        """One update is planned and told after the other: each is planned on what the last one has made."""

    def answered(self, message: OfUpdate) -> Event | None:
        """Takes what an agent says became of an update; returns the event that this is, if it is one.

        Raises:
            ValueError: Nobody has asked for that update.
        """
        if message.file not in self._told:
            raise ValueError(f"nobody has asked for the update {message.file}")
        told = self._told.pop(message.file)
        if not told.answer.done():
            told.answer.set_result(message)
        return told.taken(message) if isinstance(message, Updated) else None

    async def reach(self, guests: Sequence[int], host_s: float) -> list[str]:
        """Asks agents for an answer, and waits for so long; the names of the guests of which none has come.

        On the event drive one comes when the kernel idles, and where the clock stands, that may be never.
        """
        asking = [asyncio.create_task(self.tell(guest, UpdateFaults, NOTHING_ASKED)) for guest in guests]
        try:
            await asyncio.wait(asking, timeout=host_s)
        finally:
            for one in asking:
                one.cancel()
        answered = zip(guests, await asyncio.gather(*asking, return_exceptions=True), strict=True)
        return [self._guests[guest].name for guest, answer in answered if isinstance(answer, asyncio.CancelledError)]

    async def tell(
        self,
        guest: int,
        of: type[ToAgent],
        document: str,
        taken: Callable[[Updated], Event | None] = lambda _: None,
    ) -> int:
        """Has an agent take a document over; returns the virtual instant at which it did.

        Args:
            guest: The number of its guest.
            of: The message that names the document.
            document: JSON.
            taken: Called when it has taken it over, before anything that it says afterwards; returns an event, or None.

        Raises:
            ControlError: It refuses it.
        """
        self._count += 1
        file = f"{of.tag}-{self._count}.json"
        self._run_dir.write(file, document)
        answer: asyncio.Future[OfUpdate] = asyncio.get_running_loop().create_future()
        self._told[file] = _Told(taken, answer)
        await self._guests[guest].send(of(file=file))
        match await answer:
            case Refused(reason=reason):
                raise ControlError(f"the guest cannot do that: {reason}")
            case Updated(t_ns=t_ns):
                return t_ns
        raise AssertionError("an answer of neither kind")
