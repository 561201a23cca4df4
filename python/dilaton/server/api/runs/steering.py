"""Runs that go on, steered: what the verbs of the control socket do (docs/control-protocol.md), for who may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import BaseModel, Field

from dilaton.run.control.answers import (
    FAULT_BEGIN,
    FAULT_LIST,
    FAULT_UNDO,
    LINK_CHANGE,
    LINK_SHOW,
    RESUME,
    STATUS,
    SUSPEND,
    Answer,
    ChangeTaken,
    Clock,
    FaultsShown,
    FaultsTaken,
    GuestShown,
    LinksShown,
    Name,
    ProcessShown,
    PutAway,
    Standing,
    Timeliness,
)
from dilaton.server.access.callers import Caller
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheRun, Who, needs
from dilaton.server.api.labs.labs import sees_host
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note
from dilaton.server.database.tables import RunRow
from dilaton.server.problems import Problem
from dilaton.server.state import State
from dilaton.service.client import connected

ENDPOINTS = Endpoints()

RUN = f"{PREFIX}/runs/{{run}}"
STEER = needs(("Run.Steer", "run"))

SUBJECTS = ("pause", "kill")
"""Words of faults that are about a node or one of its processes, and never about a file."""


class RunStatus(BaseModel):
    """How far a run has come, and how well."""

    suspended: bool
    """Whether it is put away, until it is resumed."""
    notice: str | None
    """What keeps it from getting on, said of virtual time; null: nothing that is known."""
    clock: Clock | None
    """Null as long as it has not been released."""
    fidelity: Timeliness
    verdict: Standing | None
    """As it stands now; null in the first virtual second."""
    processes: list[ProcessShown]
    guests: list[GuestShown]
    """In the order of the plan."""


class ToInstant(Asked):
    """Where the clock is to be held."""

    at: str = Field(max_length=40)
    """A virtual instant as in a lab: 5s."""


class ToTdf(Asked):
    """The TDF from now on."""

    tdf: str = Field(max_length=40)
    """As in a lab: 10, or 1/2."""


class ToSpeed(Asked):
    """How fast virtual time may run from now on."""

    max_speed: str | None = Field(max_length=40)
    """Virtual seconds per host second at most, as in a lab; null: no bound."""


class NewLink(Asked):
    """A change of a link."""

    link: str = Field(max_length=4096)
    """The link, named by its ends, as a--b."""
    settings: list[tuple[str, str]]
    """Each a path within the link, as `delay.jitter`, and its value, as in the lab."""
    at: str | None = Field(default=None, max_length=40)
    """When; null: now."""


class NewFault(Asked):
    """A fault that begins now."""

    fault: dict[str, Any]
    """Its fields, as of an item of a lab's `faults:`, but for when it begins."""


class EndedFaults(Asked):
    """Faults that end now."""

    names: list[Annotated[str, Field(max_length=200)]] = Field(default_factory=list, max_length=1000)
    """None: all that were begun by hand and last."""


@ENDPOINTS.add("GET", f"{RUN}/status", needs(("Run.Read", "run")))
async def show_status(run: TheRun, server: Server) -> RunStatus:
    """The clock of a run, how well time is kept, and what has become of each process so far."""
    status = await _ask(server, run, STATUS)
    run_state = status["run"]
    return RunStatus(
        suspended=run_state["suspended"],
        notice=run_state["notice"],
        clock=run_state["clock"],
        fidelity=status["fidelity"],
        verdict=status["verdict"],
        processes=status["processes"],
        guests=status["guests"],
    )


@ENDPOINTS.add("GET", f"{RUN}/links", needs(("Run.Read", "run")))
async def show_links(run: TheRun, server: Server, link: str | None = None) -> LinksShown:
    """The links of a run as they are now."""
    return await _ask(server, run, LINK_SHOW, link=link)


@ENDPOINTS.add("POST", f"{RUN}/links", STEER)
async def change_link(asked: NewLink, run: TheRun, who: Who, server: Server) -> ChangeTaken:
    """Changes a link, now or at a later instant."""
    _check_paths(who, "settings", (value for _, value in asked.settings))
    await _noted(server, who, run, "run.link", link=asked.link, settings=asked.settings, at=asked.at)
    when = {} if asked.at is None else {"at": asked.at}
    files = _files(server, run)
    return await _ask(server, run, LINK_CHANGE, link=asked.link, settings=asked.settings, directory=files, **when)


@ENDPOINTS.add("GET", f"{RUN}/faults", needs(("Run.Read", "run")))
async def show_faults(run: TheRun, server: Server) -> FaultsShown:
    """The faults of a run, those of its lab and those that were begun by hand."""
    return await _ask(server, run, FAULT_LIST)


