"""The application: all endpoints behind the shield, and what keeps the runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from sqlalchemy import select
from starlette.types import ASGIApp

from dilaton import __version__
from dilaton.server.access.callers import OneTime
from dilaton.server.access.policy import Policy
from dilaton.server.api import images, machine, people, quotas, schemas, service, session, signing_on, streams
from dilaton.server.api.endpoints import Endpoint
from dilaton.server.api.labs import derived, drawings, imports, labs, shares, templates
from dilaton.server.api.runs import (
    comparisons,
    doors,
    drawn,
    reaching,
    requests,
    reservations,
    runs,
    saving,
    steering,
    sweeps,
    terminals,
    vpn,
)
from dilaton.server.bell import Bell
from dilaton.server.database.actions import now_ms
from dilaton.server.database.store import Store, surely
from dilaton.server.database.tables import IdentityRow, QuotaRow
from dilaton.server.database.tidying import tidy
from dilaton.server.doors.doorway import Doorway
from dilaton.server.images.keeping import Images
from dilaton.server.labs.checking import Checker
from dilaton.server.page import page
from dilaton.server.problems import HANDLERS
from dilaton.server.runs.keeper import Keeper
from dilaton.server.runs.queue import Quota
from dilaton.server.runs.user_ids import PASSED
from dilaton.server.saved.keeping import Saved
from dilaton.server.settings import Settings
from dilaton.server.shield import Shield
from dilaton.server.state import State
from dilaton.server.workers import settled

ENDPOINTS: tuple[Endpoint, ...] = tuple(
    endpoint
    for part in (
        *(service, machine, session, signing_on, people, quotas, schemas, images),
        *(labs, derived, imports, shares, drawings, templates),
        *(runs, sweeps, comparisons, requests, reservations, drawn, steering, saving, streams, terminals, reaching),
        doors,
        vpn,
        page,
    )
    for endpoint in part.ENDPOINTS
)
"""All that can be asked."""

TIDY_HOST_S = 600.0
"""How often it is looked what is too old."""


def opened(settings: Settings) -> State:
    """The server's data, made or opened.

    Raises:
        LabError: the file of roles has mistakes.
    """
    settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(settings.directory, 0o700 if settings.run_as is None else 0o700 | PASSED)
    store, bell = Store(settings.database, settings.postgresql), Bell()
    store.on_commit(bell.ring)
    policy = Policy(settings.roles)
    with store.reading() as reading:
        for kept in reading.scalars(select(QuotaRow)):
            policy.keep_quota(kept.name, Quota(**kept.quota))
    if settings.provider is not None:
        with store.reading() as reading:
            for known in reading.scalars(select(IdentityRow).where(IdentityRow.issuer == settings.provider.issuer)):
                policy.claim(known.person, known.groups)
    return State(
        settings,
        store,
        OneTime(),
        Checker(settings.directory, stays=settings.at_once > 1),
        Images(settings.directory, settings.registries),
        Saved(settings.directory, settings.saved),
        Keeper(store, settings, bell, policy),
        bell,
        policy,
    )


class Described(FastAPI):
    """The application, whose description also has its WebSockets, for which OpenAPI has no words."""

    def openapi(self) -> dict[str, Any]:
        """All that can be asked."""
        return super().openapi() | {
            "x-websockets": {one.path: one.described() for one in ENDPOINTS if one.method == "WEBSOCKET"}
        }


def described(state: State) -> FastAPI:
    """The application, without what stands in front of it."""
    app = Described(
        title="Dilaton",
        version=__version__,
        lifespan=_lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = state
    for endpoint in ENDPOINTS:
        endpoint.add_to(app)
    for kind, answer in HANDLERS.items():
        app.add_exception_handler(kind, answer)
    return app


def made(state: State) -> ASGIApp:
    """The application as it is served."""
    return Shield(described(state), state.settings, state.metrics, Doorway(state))


async def _tidy(state: State) -> None:
    """Forgets from time to time what is too old."""
    while True:
        while gone := await surely(lambda: tidy(state.store, state.settings.keep, now_ms())):
            for identity in gone:
                await asyncio.to_thread(state.keeper.remove, identity)
        await asyncio.sleep(TIDY_HOST_S)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: State = app.state.server
    state.bell.hang()
    keeping = asyncio.create_task(state.keeper.keep())
    tidying = asyncio.create_task(_tidy(state))
    try:
        yield
    finally:
        keeping.cancel()
        tidying.cancel()
        closed = (state.terminals.close(), state.tunnels.close(), state.images.close(), state.checker.close())
        await asyncio.gather(keeping, tidying, *closed, return_exceptions=True)
        await settled()
        state.store.close()
