"""The application behind doors: who comes by the host of one is looked at, and led to its node.

It stands beside the application of the API, and neither is ever asked under a name of the other's.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from http.cookies import CookieError, SimpleCookie

import h11
from starlette.datastructures import Headers, QueryParams
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Message, Receive, Scope, Send

from dilaton.host.tasks import first_of, within
from dilaton.server.access.callers import remembered, renewed
from dilaton.server.api.runs.terminals import stay_allowed
from dilaton.server.database.store import surely
from dilaton.server.doors.carrying import ClosedError, carry_messages, carry_request, connected, to_node
from dilaton.server.doors.doors import Door
from dilaton.server.problems import Problem
from dilaton.server.settings import Settings
from dilaton.server.state import State

ENTRANCE = "/.dilaton/enter"
"""The path of links to doors; all others are the node's."""

PERMISSION = "Run.Console"
"""As to connect to a port, which somebody with a terminal in the node can, too."""

PLAIN = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


def cookie(settings: Settings) -> str:
    """The name of a door's cookie; see `access.callers.cookie`."""
    return "__Host-dilaton-door" if settings.is_secure else "dilaton-door"


class Doorway:
    """Leads to nodes; see `__call__`."""

    def __init__(self, state: State) -> None:
        self._state, self._cookie = state, cookie(state.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, label: str) -> None:
        """Answers a request to the host of a label."""
        door = self._state.doors.find(label, time.monotonic())
        refusal = await self._refusal(scope, door)
        if refusal is None:
            assert door is not None, "what is not there is refused"
            refusal = await self._carried(scope, receive, send, door)
        if refusal is not None:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await refusal(scope, receive, send)

    async def _refusal(self, scope: Scope, door: Door | None) -> Response | None:
        """Why nobody is let in; None: the browser of the door's person has come, and may."""
        if door is None:
            return _told(404, "this door is closed; open another one")
        headers = Headers(scope=scope)
        if scope["path"] == ENTRANCE and scope["type"] == "http":
            return self._entered(scope, door)
        if not door.knows(_cookie_in(headers, self._cookie)):
            return _told(403, "this link is another browser's; open a door of your own")
        if not _is_own(headers, self._state.settings.origin_of(door.label), scope["type"]):
            return _told(403, "this is asked by a page of another origin")
        if not await self._may(door):
            self._state.doors.close(door.label)
            return _told(403, f"you have no {PERMISSION} there any more")
        return None

    def _entered(self, scope: Scope, door: Door) -> Response:
        """The answer to who comes with a ticket."""
        ticket = QueryParams(scope["query_string"]).get("ticket", "")
        said = door.enter(ticket, time.monotonic()) if scope["method"] == "GET" else None
        if said is None:
            return _told(403, "this link has been used, or is older than a minute; open another door")
        answer = RedirectResponse("/", 303, headers=PLAIN)
        secure = self._state.settings.is_secure
        # Lax: one comes by a link on a page of the server, which is another site where it has another domain.
        answer.set_cookie(self._cookie, said, httponly=True, samesite="lax", secure=secure)
        return answer

    async def _may(self, door: Door) -> bool:
        store, policy = self._state.store, self._state.policy
        try:
            now = remembered(store, policy, door.who)
            if now is None:
                now = await surely(partial(renewed, store, policy, door.who))
        except Problem:
            return False
        return now.access.may(PERMISSION, door.path)

    async def _carried(self, scope: Scope, receive: Receive, send: Send, door: Door) -> Response | None:
        """Carries a request to the node and its answer back; what is to be answered where there is none."""
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] in ("http.response.start", "websocket.accept")
            await send(message)

        carry = carry_messages if scope["type"] == "websocket" else carry_request
        headers = to_node(scope["headers"], self._cookie.encode())
        run_dir = self._state.keeper.run_dir(door.run)
        try:
            async with door.free, connected(run_dir, door.node, door.port) as line:
                await first_of(carry(line, scope, receive, watched, headers), self._shut(door))
        except h11.LocalProtocolError:
            return _told(400, "this is no request of HTTP/1.1")
        except ClosedError as error:
            # An answer that has begun has no end then, by which browsers know.
            return None if has_begun else _told(502, str(error))
        return None

    async def _shut(self, door: Door) -> None:
        """Waits until somebody may not pass any more, also who has passed."""
        with contextlib.suppress(TimeoutError):
            left = max(0.0, door.until_host_s - time.monotonic())
            await within(left, stay_allowed(self._state, door.who, door.path, PERMISSION))


def _is_own(headers: Headers, origin: str, kind: str) -> bool:
    """Whether it is asked by a page of the same origin, by no page, or by who follows a link.

    Pages of other nodes are of other origins, though perhaps of the same site, to which cookies are sent.
    """
    if (said := headers.get("origin")) is not None or kind == "websocket":
        return said == origin
    is_near = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    return is_near or headers.get("sec-fetch-mode") == "navigate"


def _cookie_in(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _told(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status, headers=PLAIN)
