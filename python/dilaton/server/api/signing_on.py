"""Logging in by a provider (OpenID Connect): the way there, and the way back."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from sqlalchemy.orm import Session

from dilaton.server.access.callers import make_person
from dilaton.server.access.rules import NAME
from dilaton.server.access.single_sign_on import LASTS_MS, SingleSignOn, Someone
from dilaton.server.api.endpoints import PREFIX, PUBLIC, Endpoints, Server
from dilaton.server.api.session import give_session
from dilaton.server.database.actions import now_ms
from dilaton.server.database.tables import IdentityRow, Person
from dilaton.server.problems import Problem
from dilaton.server.settings import BACK
from dilaton.server.state import State

ENDPOINTS = Endpoints()

Said = Annotated[str, Query(max_length=4096)]


def _cookie(server: State) -> str:
    """The name of the cookie with the state, which comes along when the provider sends a browser back."""
    return "__Host-dilaton-login" if server.settings.is_secure else "dilaton-login"


class Ways(BaseModel):
    """How somebody may log in, beside a name with a password and a link."""

    provider: str | None
    """Where people are known, as they read it; null: the server has no provider."""


@ENDPOINTS.add("GET", f"{PREFIX}/session/ways", PUBLIC)
def show_ways(server: Server) -> Ways:
    """What a page has to offer who is not logged in."""
    provider = server.settings.provider
    return Ways(provider=None if provider is None else urlsplit(provider.issuer).hostname)


@ENDPOINTS.add("GET", f"{PREFIX}/session/provider", PUBLIC, response_class=RedirectResponse, status_code=303)
def go_to_provider(server: Server) -> RedirectResponse:
    """Sends a browser to the provider that says who somebody is; it comes back logged in."""
    url, state = _sign_on(server).begin(now_ms())
    answer = RedirectResponse(url, 303)
    answer.set_cookie(
        _cookie(server),
        state,
        max_age=LASTS_MS // 1000,
        httponly=True,
        samesite="lax",
        secure=server.settings.is_secure,
    )
    return answer


@ENDPOINTS.add("GET", BACK, PUBLIC, response_class=RedirectResponse, status_code=303)
def come_back(
    server: Server, request: Request, state: Said = "", code: Said = "", error: Said = ""
) -> RedirectResponse:
    """Logs in whom the provider sends back, and shows the page. Who comes for the first time gets an account."""
    signing_on = _sign_on(server)
    if error or not code:
        raise Problem(401, "login", f"the provider lets nobody in: {error or 'it gave no code'}")
    someone = signing_on.finish(state, request.cookies.get(_cookie(server), ""), code, now_ms())
    with server.store.writing() as session:
        person = _person(session, server, someone)
    server.policy.claim(person, someone.groups)
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(_cookie(server), httponly=True, samesite="lax", secure=server.settings.is_secure)
    give_session(server, person, "provider", request.client.host if request.client else "", answer)
    return answer


def _sign_on(server: State) -> SingleSignOn:
    if server.single_sign_on is None:
        raise Problem(404, "missing", "this server has no provider by which to log in")
    return server.single_sign_on


def _person(session: Session, server: State, someone: Someone) -> str:
    """Whose account somebody has; a new one, where they have none.

    Raises:
        Problem: it is closed, or they cannot have one of their name.
    """
    assert server.settings.provider is not None, "who has come back was sent there"
    issuer = server.settings.provider.issuer
    known = session.get(IdentityRow, (issuer, someone.subject))
    if known is None:
        name = someone.name.lower()
        if not re.fullmatch(NAME, name):
            raise Problem(403, "login", f"{someone.name!r}: the provider's name for you is none for an account")
        if session.get(Person, name) is not None:
            # Whoever may choose their name at the provider must not get somebody else's account by it.
            raise Problem(403, "login", f"{name}: there is an account of this name that is not the provider's")
        make_person(session, name)
        known = IdentityRow(issuer=issuer, subject=someone.subject, person=name, groups=[])
        session.add(known)
    elif not session.get_one(Person, known.person).is_active:
        raise Problem(401, "login", "this account is closed")
    known.groups = list(someone.groups)
    return known.person
