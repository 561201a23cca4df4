"""What a browser gets: the page, its script and style, and the form behind a one-time link.

Nothing here has data of anybody's in it: the script fetches them from the API as any program does, and puts them into
the page as text.
"""

from __future__ import annotations

import html
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from dilaton.server.access.callers import is_own_page
from dilaton.server.api.endpoints import PUBLIC, Endpoints, Server
from dilaton.server.api.session import let_in
from dilaton.server.problems import Problem

ENDPOINTS = Endpoints()

FILES = {"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8"}

_PLACE = Path(__file__).parent

HIDDEN = {"include_in_schema": False}


@ENDPOINTS.add("GET", "/", PUBLIC, response_class=Response, **HIDDEN)
def show_page() -> Response:
    """The page; who is not logged in is told so by it."""
    return _html("page.html")


@ENDPOINTS.add("GET", "/page/{name}", PUBLIC, response_class=Response, **HIDDEN)
def show_part(name: str) -> Response:
    """A part of the page."""
    if name not in FILES:
        raise Problem(404, "missing", "there is no such part of the page")
    return Response((_PLACE / name).read_bytes(), media_type=FILES[name])


@ENDPOINTS.add("GET", "/login", PUBLIC, response_class=Response, **HIDDEN)
def show_login(once: str = "") -> Response:
    """The form behind a one-time link. The link is used up by the form alone: whatever looks at links before people do
    uses none."""
    return _html("login.html", html.escape(once[:200], quote=True))


@ENDPOINTS.add("POST", "/login", PUBLIC, response_class=Response, **HIDDEN)
async def use_login(request: Request, server: Server) -> Response:
    """Logs in by the form."""
    if not is_own_page(server.settings, request.headers):
        raise Problem(403, "origin", "this did not come from a page of this server")
    said = parse_qs((await request.body()).decode(errors="replace"))
    answer = RedirectResponse("/", 303)
    await run_in_threadpool(let_in, server, said.get("once", [""])[0], answer)
    return answer


def _html(name: str, secret: str = "") -> Response:
    text = (_PLACE / name).read_text().replace("{{once}}", secret)
    return Response(text, media_type="text/html; charset=utf-8")
