"""Who is calling, by their cookie or token; logging in and out.

A login makes a new secret each time and takes none that was sent with it, so nobody can be made to use a session that
somebody else knows. Cookies come with every request that a browser makes, whichever page is behind it: what changes
something is heard only from this server's own pages (`is_own_page`). Tokens are sent on purpose, and are heard anyhow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import delete, select
from sqlalchemy.orm import Session
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from dilaton.server.access.policy import Policy
from dilaton.server.access.rules import Access, Grant, home
from dilaton.server.access.secrets import digest, secret
from dilaton.server.database.actions import SERVER, note, now_ms
from dilaton.server.database.store import Store
from dilaton.server.database.tables import GrantRow, Person, SessionRow, TokenRow
from dilaton.server.problems import Problem
from dilaton.server.settings import Settings

IDLE_MS = 7 * 86_400_000
LIFE_MS = 30 * 86_400_000
"""After which a session ends: unused, and in any case."""

SEEN_MS = 60_000
"""How exactly it is kept when a session was used last."""

ENDED = "the session has ended; log in again"

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""


NOTHING = Access((), None, {})
"""What somebody may do who is not known."""


@dataclass(frozen=True)
class Caller:
    """Somebody who is known.

    Attributes:
        name: Of the person.
        access: What they may do.
        session, token: The digest of what they came with, one of the two.
    """

    name: str
    access: Access
    session: str = ""
    token: str = ""

    @property
    def home(self) -> str:
        """The folder of their own labs and runs."""
        return home(self.name)


@dataclass
class OneTime:
    """Secrets that let a person in once, in this process alone."""

    kept: dict[str, str] = field(default_factory=dict)

    def make(self, person: str) -> str:
        """A secret that lets `person` in."""
        said = secret()
        self.kept[digest(said)] = person
        return said

    def use(self, said: str) -> str | None:
        """Whom a secret lets in, now and never again; None: nobody."""
        return self.kept.pop(digest(said), None)


def cookie(settings: Settings) -> str:
    """The name of the cookie. By `__Host-` browsers make sure, over TLS, that no other host has set it."""
    return "__Host-dilaton" if settings.is_secure else "dilaton"


def came_with(settings: Settings, connection: HTTPConnection) -> Caller:
    """Somebody who is not known yet, by what they came with; for `remembered` and `renewed`.

    Raises:
        Problem: they came with nothing, or from a page of somebody else's.
    """
    kind, _, said = connection.headers.get("authorization", "").partition(" ")
    if said:
        if kind.lower() != "bearer":
            raise Problem(401, "login", "the only kind of authorization is Bearer, with a token")
        return Caller("", NOTHING, token=digest(said.strip()))
    said = connection.cookies.get(cookie(settings), "")
    if not said:
        raise Problem(401, "login", "log in first, or send a token")
    method = connection.scope.get("method", "WEBSOCKET")
    if method not in SAFE and not is_own_page(settings, connection.headers):
        raise Problem(403, "origin", "this did not come from a page of this server; programs use tokens")
    return Caller("", NOTHING, session=digest(said))


def is_own_page(settings: Settings, headers: Headers) -> bool:
    """Whether a request comes from a page of this server, as the browser tells: closed where it tells nothing."""
    if origin := headers.get("origin"):
        return origin in settings.origins
    return headers.get("sec-fetch-site") == "same-origin"


def renewed(store: Store, policy: Policy, who: Caller) -> Caller:
    """Who somebody is, by what they came with, and what they may do now.

    Raises:
        Problem: they are not let in, or not any more.
    """
    return of_session(store, policy, who.session) if who.session else of_token(store, policy, who.token)


def remembered(store: Store, policy: Policy, who: Caller) -> Caller | None:
    """As `renewed`, where that takes no look into the database; None: it does, as when something has changed."""
    now = now_ms()
    if who.session:
        login = store.memory.known(("session", who.session, policy.version))
        is_known = isinstance(login, Login) and now <= min(login.seen_ms + SEEN_MS, login.created_ms + LIFE_MS)
        return login.caller if isinstance(login, Login) and is_known else None
    token = store.memory.known(("token", who.token, policy.version))
    return token[0] if isinstance(token, tuple) and now <= token[1] else None


def of_session(store: Store, policy: Policy, kept: str) -> Caller:
    """Who has the session of which this digest was kept.

    Raises:
        Problem: it has ended.
    """
    now = now_ms()
    login = store.memory.of(("session", kept, policy.version), lambda: _login(store, policy, kept))
    if now > min(login.seen_ms + IDLE_MS, login.created_ms + LIFE_MS):
        raise Problem(401, "login", ENDED)
    if now > login.seen_ms + SEEN_MS:
        with store.writing() as session:
            if used := session.get(SessionRow, kept):
                used.seen_ms = login.seen_ms = now
    return login.caller


@dataclass
class Login:
    """A session that goes on."""

    caller: Caller
    created_ms: int
    seen_ms: int


def _login(store: Store, policy: Policy, kept: str) -> Login:
    with store.reading() as session:
        row = session.get(SessionRow, kept)
        if row is None:
            raise Problem(401, "login", ENDED)
        caller = Caller(row.person, access_of(session, policy, row.person), kept)
        return Login(caller, row.created_ms, row.seen_ms)


def of_token(store: Store, policy: Policy, kept: str) -> Caller:
    """Who has the token of which this digest was kept.

    Raises:
        Problem: nobody, or it has expired.
    """
    found, expires_ms = store.memory.of(("token", kept, policy.version), lambda: _token(store, policy, kept))
    if now_ms() > expires_ms:
        raise Problem(401, "login", "the token has expired")
    return found


def _token(store: Store, policy: Policy, kept: str) -> tuple[Caller, int]:
    with store.reading() as session:
        row = session.scalar(select(TokenRow).where(TokenRow.digest == kept))
        if row is None:
            raise Problem(401, "login", "there is no such token")
        access = access_of(session, policy, row.person, tuple(row.scopes))
        return Caller(row.person, access, token=kept), row.expires_ms


def access_of(session: Session, policy: Policy, name: str, scopes: tuple[str, ...] | None = None) -> Access:
    """What a person may do, with a token of these scopes.

    Raises:
        Problem: they may not log in any more.
    """
    person = session.get(Person, name)
    if person is None or not person.is_active:
        raise Problem(401, "login", "this account is closed")
    rows = session.scalars(select(GrantRow).where(GrantRow.person == name))
    grants = tuple(Grant(row.path, row.role, denies=row.denies, propagates=row.propagates) for row in rows)
    return Access((*grants, *policy.grants(name)), scopes, policy.roles())


def log_in(store: Store, person: str, how: str, address: str = "") -> str:
    """A session for a person, who comes from an address; returns its secret."""
    said, now = secret(), now_ms()
    with store.writing() as session:
        session.execute(delete(SessionRow).where(SessionRow.created_ms < now - LIFE_MS))
        session.add(SessionRow(digest=digest(said), person=person, created_ms=now, seen_ms=now))
        note(session, person, "login", home(person), how=how, address=address)
    return said


def log_out(store: Store, who: Caller) -> None:
    """Ends the caller's session."""
    with store.writing() as session:
        session.execute(delete(SessionRow).where(SessionRow.digest == who.session))
        note(session, who.name, "logout", who.home)


def make_person(session: Session, name: str, by: str = SERVER) -> None:
    """Makes an account, whose person is a user of their own folder."""
    session.add(Person(name=name, is_active=True, created_ms=now_ms()))
    session.flush()
    session.add(GrantRow(person=name, path=home(name), role="user", denies=False, propagates=True))
    note(session, by, "person.make", home(name))
