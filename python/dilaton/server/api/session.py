"""Logging in and out, and who one is."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import delete, select

from dilaton.server.access.callers import LIFE_MS, cookie, log_in, log_out
from dilaton.server.access.passwords import LENGTH_MAX, LENGTH_MIN
from dilaton.server.access.rules import PATH, home, unknown_patterns
from dilaton.server.access.secrets import TOKEN_PREFIX, digest, identity, secret
from dilaton.server.api.endpoints import LOGGED_IN, PREFIX, PUBLIC, Endpoints, Server, Who
from dilaton.server.database.actions import SERVER, note, now_ms
from dilaton.server.database.tables import PasswordRow, Person, SessionRow, TokenRow
from dilaton.server.problems import Problem, missing
from dilaton.server.runs.queue import Quota
from dilaton.server.state import State

ENDPOINTS = Endpoints()


class Asked(BaseModel):
    """Base of what is asked: nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class LogIn(Asked):
    """What lets somebody in."""

    once: str | None = Field(default=None, max_length=200)
    """The secret of a one-time link, or both of these instead:"""
    name: str | None = Field(default=None, max_length=100)
    password: str | None = Field(default=None, max_length=LENGTH_MAX)


class Me(BaseModel):
    """Who is calling."""

    name: str
    home: str
    """The folder of their own labs and runs."""
    permissions: list[str]
    """What they may do there."""
    groups: list[str]
    quota: Quota
    """What they may use without being asked."""
    everywhere: list[str]
    """What they may do in all folders that no other grant is about."""
    somewhere: list[str]
    """What they may do in some folder, unless a deeper grant denies it."""


@ENDPOINTS.add("POST", f"{PREFIX}/session", PUBLIC, status_code=204)
def begin_session(asked: LogIn, server: Server, request: Request, response: Response) -> None:
    """Logs in by a one-time secret, or by name and password.

    The cookie that comes back is for browsers; programs use tokens.
    """
    let_in(server, asked, request.client.host if request.client else "", response)


def let_in(server: State, asked: LogIn, address: str, response: Response) -> None:
    """Makes a session for who comes from an address, and gives its cookie to `response`.

    Raises:
        Problem: what was said lets nobody in.
    """
    if asked.once is not None and asked.name is None and asked.password is None:
        person, how = _by_link(server, asked.once), "once"
    elif asked.name is not None and asked.password is not None and asked.once is None:
        with server.passwords.place():
            person, how = _by_password(server, asked.name, asked.password, address), "password"
    else:
        raise Problem(422, "argument", "once, or name and password: what lets you in", field="once")
    give_session(server, person, how, address, response)


def give_session(server: State, person: str, how: str, address: str, response: Response) -> None:
    """Makes a session for a person who comes from an address, and gives its cookie to `response`."""
    response.set_cookie(
        cookie(server.settings),
        log_in(server.store, person, how, address),
        max_age=LIFE_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=server.settings.is_secure,
    )


def _by_link(server: State, said: str) -> str:
    person = server.one_time.use(said)
    if person is None:
        raise Problem(401, "login", "this link has been used, or is of an earlier start; the server prints a new one")
    return person


def _by_password(server: State, name: str, password: str, address: str) -> str:
    """Whom a password lets in. Of who may not come in all is told alike."""
    if wait_ms := server.passwords.tries(name, now_ms()):
        raise Problem(429, "wait", f"too many mistakes of this name; try again in {wait_ms // 1000 + 1} s")
    with server.store.reading() as session:
        row = session.get(PasswordRow, name)
        person = session.get(Person, name)
    kept = row.hash if row is not None and person is not None and person.is_active else None
    if not server.passwords.fits(kept, password):
        # Not the name: whoever types a password there would have it written down.
        whose, path = (name, home(name)) if person else (SERVER, "/")
        # Whoever tries many names would fill the log.
        if server.refusals.is_new(whose, "login", path, now_ms()):
            with server.store.writing() as session:
                note(session, whose, "login.refused", path, address=address)
        raise Problem(401, "login", "this name and password let nobody in")
    server.passwords.right(name)
    return name


@ENDPOINTS.add("GET", f"{PREFIX}/session/permissions", LOGGED_IN)
def list_permissions(who: Who, path: Annotated[str, Query(pattern=PATH, max_length=255)]) -> list[str]:
    """What one may do with what is at a path, if there is anything: for what to offer."""
    return who.access.permissions(path)


class NewPassword(Asked):
    """A password that is to be one's own."""

    password: str = Field(min_length=LENGTH_MIN, max_length=LENGTH_MAX)
    old: str | None = Field(default=None, max_length=LENGTH_MAX)
    """The present one, if there is one."""


@ENDPOINTS.add("PUT", f"{PREFIX}/password", LOGGED_IN, status_code=204)
def change_password(asked: NewPassword, who: Who, server: Server) -> None:
    """Sets one's password. One's other sessions end. Only who is logged in can, not a token."""
    if who.token:
        raise Problem(403, "permission", "a token sets no password; log in")
    with server.store.reading() as session:
        row = session.get(PasswordRow, who.name)
    with server.passwords.place():
        if row is not None:
            if wait_ms := server.passwords.tries(who.name, now_ms()):
                raise Problem(429, "wait", f"too many mistakes of this name; try again in {wait_ms // 1000 + 1} s")
            if not server.passwords.fits(row.hash, asked.old or ""):
                raise Problem(403, "password", "old: not the present password", field="old")
            server.passwords.right(who.name)
        made = PasswordRow(person=who.name, hash=server.passwords.hash(asked.password), changed_ms=now_ms())
    with server.store.writing() as session:
        session.merge(made)
        session.execute(delete(SessionRow).where(SessionRow.person == who.name, SessionRow.digest != who.session))
        note(session, who.name, "password.change", who.home)


@ENDPOINTS.add("GET", f"{PREFIX}/session", LOGGED_IN)
def show_session(who: Who, server: Server) -> Me:
    """Who is calling, and what they may do."""
    return Me(
        name=who.name,
        home=who.home,
        permissions=who.access.permissions(who.home),
        groups=server.policy.groups(who.name),
        quota=server.policy.quota(who.name),
        everywhere=who.access.permissions("/"),
        somewhere=who.access.somewhere(),
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
