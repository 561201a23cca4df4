"""Parts of long lists: of those that somebody may see, so many, after the last that they have.

Numbers go up, so that lists of runs and sweeps begin with the newest and go on `before` a number; labs and templates
have identities, and go on behind one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session, defer

from dilaton.server.api.endpoints import Server, Who
from dilaton.server.database.listing import PAGE_MAX, readable
from dilaton.server.database.tables import LabRow, RunRow, SweepRow, TemplateRow

Named = TypeVar("Named", LabRow, TemplateRow)
Numbered = TypeVar("Numbered", RunRow, SweepRow)

Count = Annotated[int, Query(ge=1, le=PAGE_MAX)]


@dataclass(frozen=True)
class Names:
    """Part of a list by identities."""

    who: Who
    server: Server
    count: Count = PAGE_MAX
    skip_to: str = ""
    """Those after this identity."""

    def of(self, table: type[Named], permission: str) -> list[Named]:
        """The rows."""
        with self.server.store.reading() as session:
            return readable(
                session,
                table,
                self.who.access,
                permission,
                self.count,
                lambda wanted: wanted.where(table.identity > self.skip_to).order_by(table.identity),
            )


@dataclass(frozen=True)
class Newest:
    """Part of a list by numbers, the newest first."""

    who: Who
    count: Count = PAGE_MAX
    before: int | None = None
    """Those before this number."""

    def of(
        self, session: Session, table: type[Numbered], permission: str, *wheres: ColumnElement[bool], without: Any = ()
    ) -> list[Numbered]:
        """The rows that fulfil all of `wheres`, `without` columns that nobody needs."""
        wheres = wheres if self.before is None else (*wheres, table.number < self.before)
        left_out = [defer(column) for column in without]
        return readable(
            session,
            table,
            self.who.access,
            permission,
            self.count,
            lambda wanted: wanted.where(*wheres).order_by(table.number.desc()).options(*left_out),
        )


async def _names(who: Who, server: Server, count: Count = PAGE_MAX, skip_to: str = "") -> Names:
    return Names(who, server, count, skip_to)


async def _newest(who: Who, count: Count = PAGE_MAX, before: int | None = None) -> Newest:
    return Newest(who, count, before)


ByIdentity = Annotated[Names, Depends(_names)]
ByNumber = Annotated[Newest, Depends(_newest)]
