"""The server's machine: what it has, how much is in use, what runs on it; and hosts that runs may be spread over."""

from __future__ import annotations

import asyncio
import os
import shutil

from pydantic import BaseModel
from sqlalchemy import select

from dilaton.host.errors import GuestError
from dilaton.run import here, machines
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, Who, needs
from dilaton.server.database.tables import RunRow
from dilaton.server.runs.life import GOING
from dilaton.server.runs.queue import Needs

ENDPOINTS = Endpoints()


class OnMachine(BaseModel):
    """A run that goes on."""

    run: str | None
    """Null: one that who asks may not see."""
    name: str
    """Of its lab; empty where it may not be seen, as is `person`."""
    person: str
    state: str
    needs: Needs
    started_ms: int | None


class Machine(BaseModel):
    """What a machine has, and how much of that is in use."""

    name: str
    cpu: str
    """The model."""
    cores: int
    """Those that the server may use; each guest takes one."""
    core_ghz: float | None
    """How fast one is, in GHz-equivalents; null: `dilaton doctor --calibrate` has not measured it."""
    load: tuple[float, float, float]
    """How many programs want a core, over 1, 5 and 15 minutes."""
    memory_bytes: int
    available_bytes: int
    """What of it programs can still get."""
    disk_bytes: int
    """Where runs leave their files."""
    disk_free_bytes: int
    places: int
    """How many runs go on at once."""
    runs: list[OnMachine]
    """Those that do, the oldest first."""


@ENDPOINTS.add("GET", f"{PREFIX}/machine", needs(("Server.Read", "server")))
def show_machine(who: Who, server: Server) -> Machine:
    """The machine that the server and its runs are on, as it is now."""
    with server.store.reading() as session:
        rows = list(session.scalars(select(RunRow).where(RunRow.state.in_(GOING)).order_by(RunRow.number)))
    disk = shutil.disk_usage(server.settings.directory)
    return Machine(
        name=os.uname().nodename,
        cpu=here.cpu(),
        cores=len(os.sched_getaffinity(0)),
        core_ghz=here.core_ghz(),
        load=os.getloadavg(),
        memory_bytes=here.memory_bytes(),
        available_bytes=here.memory_available_bytes(),
        disk_bytes=disk.total,
        disk_free_bytes=disk.free,
        places=server.settings.at_once,
        runs=[_on_machine(row, is_seen=who.access.may("Run.Read", row.path)) for row in rows],
    )


class OtherMachine(BaseModel):
    """A host that runs may be spread over."""

    name: str
    why: list[str]
    """Why it cannot have a part in a run, or cannot be asked; none: it can."""
    cores: int | None = None
    """Null, as all that follows: it cannot be asked."""
    free_cores: int | None = None
    """Those that no guest holds."""
    core_ghz: float | None = None
    memory_bytes: int | None = None
    runs: int | None = None
    """In how many runs it has a part by now, of the server's account."""


@ENDPOINTS.add("GET", f"{PREFIX}/machines", needs(("Server.Read", "server")))
async def list_machines(server: Server) -> list[OtherMachine]:
    """The hosts that runs may be spread over, each asked for what it has, which takes as long as ssh does."""
    names = server.settings.machines
    if not names:
        return []
    answers = []
    for name, (has, why) in zip(names, await asyncio.to_thread(machines.look, names), strict=True):
        answer = OtherMachine(name=name, why=why)
        if not isinstance(has, GuestError):
            answer.cores, answer.free_cores, answer.runs = has.cores, has.free_cores, has.runs
            answer.core_ghz = None if has.ghz is None else has.ghz / 1000
            answer.memory_bytes = has.memory_bytes
        answers.append(answer)
    return answers


def _on_machine(row: RunRow, *, is_seen: bool) -> OnMachine:
    """A run, of which who may not see it learns what it takes alone."""
    return OnMachine(
        run=row.identity if is_seen else None,
        name=row.name if is_seen else "",
        person=row.person if is_seen else "",
        state=row.state,
        needs=Needs(**row.needs),
        started_ms=row.started_ms,
    )
