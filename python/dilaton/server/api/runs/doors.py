"""Doors: hosts of their own by which a browser reaches HTTP ports of nodes; see `server.doors`."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from pydantic import BaseModel, Field

from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheRun, Who
from dilaton.server.api.runs.terminals import CONSOLE, noted
from dilaton.server.api.session import Asked
from dilaton.server.doors import doors
from dilaton.server.doors.doorway import ENTRANCE
from dilaton.server.problems import Problem, missing

ENDPOINTS = Endpoints()

DOORS = f"{PREFIX}/runs/{{run}}/doors"


class NewDoor(Asked):
    """A port of a node that a browser is to reach."""

    node: str = Field(min_length=1, max_length=255)
    port: Annotated[int, Field(ge=1, le=65_535)] = 80


class Door(BaseModel):
    """A host of its own by which one reaches a port of a node."""

    door: str
    """Its identity, the first part of the host's name."""
    node: str
    port: int
    url: str
    """Where it is, once one has come by the link."""
    closes_in_host_s: float

    @classmethod
    def of(cls, door: doors.Door, origin: str) -> Door:
        """As the server keeps it."""
        left = door.until_host_s - time.monotonic()
        return cls(door=door.label, node=door.node, port=door.port, url=f"{origin}/", closes_in_host_s=left)


class OpenedDoor(Door):
    """A door that was just made."""

    link: str
    """By which a browser comes in: good once, for a minute."""


@ENDPOINTS.add("POST", DOORS, CONSOLE, status_code=201)
async def open_door(asked: NewDoor, run: TheRun, who: Who, server: Server) -> OpenedDoor:
    """Makes a host of its own under which a port of a node is shown to one's browser, for half a day at most."""
    if not server.settings.domain:
        raise Problem(409, "domain", "the server's file names no proxy_domain, under which pages of nodes could be")
    if run.state not in ("running", "held"):
        raise Problem(409, "state", f"the run is {run.state}; its nodes cannot be reached", state=run.state)
    door, ticket = server.doors.make(who, run.identity, run.path, asked.node, asked.port, time.monotonic())
    await asyncio.to_thread(noted, server, who, run.path, asked.node, ["door", str(asked.port)])
    origin = server.settings.origin_of(door.label)
    return OpenedDoor(**Door.of(door, origin).model_dump(), link=f"{origin}{ENTRANCE}?ticket={ticket}")


@ENDPOINTS.add("GET", DOORS, CONSOLE)
def list_doors(run: TheRun, who: Who, server: Server) -> list[Door]:
    """One's own doors to a run."""
    mine = server.doors.of(run.identity, who.name, time.monotonic())
    return [Door.of(door, server.settings.origin_of(door.label)) for door in mine]


@ENDPOINTS.add("DELETE", f"{DOORS}/{{door}}", CONSOLE, status_code=204)
def close_door(door: str, run: TheRun, who: Who, server: Server) -> None:
    """Closes a door of one's own; what goes through it is ended within some seconds."""
    if door not in {mine.label for mine in server.doors.of(run.identity, who.name, time.monotonic())}:
        raise missing("door", door)
    server.doors.close(door)
