"""People: who they are, what they may do, letting them in; and who did what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from dilaton.server.access.callers import make_person
from dilaton.server.access.rules import NAME, PATH, home
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, Who, needs
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note
from dilaton.server.database.listing import PAGE_MAX
from dilaton.server.database.tables import AuditRow, GrantRow, PasswordRow, Person, SessionRow, TokenRow
from dilaton.server.problems import Problem, missing

ENDPOINTS = Endpoints()

READ = needs(("Person.Read", "server"))
WRITE = needs(("Person.Write", "server"))


class Granted(Asked):
    """A role on a path, or its denial."""

    path: Annotated[str, Field(pattern=PATH, max_length=255)]
    """The path of a folder, or of a lab or run in one: /home/ann/labs/IDENTITY; / is everything."""
    role: str
    denies: bool = False
    propagates: bool = True
    """Whether it holds for all below the path."""


class Somebody(BaseModel):
    """A person."""

    name: str
    is_active: bool
    created_ms: int
    grants: list[Granted]


class NewPerson(Asked):
    """A person who may come in."""

    name: Annotated[str, Field(pattern=f"^{NAME}$")]


class ChangedPerson(Asked):
    """What becomes of a person."""

    is_active: bool
    """False: the account is closed, its sessions and tokens end, and all that it made stays."""
    grants: Annotated[list[Granted], Field(max_length=200)]
    """All that they have from now on."""


class LetIn(BaseModel):
    """How a person gets in, once."""

    url: str


class Entry(BaseModel):
    """Something that somebody did."""

    number: int
    at_ms: int
    person: str
    """Empty: the server itself."""
    action: str
    path: str
    data: dict[str, Any]


@ENDPOINTS.add("GET", f"{PREFIX}/people", READ)
def list_people(server: Server) -> list[Somebody]:
    """All people, and what they may do."""
    with server.store.reading() as session:
        return [_somebody(session, row) for row in session.scalars(select(Person).order_by(Person.name))]


@ENDPOINTS.add("POST", f"{PREFIX}/people", WRITE, status_code=201)
def add_person(asked: NewPerson, who: Who, server: Server) -> Somebody:
    """Makes a person, who is a user of their own folder."""
    with server.store.writing() as session:
        if session.get(Person, asked.name) is not None:
            raise Problem(409, "taken", f"{asked.name}: there is somebody of that name", field="name")
        make_person(session, asked.name, who.name)
        return _somebody(session, session.get_one(Person, asked.name))


@ENDPOINTS.add("PUT", f"{PREFIX}/people/{{person}}", WRITE)
def change_person(person: str, asked: ChangedPerson, who: Who, server: Server) -> Somebody:
    """Says what a person may do; it holds for their sessions and tokens at once."""
    roles = server.policy.roles()
    if unknown := [grant.role for grant in asked.grants if grant.role not in roles]:
        raise Problem(422, "argument", f"role: {unknown[0]}: not one of {', '.join(roles)}", field="grants")
    with server.store.writing() as session:
        row = _found(session, person)
        row.is_active = asked.is_active
        session.execute(delete(GrantRow).where(GrantRow.person == person))
        # Of two grants of one role on one path the last counts.
        for grant in {(grant.path, grant.role): grant for grant in asked.grants}.values():
            session.add(GrantRow(person=person, **grant.model_dump()))
        if not asked.is_active:
            session.execute(delete(SessionRow).where(SessionRow.person == person))
            session.execute(delete(TokenRow).where(TokenRow.person == person))
        note(session, who.name, "person.change", home(person), **asked.model_dump())
        session.flush()
        return _somebody(session, row)


@ENDPOINTS.add("POST", f"{PREFIX}/people/{{person}}/link", WRITE)
def let_person_in(person: str, who: Who, server: Server) -> LetIn:
    """A link by which a person can log in, once, until the server ends; to be given to them and nobody else."""
    with server.store.writing() as session:
        if not _found(session, person).is_active:
            raise Problem(409, "state", f"{person}: the account is closed")
        note(session, who.name, "person.link", home(person))
    return LetIn(url=f"{server.settings.origin}/login?once={server.one_time.make(person)}")


@ENDPOINTS.add("DELETE", f"{PREFIX}/people/{{person}}/password", WRITE, status_code=204)
def remove_password(person: str, who: Who, server: Server) -> None:
    """Takes a person's password away, as when it was forgotten; a link lets them in, and they set another."""
    with server.store.writing() as session:
        _found(session, person)
        session.execute(delete(PasswordRow).where(PasswordRow.person == person))
        note(session, who.name, "password.remove", home(person))


@ENDPOINTS.add("GET", f"{PREFIX}/audit", needs(("Audit.Read", "server")))
def list_audit(
    server: Server,
    person: str | None = None,
    action: str | None = None,
    before: int | None = None,
    count: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_MAX,
) -> list[Entry]:
    """Who did what, the newest first: of a person, of a kind, before the entry of a number."""
    wanted = select(AuditRow).order_by(AuditRow.number.desc()).limit(count)
    if person is not None:
        wanted = wanted.where(AuditRow.person == person)
    if action is not None:
        wanted = wanted.where(AuditRow.action == action)
    if before is not None:
        wanted = wanted.where(AuditRow.number < before)
    with server.store.reading() as session:
        return [
            Entry(
                number=row.number,
                at_ms=row.at_ms,
                person=row.person,
                action=row.action,
                path=row.path,
                data=row.data,
            )
            for row in session.scalars(wanted)
        ]


def _found(session: Session, name: str) -> Person:
    row = session.get(Person, name)
    if row is None:
        raise missing("person", name)
    return row


def _somebody(session: Session, row: Person) -> Somebody:
    grants = session.scalars(select(GrantRow).where(GrantRow.person == row.name).order_by(GrantRow.number))
    return Somebody(
        name=row.name,
        is_active=row.is_active,
        created_ms=row.created_ms,
        grants=[
            Granted(path=grant.path, role=grant.role, denies=grant.denies, propagates=grant.propagates)
            for grant in grants
        ],
    )
