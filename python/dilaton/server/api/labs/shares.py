"""Sharing a lab: grants on it and on its runs, given by whose lab it is.

A share is a role on two paths, that of the lab and that of its runs in its folder. Nobody gives more than they have:
who may not change a lab shares it for no change.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from fastapi import Path
from pydantic import BaseModel
from sqlalchemy import ColumnElement, delete, select

from dilaton.server.access.rules import NAME, PERMISSIONS, ROLES, matches
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheLab, Who, needs
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note, tell
from dilaton.server.database.tables import GrantRow, LabRow, Person
from dilaton.server.problems import Problem, missing

ENDPOINTS = Endpoints()

SHARES = f"{PREFIX}/labs/{{lab}}/shares"
SHARE = needs(("Lab.Share", "lab"))

Role = Literal["reader", "operator", "editor"]
ROLES_OF_SHARES: tuple[str, ...] = get_args(Role)

PersonName = Annotated[str, Path(pattern=f"^{NAME}$")]


class Share(BaseModel):
    """Somebody who may use a lab of another's."""

    person: str
    role: str


class NewShare(Asked):
    """What somebody may do with a lab and its runs."""

    role: Role
    """To read; also to steer its runs and have terminals in them; also to change it."""


@ENDPOINTS.add("GET", SHARES, SHARE)
def list_shares(lab: TheLab, server: Server) -> list[Share]:
    """With whom a lab is shared."""
    with server.store.reading() as session:
        wanted = select(GrantRow.person, GrantRow.role).where(*_shares(lab)).order_by(GrantRow.person)
        return [Share(person=person, role=role) for person, role in session.execute(wanted)]


@ENDPOINTS.add("PUT", f"{SHARES}/{{person}}", SHARE)
def share_lab(asked: NewShare, person: PersonName, lab: TheLab, who: Who, server: Server) -> Share:
    """Shares a lab with somebody, in place of what they had of it by another share."""
    paths = {"Lab": lab.path, "Run": lab.runs_path}
    for one in PERMISSIONS:
        path = paths.get(one.partition(".")[0])
        if path and matches(one, ROLES[asked.role]) and not who.access.may(one, path):
            raise Problem(403, "permission", f"you do not have {one} yourself here", permission=one)
    with server.store.writing() as session:
        if session.get(Person, person) is None:
            raise missing("person", person)
        denied = select(GrantRow.number).where(*_of(lab, person), GrantRow.denies)
        if session.scalar(denied) is not None:
            raise Problem(409, "state", f"{person}: is denied this lab by who looks after people")
        session.execute(delete(GrantRow).where(*_of(lab, person)))
        for path in (lab.path, lab.runs_path):
            session.add(GrantRow(person=person, path=path, role=asked.role, denies=False, propagates=True))
        note(session, who.name, "lab.share", lab.path, shared_with=person, role=asked.role)
        session.flush()
        tell(session, "Lab.Read", lab.path, "lab", lab=lab.identity, version=lab.head)
    return Share(person=person, role=asked.role)


@ENDPOINTS.add("DELETE", f"{SHARES}/{{person}}", SHARE, status_code=204)
def end_share(person: PersonName, lab: TheLab, who: Who, server: Server) -> None:
    """Ends what somebody had of a lab by a share, at once."""
    with server.store.writing() as session:
        ended = select(GrantRow.number).where(*_of(lab, person), ~GrantRow.denies)
        if session.scalar(ended) is None:
            raise Problem(404, "missing", f"{person}: the lab is not shared with them")
        session.execute(delete(GrantRow).where(*_of(lab, person), ~GrantRow.denies))
        note(session, who.name, "lab.unshare", lab.path, shared_with=person)


def _shares(lab: LabRow) -> tuple[ColumnElement[bool], ...]:
    """The grants of whom a lab is shared with."""
    return GrantRow.path == lab.path, GrantRow.role.in_(ROLES_OF_SHARES), ~GrantRow.denies


def _of(lab: LabRow, person: str) -> tuple[ColumnElement[bool], ...]:
    """The grants of a person that a share of a lab would be."""
    return (
        GrantRow.person == person,
        GrantRow.path.in_((lab.path, lab.runs_path)),
        GrantRow.role.in_(ROLES_OF_SHARES),
    )
