"""Several machines, as runs see them: one."""

from __future__ import annotations

import base64
import contextlib
import secrets
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.cluster.carrying import carry, carry_kernel
from dilaton.cluster.division.placement import place
from dilaton.cluster.engines.engine import Engine, Order
from dilaton.cluster.guests import Guests
from dilaton.cluster.lines import Lines
from dilaton.cluster.relay import KEY_BYTES, NOBODY, Relay, What
from dilaton.cluster.values import from_json
from dilaton.host.errors import GuestError
from dilaton.host.here.jail import jail
from dilaton.host.port import Progress
from dilaton.host.tasks import all_of

if TYPE_CHECKING:
    from dilaton.host.port import Guest
    from dilaton.host.sessions.frames import Request
    from dilaton.host.sessions.session import Session
    from dilaton.plan.alone import Alone
    from dilaton.plan.model import Plan

JOIN_HOST_S_MAX = 60.0
"""In which machines have to join, which takes a second or two."""


class Cluster:
    """Machines that an engine finds."""

    own_places = jail.OWN_PLACES
    parts_place = jail.MOUNT

    def __init__(self, engine: Callable[[], Engine], hidden: tuple[Path, ...] = (), behind: int = 0) -> None:
        """`engine` makes one for each run; guests in jails do not see what is in `hidden`; `behind` is as of `Here`."""
        self._engine = engine
        self._hidden, self._behind = hidden, behind

    async def boot(
        self, planned: Plan, run_dir: Path, *, jailed: bool, disk_bytes: int, progress: Callable[[Progress], None]
    ) -> Guests:
        """Boots the guests of a plan, each on its machine; see `port.Machine`."""
        engine = self._engine()
        key = secrets.token_bytes(KEY_BYTES)
        try:
            hosts = await engine.hosts(planned, jailed=jailed)
            homes = place(planned, hosts)
            hub, address = await listening(key, engine.address())
            await hub.send(NOBODY, What.LAYOUT, layout(planned, homes))
        except BaseException:
            await engine.stop()
            raise
        lines = Lines(hub, engine, hosts)
        guests = Guests(planned, homes, lines, run_dir)
        lines.progressed = lambda made: progress(from_json(Progress, made))
        try:
            orders = [
                Order(key.hex(), address, number, str(engine.directory(number, run_dir) or ""))
                for number in lines.machines
            ]
            await all_of(engine.start(host, order) for host, order in zip(hosts, orders, strict=True))
            await lines.all_there(JOIN_HOST_S_MAX)
            await carry_kernel(lines)
            await carry(planned, homes, lines)
            files = {
                str(path.relative_to(run_dir)): base64.b64encode(path.read_bytes()).decode() for path in given(run_dir)
            }
            await guests.boot(
                plan=planned.model_dump(mode="json"),
                files=files,
                hidden=[str(path) for path in self._hidden],
                behind=self._behind,
                jailed=jailed,
                disk_bytes=disk_bytes // len(hosts),
            )
        except BaseException:
            await guests.close()
            raise
        return guests

    @contextlib.asynccontextmanager
    async def alone(self, alone: Alone, request: Request) -> AsyncIterator[tuple[Guest, Session]]:
        """A program on its own runs on this machine; see `port.Machine`."""
        raise GuestError("a program on its own needs no second machine: run it without --machines")
        yield


async def listening(key: bytes, address: str) -> tuple[Relay, str]:
    """A hub, and where it listens.

    Raises:
        GuestError: It cannot.
    """
    hub = await Relay.start(key, "hub", address)
    try:
        _, what, said = await hub.hear()
        if what is not What.LISTENS:
            raise GuestError(f"the hub of the run cannot listen at {address}: {said.decode(errors='replace')}")
        return hub, said.decode()
    except BaseException:
        await hub.close()
        raise


def given(run_dir: Path) -> list[Path]:
    """What guests are given of a run directory: the plan and the lab."""
    return [path for path in (run_dir / "plan.json", run_dir / "lab.yaml") if path.is_file()]


def layout(planned: Plan, homes: list[int]) -> bytes:
    """What the hub has to know of a plan: the machine of each guest, sender and receiver of each way."""
    numbers = {guest.name: number for number, guest in enumerate(planned.guests)}
    words = [len(homes), *homes]
    for wire in planned.wires:
        a, b = (numbers[end.guest] for end in wire.ends)
        words += [a, b, b, a]
    return struct.pack(f"<{len(words)}Q", *words)
