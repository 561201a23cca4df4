"""What everybody may know: that the server is there, and what can be asked."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import BaseModel
from sqlalchemy import text

from dilaton import __version__
from dilaton.server.api.endpoints import PUBLIC, Endpoints, Server, needs

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


@ENDPOINTS.add("GET", "/metrics", needs(("Server.Read", "server")), response_class=Response)
def show_metrics(server: Server) -> Response:
    """How the server is doing, for Prometheus, which comes with a token."""
    return Response(generate_latest(server.metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@ENDPOINTS.add("GET", "/openapi.json", PUBLIC)
def show_openapi(request: Request) -> dict[str, Any]:
    """All endpoints, with what they take and answer, and as `x-rule` who may use them."""
    description: dict[str, Any] = request.app.openapi()
    return description
