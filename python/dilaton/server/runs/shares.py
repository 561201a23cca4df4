"""What the database knows of how places are shared: who has had them of late, and for whom some are kept."""

from __future__ import annotations

import os

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from dilaton.server.database.tables import ReservationRow, RunRow
from dilaton.server.runs.life import FINAL, GOING
from dilaton.server.runs.queue import Reserved

STARTS_AT_ONCE = len(os.sched_getaffinity(0))
"""How many runs start at once: to boot a guest takes a core, and thirty at once would keep all else from theirs."""

START_MS_MAX = 30_000
"""After which a run that still starts, as one that waits for other machines, keeps no other from starting."""

LATELY_MS = 7 * 86_400_000
"""How far back it counts what somebody has used."""


def reservations(session: Session, now: int) -> list[Reserved]:
    """Those that are not over."""
    rows = session.scalars(select(ReservationRow).where(ReservationRow.until_ms > now).order_by(ReservationRow.from_ms))
    return [Reserved(row.folder, row.places, row.from_ms, row.until_ms) for row in rows]


def starting_until(session: Session, now: int) -> list[int]:
    """Until when each of the runs that start keeps others from it, in milliseconds since 1970."""
    starting = (RunRow.state == "starting", RunRow.started_ms > now - START_MS_MAX)
    return list(session.scalars(select(RunRow.started_ms + START_MS_MAX).where(*starting)))


def used_ms(session: Session, now: int) -> dict[str, int]:
    """How long the runs of each person have gone on of late, in milliseconds of the host, those that go on included."""
    since = now - LATELY_MS
    begin = case((RunRow.started_ms > since, RunRow.started_ms), else_=since)
    end = func.coalesce(RunRow.ended_ms, now)
    used = (
        select(RunRow.person, func.sum(end - begin))
        .where(RunRow.started_ms.is_not(None), end > since, RunRow.state.in_(GOING | FINAL))
        .group_by(RunRow.person)
    )
    return {person: int(spent) for person, spent in session.execute(used)}
