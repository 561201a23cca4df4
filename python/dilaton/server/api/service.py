"""What everybody may know: that the server is there, and what can be asked."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import BaseModel
from sqlalchemy import text

from dilaton import __version__
from dilaton.server.api.endpoints import PUBLIC, Endpoints, Server

ENDPOINTS = Endpoints()


class Health(BaseModel):
    """What a server answers that is well."""

    status: str = "ok"
    version: str = __version__


@ENDPOINTS.add("GET", "/healthz", PUBLIC)
def show_health(server: Server) -> Health:
    """Whether the server answers, and its database does."""
    with server.store.reading() as session:
        session.execute(text("SELECT 1"))
    return Health()


@ENDPOINTS.add("GET", "/openapi.json", PUBLIC)
def show_openapi(request: Request) -> dict[str, Any]:
    """All endpoints, with what they take and answer, and as `x-rule` who may use them."""
    description: dict[str, Any] = request.app.openapi()
    return description
