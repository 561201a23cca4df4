"""Which doors there are, and who may pass; see the package."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

from dilaton.server.access.callers import Caller
from dilaton.server.access.secrets import digest, secret
from dilaton.server.problems import Problem

TICKET_HOST_S = 60.0
LASTS_HOST_S = 43_200.0
"""How long a ticket is good, and how long a door stays open."""

OF_PERSON_MAX = 20

CONNECTIONS_MAX = 8
"""Through one door at once; more wait. Browsers make six to a host."""


@dataclass
class Door:
    """A host of its own, by which a person reaches a port of a node.

    Attributes:
        label: The first part of its name.
        who: The person, as they were when it was made.
        run, path: The run, and by which path grants name it.
        node, port: What is behind it.
        until_host_s: When it closes.
        ticket: The digest of the ticket, until it is used.
        ticket_until_host_s: When that is good no more.
        cookie: The digest of the cookie that lets in; empty: nobody has come yet.
        free: Connections that may still be made.
    """

    label: str
    who: Caller
    run: str
    path: str
    node: str
    port: int
    until_host_s: float
    ticket: str
    ticket_until_host_s: float
    cookie: str = ""
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONNECTIONS_MAX), repr=False)

    def enter(self, ticket: str, now_host_s: float) -> str | None:
        """The cookie for whom a ticket lets in, now and never again; None: it lets nobody in."""
        if not self.ticket or now_host_s > self.ticket_until_host_s or digest(ticket) != self.ticket:
            return None
        said = secret()
        self.ticket, self.cookie = "", digest(said)
        return said

    def knows(self, cookie: str) -> bool:
        """Whether this is the cookie that it has given."""
        return bool(self.cookie) and digest(cookie) == self.cookie


class Doors:
    """All doors of a server."""

    def __init__(self) -> None:
        self._doors: dict[str, Door] = {}

    def make(self, who: Caller, run: str, path: str, node: str, port: int, now_host_s: float) -> tuple[Door, str]:
        """A new door, and the ticket for it.

        Raises:
            Problem: the person has too many.
        """
        self._doors = {label: door for label, door in self._doors.items() if door.until_host_s > now_host_s}
        if sum(door.who.name == who.name for door in self._doors.values()) >= OF_PERSON_MAX:
            raise Problem(409, "limit", f"{OF_PERSON_MAX} doors of yours are open; close one")
        ticket = secret()
        door = Door(
            # Lower case, as browsers write the names of hosts.
            label=secrets.token_hex(16),
            who=who,
            run=run,
            path=path,
            node=node,
            port=port,
            until_host_s=now_host_s + LASTS_HOST_S,
            ticket=digest(ticket),
            ticket_until_host_s=now_host_s + TICKET_HOST_S,
        )
        self._doors[door.label] = door
        return door, ticket

    def find(self, label: str, now_host_s: float) -> Door | None:
        """The door of a label, if it is open."""
        door = self._doors.get(label)
        return door if door is not None and door.until_host_s > now_host_s else None

    def of(self, run: str, person: str, now_host_s: float) -> list[Door]:
        """A person's own to a run, that are open."""
        mine = [door for door in self._doors.values() if (door.run, door.who.name) == (run, person)]
        return [door for door in mine if door.until_host_s > now_host_s]

    def close(self, label: str) -> None:
        """Closes a door."""
        self._doors.pop(label, None)
