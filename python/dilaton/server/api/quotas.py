"""What people may use without being asked, for those who look after others: quotas of everyone, groups and people.

A quota that is set here counts before what the file of roles says of the same name, until it is removed.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from dilaton.server.access.policy import EVERYONE, QuotaSaid, Where
from dilaton.server.access.rules import home
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, Who, needs
from dilaton.server.database.actions import note, now_ms
from dilaton.server.database.tables import Person, QuotaRow
from dilaton.server.problems import missing
from dilaton.server.runs.queue import Quota
from dilaton.server.state import State

ENDPOINTS = Endpoints()

QUOTAS = f"{PREFIX}/quotas"
READ = needs(("Person.Read", "server"))
WRITE = needs(("Person.Write", "server"))


class QuotaShown(BaseModel):
    """What somebody may use."""

    name: str
    kind: Literal["everyone", "group", "person"]
    quota: Quota
    """What counts."""
    whose: str
    """By which name it is said: their own, that of a group of theirs, or `everyone`; empty: nothing is said."""
    where: Where | None
    """Where it is said by their own name; null: it is not."""


@ENDPOINTS.add("GET", QUOTAS, READ)
def list_quotas(server: Server) -> list[QuotaShown]:
    """What everyone, each group and each person may use."""
    with server.store.reading() as session:
        people = list(session.scalars(select(Person.name).order_by(Person.name)))
    of_groups = [_shown(server, name, "group") for name in server.policy.all_groups()]
    return [_shown(server, EVERYONE, "everyone"), *of_groups, *(_shown(server, name, "person") for name in people)]


@ENDPOINTS.add("PUT", f"{QUOTAS}/{{holder}}", WRITE)
def set_quota(holder: str, asked: QuotaSaid, who: Who, server: Server) -> QuotaShown:
    """Says what a person, a group or `everyone` may use, in the words of the file of roles; what is left out has no
    bound. It holds for all that begins from now on."""
    quota = asked.quota()
    with server.store.writing() as session:
        kind = _kind(server, session, holder)
        session.merge(QuotaRow(name=holder, quota=asdict(quota), person=who.name, changed_ms=now_ms()))
        note(session, who.name, "quota.set", _path(holder, kind), name=holder, quota=asdict(quota))
    _keep(server, holder, quota)
    return _shown(server, holder, kind)


@ENDPOINTS.add("DELETE", f"{QUOTAS}/{{holder}}", WRITE)
def remove_quota(holder: str, who: Who, server: Server) -> QuotaShown:
    """Has what the file of roles says count again, or what a group or everyone has."""
    with server.store.writing() as session:
        kind = _kind(server, session, holder)
        session.execute(delete(QuotaRow).where(QuotaRow.name == holder))
        note(session, who.name, "quota.remove", _path(holder, kind), name=holder)
    _keep(server, holder, None)
    return _shown(server, holder, kind)


def _keep(server: State, holder: str, quota: Quota | None) -> None:
    """Has a quota count, also for what waits."""
    server.policy.keep_quota(holder, quota)
    server.bell.ring()


def _kind(server: State, session: Session, holder: str) -> Literal["everyone", "group", "person"]:
    """What a name names; a person before a group, as where quotas are looked for."""
    if holder == EVERYONE:
        return "everyone"
    if session.get(Person, holder) is not None:
        return "person"
    if holder in server.policy.all_groups():
        return "group"
    raise missing("person or group", holder)


def _path(holder: str, kind: str) -> str:
    return home(holder) if kind == "person" else "/"


def _shown(server: State, name: str, kind: Literal["everyone", "group", "person"]) -> QuotaShown:
    own = server.policy.own_quota(name)
    quota, whose = server.policy.quota_and_whose(name) if kind == "person" else (own[0] if own else Quota(), "")
    return QuotaShown(name=name, kind=kind, quota=quota, whose=name if own else whose, where=own and own[1])
