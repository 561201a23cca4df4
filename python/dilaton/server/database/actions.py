"""One action, one transaction: what is changed, who did it, and what others are told of it, all or nothing."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy.orm import Session

from dilaton.server.database.tables import AuditRow, EventRow

SERVER = ""
"""Who does what nobody asked for in this moment."""


REASON_CHARS_MAX = 4000

_ODD = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "�")


def storable(text: str) -> str:
    """A text that a run or a guest has written, as every database takes it and no terminal obeys it."""
    plain = text.encode(errors="replace").decode(errors="replace")
    return plain.translate(_ODD)[:REASON_CHARS_MAX]


def now_ms() -> int:
    """The present, as the tables have it."""
    return time.time_ns() // 1_000_000


def note(session: Session, person: str, action: str, path: str, **data: Any) -> None:
    """Writes down who did what. Texts are values of their own, so nothing in them can look like another entry."""
    session.add(AuditRow(at_ms=now_ms(), person=person, action=action, path=path, data=data))


def tell(session: Session, permission: str, path: str, kind: str, **data: Any) -> None:
    """Tells those who have `permission` on the object at `path`, once the transaction is committed."""
    session.add(EventRow(at_ms=now_ms(), permission=permission, path=path, kind=kind, data=data))
