"""Runs that need more than their person may use: approved, or refused with a reason, by who may."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheRun, Who, needs
from dilaton.server.api.runs.runs import Run
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note, now_ms, tell
from dilaton.server.database.tables import RunRow
from dilaton.server.problems import Problem, missing
from dilaton.server.runs.life import WAITS

ENDPOINTS = Endpoints()

RUN = f"{PREFIX}/runs/{{run}}"
APPROVE = needs(("Run.Read", "run"), ("Request.Approve", "run"))


class Approval(Asked):
    """That a run may wait for its turn."""

    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    """The higher, the sooner of those that wait; 0 where nobody has said anything."""


class Refusal(Asked):
    """That a run may not."""

    reason: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$")]


@ENDPOINTS.add("POST", f"{RUN}/approve", APPROVE)
def approve_run(asked: Approval, run: TheRun, who: Who, server: Server) -> Run:
    """Has a run wait for its turn, whatever its person may use; or gives one that waits another priority."""
    with server.store.writing() as session:
        row = _waiting(session, run.identity)
        row.priority = asked.priority
        if row.state == "requested":
            row.state, row.reason, row.is_approved = "queued", None, True
            tell(session, "Run.Read", row.path, "run", run=row.identity, state=row.state)
        note(session, who.name, "run.approve", row.path, priority=asked.priority)
        return Run.of(row)


@ENDPOINTS.add("POST", f"{RUN}/refuse", APPROVE)
def refuse_run(asked: Refusal, run: TheRun, who: Who, server: Server) -> Run:
    """Refuses a run that was requested, with a reason for its person."""
    with server.store.writing() as session:
        row = _waiting(session, run.identity)
        if row.state != "requested":
            raise Problem(
                409, "state", f"the run is {row.state}; only one that is requested is refused", state=row.state
            )
        row.state, row.reason, row.ended_ms = "refused", f"{who.name}: {asked.reason}", now_ms()
        note(session, who.name, "run.refuse", row.path, reason=asked.reason)
        tell(session, "Run.Read", row.path, "run", run=row.identity, state=row.state, reason=row.reason)
        return Run.of(row)


def _waiting(session: Session, identity: str) -> RunRow:
    row = session.scalar(select(RunRow).where(RunRow.identity == identity))
    if row is None:
        raise missing("run", identity)
    if row.state not in WAITS:
        raise Problem(409, "state", f"the run is {row.state}, and does not wait any more", state=row.state)
    return row
