"""A run as those find it who steer what is in it.

**At one instant.** What several guests have to take over together is told them while virtual time stands. On the event
drive a guest hears of it when its kernel idles. One that was at work where the clock was held, and is at its bound,
does not come to that, and neither does a program that polls until time has passed. So all are asked for an answer
first, and where one does not come, virtual time goes on for a while, and stands again further on. Where somebody else
holds the clock, that is refused, so that nobody waits for what never comes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from dilaton.lab.model import Lab
from dilaton.plan.model import Plan
from dilaton.run.control.errors import ControlError
from dilaton.run.files.clock_log import Reading
from dilaton.run.steering.clock import ClockControl
from dilaton.run.steering.updates import Updates

ANSWER_HOST_S = 5.0
"""In this time of the host agents that hear answer."""

GO_ON_HOST_S = (0.05, 0.1, 0.2, 0.5, 1.0)
"""For how long virtual time goes on before it stands again, one time after the other."""


@dataclass(frozen=True)
class Steered:
    """What is run, and what there is to steer it by.

    Attributes:
        lab: What is run.
        plan: What it was compiled to.
        updates: Tells the agents of its guests.
        clock: Lets its clock stand still.
        now: Reads that clock.
    """

    lab: Lab
    plan: Plan
    updates: Updates
    clock: ClockControl
    now: Callable[[], Reading]

    @contextlib.asynccontextmanager
    async def at_one_instant(self, guests: Sequence[int], reason: str) -> AsyncIterator[None]:
        """Lets virtual time stand still meanwhile, where these guests, given by their numbers, listen.

        Raises:
            ControlError: Another command is under way, or one of them does not listen.
        """
        for go_on_s in GO_ON_HOST_S:
            async with self.clock.standing(reason) as was_held:
                silent = await self.updates.reach(guests, ANSWER_HOST_S) if self.clock.is_event else []
                if not silent:
                    yield
                    return
            if was_held:
                break
            await asyncio.sleep(go_on_s)
        raise ControlError(
            f"guest {', '.join(silent)} does not listen where virtual time stands: a program there polls, or is at "
            "work; let virtual time go on, or hold it at another instant"
        )
