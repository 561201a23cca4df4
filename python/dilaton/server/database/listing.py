"""Selects, of many objects, those that somebody may see: the rule is the same as for one, asked of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from dilaton.server.access.rules import Access
from dilaton.server.database.tables import LabRow, RunRow

Row = TypeVar("Row", LabRow, RunRow)

PAGE_MAX = 200

READ_AT_ONCE = 500


def readable(
    session: Session,
    table: type[Row],
    access: Access,
    permission: str,
    count: int,
    narrowed: Callable[[Select[Row]], Select[Row]],
) -> list[Row]:
    """The first rows of which somebody has a permission, at most `count`, of those to which `narrowed` narrows them."""
    folders = access.inside(session.scalars(select(table.folder).distinct()))
    found: list[Row] = []
    offset = 0
    while folders and len(found) < count:
        wanted = narrowed(select(table).where(table.folder.in_(folders)))
        rows = list(session.scalars(wanted.offset(offset).limit(READ_AT_ONCE)))
        found += [row for row in rows if access.may(permission, row.path)]
        offset += READ_AT_ONCE
        if len(rows) < READ_AT_ONCE:
            break
    return found[:count]
