"""Run one command in a guest of its own, and leave nothing: what `dilaton exec` does.

There is no run directory: the plan goes into the jail as a file in memory, the console into another. So there is
nothing to clean up, whatever is killed when.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from fractions import Fraction

from dilaton.host.guest import REPEATABLE_DATE_NS, Guest
from dilaton.host.kernel import Placement
from dilaton.plan.model import Plan


@contextlib.asynccontextmanager
async def guest_alone(plan: Plan) -> AsyncIterator[Guest]:
    """The guest of a plan that has one: built, its clock released; gone at the end of the context.

    Raises:
        HostLacksError: This machine lacks a part.
        GuestError: The guest does not come up.
    """
    planned = plan.guests[0]
    binds = [bind for node in plan.nodes for bind in node.binds]
    placement = Placement(None, jailed=True, binds=binds, files={"plan.json": plan.model_dump_json().encode()})
    repeatable = plan.time.drive == "event"
    guest = await Guest.start(planned.name, planned.memory_bytes, placement, plan.seed if repeatable else None)
    try:
        await guest.build(lambda *_: None)
        await guest.arm(REPEATABLE_DATE_NS if repeatable else time.time_ns())
        tdf, speed = plan.time.tdf, plan.time.max_speed
        await guest.release(
            Fraction(tdf.numerator, tdf.denominator),
            plan.time.drive,
            None if speed is None else Fraction(speed.numerator, speed.denominator),
        )
        yield guest
        # What was written to this machine's files is still on its way there.
        await guest.halt()
    finally:
        await guest.close()
