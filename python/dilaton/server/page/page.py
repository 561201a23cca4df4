"""What a browser gets: the page that is built from `web/`, which then asks the API as any program does.

Nothing here has data of anybody's in it. What belongs to a build has its digest in its name, so browsers keep it and
ask for the first page alone. Where nothing is built, a few words say so until it is, as in a clone whose first page npm
builds beside the server; the API is there nevertheless.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache

from fastapi import Request, Response

from dilaton.host.files import PAGE
from dilaton.server.api.endpoints import PUBLIC, Endpoints
from dilaton.server.problems import Problem

ENDPOINTS = Endpoints()

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}(\.[a-z]{2,5})")

KEPT = "private, max-age=31536000, immutable"

HIDDEN = {"include_in_schema": False}

NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Dilaton</title>
<h1>The page is not built yet</h1>
<p>The first start of a server builds it, which takes a minute or two; it is shown here as soon as it is there.</p>
<p>What builds it is npm with Node.js 18 or newer: where that is missing, on Debian <code>apt-get install npm</code>,
then <code>./dilaton serve</code> again. The API is there nevertheless:
<a href="/openapi.json">/openapi.json</a>.</p></html>
"""


@ENDPOINTS.add("GET", "/", PUBLIC, response_class=Response, **HIDDEN)
def show_page(request: Request) -> Response:
    """The page; who is not logged in is told so by it."""
    return _sent("index.html", request) or Response(NOT_BUILT, 503, media_type=KINDS[".html"])


@ENDPOINTS.add("GET", "/login", PUBLIC, response_class=Response, **HIDDEN)
def show_login(request: Request) -> Response:
    """The page behind a one-time link. The link is used up by who presses its button alone: whatever looks at links
    before people do uses none."""
    return show_page(request)


@ENDPOINTS.add("GET", "/page/{name}", PUBLIC, response_class=Response, **HIDDEN)
def show_part(name: str, request: Request) -> Response:
    """A part of the page."""
    answer = _sent(name, request)
    if answer is None:
        raise Problem(404, "missing", "there is no such part of the page")
    answer.headers["Cache-Control"] = KEPT
    return answer


def _sent(name: str, request: Request) -> Response | None:
    found = NAME.fullmatch(name)
    kind = KINDS.get(found[1]) if found else None
    try:
        plain, packed = _part(name) if kind else (None, b"")
    except FileNotFoundError:
        plain = None
    if plain is None:
        return None
    headers = {"Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=kind, headers=headers | {"Content-Encoding": "gzip"})
    return Response(plain, media_type=kind, headers=headers)


@lru_cache(maxsize=200)
def _part(name: str) -> tuple[bytes, bytes]:
    """A part as it is, and compressed."""
    plain = (PAGE / name).read_bytes()
    return plain, gzip.compress(plain, mtime=0)
