"""What is kept, and for how long: nothing here grows without bounds.

Events are for who was away for a while, not a history: who comes later than the oldest is told that some are lost, and
looks anew. The audit log is bounded by its number of entries; who needs all of it exports it before.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, func, select

from dilaton.server.database.actions import SERVER, note, tell
from dilaton.server.database.store import Store
from dilaton.server.database.tables import AuditRow, EventRow, RunRow
from dilaton.server.runs.life import FINAL

DAY_MS = 86_400_000

AT_ONCE = 100
"""Runs that are removed in one transaction: others wait for it."""


@dataclass(frozen=True)
class Keep:
    """What is kept.

    Attributes:
        events, audit: How many entries.
        run_days: For how long runs that are over; None: until somebody removes them.
    """

    events: int = 100_000
    audit: int = 1_000_000
    run_days: int | None = None


def tidy(store: Store, keep: Keep, now_ms: int) -> list[str]:
    """Forgets what is too old; returns the runs of which nothing is known any more, whose files are to go."""
    with store.writing() as session:
        for table, most in ((EventRow, keep.events), (AuditRow, keep.audit)):
            newest = session.scalar(select(func.max(table.number))) or 0
            session.execute(delete(table).where(table.number <= newest - most))
        if keep.run_days is None:
            return []
        ended = RunRow.ended_ms < now_ms - keep.run_days * DAY_MS
        rows = list(session.scalars(select(RunRow).where(RunRow.state.in_(FINAL), ended).limit(AT_ONCE)))
        for row in rows:
            session.delete(row)
            note(session, SERVER, "run.expire", row.path, name=row.name)
            tell(session, "Run.Read", row.path, "run", run=row.identity, state=None)
    return [row.identity for row in rows]
