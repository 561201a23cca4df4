"""Logging in and out, and who one is."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import delete, select

from dilaton.server.access.callers import LIFE_MS, cookie, log_in, log_out
from dilaton.server.access.rules import unknown_patterns
from dilaton.server.access.secrets import TOKEN_PREFIX, digest, identity, secret
from dilaton.server.api.endpoints import LOGGED_IN, PREFIX, PUBLIC, Endpoints, Server, Who
from dilaton.server.database.actions import note, now_ms
from dilaton.server.database.tables import TokenRow
from dilaton.server.problems import Problem, missing
from dilaton.server.state import State

ENDPOINTS = Endpoints()


class Asked(BaseModel):
    """Base of what is asked: nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class LogIn(Asked):
    """What lets somebody in."""

    once: str = Field(max_length=200)
    """The secret of a one-time link."""


class Me(BaseModel):
    """Who is calling."""

    name: str
    home: str
    """The folder of their own labs and runs."""
    permissions: list[str]
    """What they may do there."""
    everywhere: list[str]
    """What they may do in all folders that no other grant is about."""


@ENDPOINTS.add("POST", f"{PREFIX}/session", PUBLIC, status_code=204)
def begin_session(asked: LogIn, server: Server, response: Response) -> None:
    """Logs in by a one-time secret. The cookie that comes back is for browsers; programs use tokens."""
    let_in(server, asked.once, response)


def let_in(server: State, said: str, response: Response) -> None:
    """Makes a session, and gives its cookie to `response`.

    Raises:
        Problem: the secret lets nobody in.
    """
    person = server.one_time.use(said)
    if person is None:
        raise Problem(401, "login", "this link has been used, or is of an earlier start; the server prints a new one")
    response.set_cookie(
        cookie(server.settings),
        log_in(server.store, person, "once"),
        max_age=LIFE_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=server.settings.is_secure,
    )


@ENDPOINTS.add("GET", f"{PREFIX}/session", LOGGED_IN)
def show_session(who: Who) -> Me:
    """Who is calling, and what they may do."""
    return Me(
        name=who.name,
        home=who.home,
        permissions=who.access.permissions(who.home),
        everywhere=who.access.permissions("/"),
    )


@ENDPOINTS.add("DELETE", f"{PREFIX}/session", LOGGED_IN, status_code=204)
def end_session(who: Who, server: Server, response: Response) -> None:
    """Logs out."""
    log_out(server.store, who)
    response.delete_cookie(cookie(server.settings), httponly=True, samesite="strict", secure=server.settings.is_secure)


class NewToken(Asked):
    """A token for a program."""

    label: str = Field(min_length=1, max_length=100)
    """The label by which its owner knows it."""
    scopes: list[Annotated[str, Field(max_length=40)]] = Field(min_length=1, max_length=20)
    """What it may do of what its owner may: patterns of permissions, as Run.* or *."""
    days: int = Field(ge=1, le=366)
    """After which it expires."""


class Token(BaseModel):
    """A token, without its secret."""

    token: str
    """Its identity."""
    label: str
    scopes: list[str]
    created_ms: int
    expires_ms: int

    @classmethod
    def of(cls, row: TokenRow) -> Token:
        """As the database has it."""
        return cls(
            token=row.identity,
            label=row.label,
            scopes=row.scopes,
            created_ms=row.created_ms,
            expires_ms=row.expires_ms,
        )


class TokenMade(Token):
    """A new token."""

    secret: str
    """What programs send as `Authorization: Bearer SECRET`; it is shown once."""


@ENDPOINTS.add("GET", f"{PREFIX}/tokens", LOGGED_IN)
def list_tokens(who: Who, server: Server) -> list[Token]:
    """One's own tokens."""
    with server.store.reading() as session:
        rows = session.scalars(select(TokenRow).where(TokenRow.person == who.name).order_by(TokenRow.created_ms))
        return [Token.of(row) for row in rows]


@ENDPOINTS.add("POST", f"{PREFIX}/tokens", LOGGED_IN, status_code=201)
def make_token(asked: NewToken, who: Who, server: Server) -> TokenMade:
    """Makes a token. Only who is logged in can: a token makes no others, which could do more or last longer."""
    if who.token:
        raise Problem(403, "permission", "a token makes no tokens; log in")
    if unknown := unknown_patterns(asked.scopes):
        raise Problem(422, "argument", f"scopes: {unknown[0]}: names no permission", field="scopes")
    said, now = TOKEN_PREFIX + secret(), now_ms()
    row = TokenRow(
        identity=identity(),
        digest=digest(said),
        person=who.name,
        label=asked.label,
        scopes=asked.scopes,
        created_ms=now,
        expires_ms=now + asked.days * 86_400_000,
    )
    with server.store.writing() as session:
        session.add(row)
        note(session, who.name, "token.make", who.home, token=row.identity, scopes=row.scopes)
    return TokenMade(**Token.of(row).model_dump(), secret=said)


@ENDPOINTS.add("DELETE", f"{PREFIX}/tokens/{{token}}", LOGGED_IN, status_code=204)
def end_token(token: str, who: Who, server: Server) -> None:
    """Ends one of one's own tokens."""
    with server.store.writing() as session:
        mine = (TokenRow.identity == token, TokenRow.person == who.name)
        if session.scalar(select(TokenRow.identity).where(*mine)) is None:
            raise missing("token", token)
        session.execute(delete(TokenRow).where(*mine))
        note(session, who.name, "token.end", who.home, token=token)
