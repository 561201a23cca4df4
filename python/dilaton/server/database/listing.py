"""Selects, of many objects, those that somebody may see: the rule is the same as for one, asked of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from dilaton.server.access.rules import Access
from dilaton.server.database.tables import LabRow, RunRow, SweepRow, TemplateRow

Row = TypeVar("Row", LabRow, RunRow, TemplateRow, SweepRow)

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
    every = list(session.scalars(select(table.folder).distinct()))
    folders = access.inside(every)
    # Who sees into all folders needs no choice of them, which would have all rows sorted before the first is read.
    chosen = select(table) if len(folders) == len(every) else select(table).where(table.folder.in_(folders))
    found: list[Row] = []
    offset, limit = 0, count
    while folders and len(found) < count:
        rows = list(session.scalars(narrowed(chosen).offset(offset).limit(limit)))
        found += [row for row in rows if access.may(permission, row.path)]
        if len(rows) < limit:
            break
        offset, limit = offset + limit, READ_AT_ONCE
    return found[:count]
