"""Reservations: places that are kept for the runs of a folder, as those of a class, from one instant until another."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from dilaton.server.access.secrets import identity
from dilaton.server.api.endpoints import FOLDER, PREFIX, Endpoints, Server, Who, needs
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note, now_ms
from dilaton.server.database.tables import ReservationRow
from dilaton.server.problems import Problem, missing

ENDPOINTS = Endpoints()

RESERVATIONS = f"{PREFIX}/reservations"
RESERVES = needs(("Request.Approve", "server"))

DAY_MS = 86_400_000
LONGEST_MS, FARTHEST_MS = 7 * DAY_MS, 366 * DAY_MS

Instant = Annotated[int, Field(ge=0, le=1 << 53)]


class NewReservation(Asked):
    """Places that are to be kept."""

    folder: Annotated[str, Field(pattern=f"^{FOLDER.pattern}$", max_length=200)]
    """Whose runs, and those of folders below it, they are for."""
    from_ms: Instant
    """Milliseconds since 1970, UTC."""
    until_ms: Instant
    """A week later at most."""
    places: Annotated[int, Field(ge=1, le=10_000)]
    """How many runs may go on in them at once."""


class Reservation(NewReservation):
    """Places that are kept."""

    reservation: str
    """Its identity."""
    person: str
    """Who has reserved them."""

    @classmethod
    def of(cls, row: ReservationRow) -> Reservation:
        """As the database has it."""
        fields = {name: getattr(row, name) for name in cls.model_fields if name != "reservation"}
        return cls(reservation=row.identity, **fields)


@ENDPOINTS.add("GET", RESERVATIONS, needs(("Run.Launch", "each")))
def list_reservations(who: Who, server: Server) -> list[Reservation]:
    """The reservations that are not over, of folders in which one may launch runs, the next first."""
    with server.store.reading() as session:
        rows = _lasting(session)
    return [Reservation.of(row) for row in rows if who.access.may("Run.Launch", row.folder)]


@ENDPOINTS.add("POST", RESERVATIONS, RESERVES, status_code=201)
def reserve(asked: NewReservation, who: Who, server: Server) -> Reservation:
    """Keeps places for the runs of a folder. What goes on then is not ended for it."""
    now = now_ms()
    if not max(now, asked.from_ms) < asked.until_ms <= asked.from_ms + LONGEST_MS:
        raise Problem(422, "argument", "until_ms: after from_ms and now, a week later at most", field="until_ms")
    if asked.from_ms > now + FARTHEST_MS:
        raise Problem(422, "argument", "from_ms: a year from now at most", field="from_ms")
    at_once = server.settings.at_once
    with server.store.writing() as session:
        beside = [row for row in _lasting(session) if row.from_ms < asked.until_ms and asked.from_ms < row.until_ms]
        if (all_of := asked.places + sum(row.places for row in beside)) > at_once:
            said = f"places: {all_of} with those that are kept then, and {at_once} runs go on at once"
            raise Problem(409, "limit", said, field="places")
        row = ReservationRow(identity=identity(), person=who.name, created_ms=now, **asked.model_dump())
        session.add(row)
        note(session, who.name, "reservation.make", asked.folder, **asked.model_dump(exclude={"folder"}))
    return Reservation.of(row)


@ENDPOINTS.add("DELETE", f"{RESERVATIONS}/{{reservation}}", RESERVES, status_code=204)
def give_up(reservation: str, who: Who, server: Server) -> None:
    """Keeps places no longer."""
    with server.store.writing() as session:
        row = session.get(ReservationRow, reservation)
        if row is None:
            raise missing("reservation", reservation)
        session.execute(delete(ReservationRow).where(ReservationRow.identity == reservation))
        note(session, who.name, "reservation.end", row.folder, reservation=reservation)


def _lasting(session: Session) -> list[ReservationRow]:
    wanted = select(ReservationRow).where(ReservationRow.until_ms > now_ms()).order_by(ReservationRow.from_ms)
    return list(session.scalars(wanted))
