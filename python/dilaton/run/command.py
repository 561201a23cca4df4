"""Run one command in a guest of its own, and leave nothing: what `dilaton exec` does.

There is no run directory: the plan goes into the jail as a file in memory, the console into another. So there is
nothing to clean up, whatever is killed when.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator

from dilaton.host import open_files
from dilaton.host.guest import REPEATABLE_DATE_NS, Guest
from dilaton.host.kernel import Placement
from dilaton.plan.alone import GUEST, Alone


@contextlib.asynccontextmanager
async def guest_alone(alone: Alone) -> AsyncIterator[Guest]:
    """The guest of a node alone: built, its clock released; gone at the end of the context.

    Raises:
        HostLacksError: This machine lacks a part.
        GuestError: The guest does not come up.
    """
    plan = json.dumps(alone.plan()).encode()
    placement = Placement(None, jailed=True, binds=alone.binds, files={"plan.json": plan})
    repeatable = alone.drive == "event"
    open_files.allow()
    guest = await Guest.start(GUEST, alone.memory_bytes, placement, alone.seed if repeatable else None)
    try:
        await guest.build(lambda *_: None)
        await guest.arm(REPEATABLE_DATE_NS if repeatable else time.time_ns())
        await guest.release(alone.tdf, alone.drive, alone.max_speed)
        yield guest
        # What was written to this machine's files is still on its way there.
        await guest.halt()
    finally:
        await guest.close()
