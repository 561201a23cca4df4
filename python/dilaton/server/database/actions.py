"""One action, one transaction: what is changed, who did it, and what others are told of it, all or nothing."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy.orm import Session

from dilaton.server.database.tables import AuditRow, EventRow

SERVER = ""
"""Who does what nobody asked for in this moment."""


def now_ms() -> int:
    """The present, as the tables have it."""
    return time.time_ns() // 1_000_000


def note(session: Session, person: str, action: str, path: str, **data: Any) -> None:
    """Writes down who did what. Texts are values of their own, so nothing in them can look like another entry."""
    session.add(AuditRow(at_ms=now_ms(), person=person, action=action, path=path, data=data))


def tell(session: Session, permission: str, path: str, kind: str, **data: Any) -> None:
    """Tells those who have `permission` on the object at `path`, once the transaction is committed."""
    session.add(EventRow(at_ms=now_ms(), permission=permission, path=path, kind=kind, data=data))