@ENDPOINTS.add("POST", f"{RUN}/faults", STEER)
async def begin_fault(asked: NewFault, run: TheRun, who: Who, server: Server) -> FaultsTaken:
    """Begins a fault, now."""
    # Whom it is about has a slash where it is a process, as db1/server.
    _check_paths(who, "fault", _texts({key: of for key, of in asked.fault.items() if key not in SUBJECTS}))
    await _noted(server, who, run, "run.fault", fault=asked.fault)
    return await _ask(server, run, FAULT_BEGIN, fault=asked.fault, directory=_files(server, run))


@ENDPOINTS.add("POST", f"{RUN}/faults/undo", STEER)
async def undo_faults(asked: EndedFaults, run: TheRun, who: Who, server: Server) -> FaultsTaken:
    """Undoes faults that last, now."""
    await _noted(server, who, run, "run.fault-undo", names=asked.names)
    return await _ask(server, run, FAULT_UNDO, names=asked.names)


@ENDPOINTS.add("POST", f"{RUN}/hold", STEER)
async def hold(run: TheRun, who: Who, server: Server) -> Clock:
    """Stops virtual time."""
    return await _steer(server, who, run, "hold")


@ENDPOINTS.add("POST", f"{RUN}/release", STEER)
async def release(run: TheRun, who: Who, server: Server) -> Clock:
    """Lets virtual time go on."""
    return await _steer(server, who, run, "release")


@ENDPOINTS.add("POST", f"{RUN}/step", STEER)
async def step(run: TheRun, who: Who, server: Server) -> Clock:
    """Lets virtual time go on to the guests' next timer, and holds it there."""
    return await _steer(server, who, run, "step")


@ENDPOINTS.add("POST", f"{RUN}/until", STEER)
async def until(asked: ToInstant, run: TheRun, who: Who, server: Server) -> Clock:
    """Lets virtual time go on to an instant, and holds it there; answers then."""
    return await _steer(server, who, run, "until", at=asked.at)


@ENDPOINTS.add("POST", f"{RUN}/tdf", STEER)
async def change_tdf(asked: ToTdf, run: TheRun, who: Who, server: Server) -> Clock:
    """Changes the TDF."""
    return await _steer(server, who, run, "tdf", tdf=asked.tdf)


@ENDPOINTS.add("POST", f"{RUN}/speed", STEER)
async def change_speed(asked: ToSpeed, run: TheRun, who: Who, server: Server) -> Clock:
    """Changes how fast virtual time may run at most, by the host's clock."""
    return await _steer(server, who, run, "speed", max_speed=asked.max_speed)


@ENDPOINTS.add("POST", f"{RUN}/suspend", STEER)
async def suspend(run: TheRun, who: Who, server: Server) -> PutAway:
    """Puts a run away: its memory goes to disk, and its cores are free. It is `held`, and keeps its place."""
    await _noted(server, who, run, "run.suspend")
    return await _ask(server, run, SUSPEND)


@ENDPOINTS.add("POST", f"{RUN}/resume", STEER)
async def resume(run: TheRun, who: Who, server: Server) -> Clock:
    """Lets a run go on that was put away."""
    await _noted(server, who, run, "run.resume")
    return await _ask(server, run, RESUME)


@ENDPOINTS.add("POST", f"{RUN}/stop", STEER, status_code=202)
async def stop(run: TheRun, who: Who, server: Server) -> None:
    """Ends a run in good order; one that still waits is cancelled."""
    await _noted(server, who, run, "run.stop")
    await server.keeper.stop(run)


async def _steer(server: State, who: Caller, run: RunRow, what: str, **arguments: Any) -> Clock:
    await _noted(server, who, run, f"run.{what}", **arguments)
    return await _ask(server, run, Name(f"clock.{what}", Clock), **arguments)


async def _ask(server: State, run: RunRow, verb: Name[Answer], **arguments: Any) -> Answer:
    """What a run answers, whose control socket only goes on as long as it does."""
    async with connected(server.keeper.run_dir(run.identity)) as connection:
        return await connection.request(verb, **arguments)


def _files(server: State, run: RunRow) -> str:
    """Where paths of files start that are named to a run."""
    return str(server.keeper.directory(run.identity) / "files")


def _check_paths(who: Caller, field: str, texts: Iterable[str]) -> None:
    """Refuses paths of the server's machine to who may not name its files."""
    if not sees_host(who) and any("/" in text for text in texts):
        raise Problem(403, "permission", f"{field}: a path of a file takes Host.Files", permission="Host.Files")


def _texts(value: object) -> Iterator[str]:
    """All texts in something that was written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


async def _noted(server: State, who: Caller, run: RunRow, action: str, **data: Any) -> None:
    """Writes down what was asked, before it is done: a run may end by it."""

    def write() -> None:
        with server.store.writing() as session:
            note(session, who.name, action, run.path, **data)

    await asyncio.to_thread(write)
