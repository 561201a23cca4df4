"""What every request passes before anything else: whom it names as its host, how large it is; and what every answer
says to browsers.

A page of somebody else's can have its own name point at this machine, and then send requests here that look like its
own (DNS rebinding): it cannot change the host that the browser names.
"""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dilaton.server import logs
from dilaton.server.doors.doorway import Doorway
from dilaton.server.metrics import Metrics
from dilaton.server.problems import Problem
from dilaton.server.settings import BODY_BYTES_MAX, Settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Shield:
    """Stands in front of the application."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, doorway: Doorway) -> None:
        self._app, self._settings, self._metrics, self._doorway = app, settings, metrics, doorway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may pass; what lasts longer than the server is told so, if nothing was yet."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._passed(scope, receive, self._counted(scope, watched))
        except asyncio.CancelledError:
            # By nobody but the server that ends, which waits for this, and takes an error for a fault.
            if not has_begun and scope["type"] == "http":
                await Problem(503, "ending", "the server ends; ask the next one").response()(scope, receive, send)

    async def _passed(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (label := self._settings.label_of(Headers(scope=scope).get("host", ""))) is not None:
            await self._doorway(scope, receive, send, label)
            return
        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            if scope["type"] == "http":
                await refusal(scope, receive, self._dressed(send))
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, self._bounded(receive) if scope["type"] == "http" else receive, self._dressed(send))

    def _refusal(self, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if host not in self._settings.hosts:
            return Problem(421, "host", "the server is not known by this name").response()
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            return Problem(413, "size", f"a request has at most {BODY_BYTES_MAX} bytes").response()
        return None

    def _bounded(self, receive: Receive) -> Receive:
        """What is received, as long as it is not too much: a request need not say how large it is."""
        left = BODY_BYTES_MAX

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, f"a request has at most {BODY_BYTES_MAX} bytes")
            return message

        return bounded

    def _counted(self, scope: Scope, send: Send) -> Send:
        """Counts answers, and how long they took to begin."""
        began = time.monotonic()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                host_s = time.monotonic() - began
                self._metrics.count(scope["method"], message["status"], host_s)
                logs.told(scope["method"], scope["path"], message["status"], host_s)
            await send(message)

        return counted

    def _dressed(self, send: Send) -> Send:
        """Answers with the headers that an endpoint has not set otherwise."""

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return dressed
