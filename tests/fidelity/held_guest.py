"""A guest whose clock is held until a test says otherwise, and what its clock counts of a lab."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from dilaton.host.here.guests.guest import Guest
from dilaton.host.here.guests.kernel import Placement, Wanted
from dilaton.host.messages import Arm, Armed, Build, Ready
from dilaton.host.orders import Drive, Orders
from dilaton.lab.loader import loads
from dilaton.plan.compile import compile as compile_plan

SECOND_NS = 10**9


@asynccontextmanager
async def held_guest(lab: str, run_dir: Path) -> AsyncIterator[Guest]:
    """A guest whose schedule is armed, its clock held."""
    plan = compile_plan(loads(lab, "lab.yaml"))
    (run_dir / "plan.json").write_text(plan.model_dump_json())
    guest = await Guest.start(Wanted("guest0", plan.guests[0].memory_bytes), Placement(run_dir, jailed=True))
    try:
        await guest.channel.send(Build(run_dir=str(guest.run_dir_inside), guest=guest.name, goes_on=False))
        while not isinstance(await guest.receive(), Ready):
            pass
        await guest.hold()
        await guest.channel.send(Arm(lead_ns=1_000_000, date_ns=time.time_ns(), awaits_program=False))
        while not isinstance(await guest.receive(), Armed):
            pass
        yield guest
    finally:
        await guest.close()


def with_guest(lab: str, run_dir: Path, work: Callable[[Guest], Awaitable[None]]) -> None:
    """Does `work` with such a guest."""

    async def go() -> None:
        async with held_guest(lab, run_dir) as guest:
            await work(guest)

    asyncio.run(go())


def counted(lab: dict[str, Any], drive: Drive, run_dir: Path, counters: Sequence[str]) -> list[int]:
    """What a guest counts by these counters that runs this lab from its virtual 0 to its end."""

    async def go() -> list[int]:
        async with held_guest(json.dumps({"name": "costs", **lab}), run_dir) as guest:
            await guest.order(Orders(None, drive))
            before = [guest.page.read(name) for name in counters]
            await guest.run_until(guest.virtual_ns() + 30 * SECOND_NS, Fraction(1))
            return [guest.page.read(name) - then for name, then in zip(counters, before, strict=True)]

    run_dir.mkdir(parents=True)
    return asyncio.run(go())


def python(node: str, program: str) -> dict[str, Any]:
    """An entry of `run`: a program of Python's that imports nothing by itself."""
    return {"on": node, "name": node, "exec": ["python3", "-I", "-S", "-c", program]}
