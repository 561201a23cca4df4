"""Older tables are brought up to date, on both databases, with what is in them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Engine, insert, select, table
from sqlalchemy.sql.expression import column

from dilaton.server.database.store import MIGRATIONS, Store, upgrade
from dilaton.server.database.tables import GrantRow, Person, RunRow, SweepRow, Table, TemplateRow
from dilaton.server.saved.keeping import saved_before
from tests.postgresql import cluster

RUN, LAB = "a" * 16, "b" * 16


@contextlib.contextmanager
def empty(database: str, directory: Path) -> Iterator[Store]:
    """A database without tables."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(cluster()).url if database == "PostgreSQL" else ""
        yield stack.enter_context(contextlib.closing(Store(directory / "server.sqlite", url, upgraded=False)))


def upgrade_to(engine: Engine, step: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, step)


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_tables_of_the_fourth_step_become_those_of_today_with_what_is_in_them(database: str, tmp_path: Path) -> None:
    with empty(database, tmp_path) as store:
        upgrade_to(store.engine, "4")
        with store.engine.begin() as connection:

            def add(into: str, /, **values: object) -> None:
                connection.execute(insert(table(into, *map(column, values))).values(**values))

            add("people", name="ann", is_active=True, created_ms=1)
            add("labs", identity=LAB, folder="/home/ann", name="x", head=1, created_ms=1)
            of_run = {"folder": "/home/ann", "person": "ann", "lab": LAB, "version": 1, "name": "x", "text": "name: x"}
            states = {"asked": "{}", "state": "finished", "created_ms": 1, "needs": "{}", "priority": 0}
            add("runs", identity=RUN, is_approved=False, **of_run, **states)
            for path in ("/home/ann", f"/home/ann/runs/{RUN}"):
                add("grants", person="ann", path=path, role="user", denies=False, propagates=True)
            for person, action, name in (
                ("ann", "run.save", "old"),
                ("ben", "run.save", "old"),
                ("ann", "run.save", "other"),
                ("ann", "lab.make", "third"),
            ):
                data = json.dumps({"folder": "/courses/x", "name": name})
                add("audit", at_ms=1, person=person, action=action, path="/courses/x/runs/r", data=data)
        upgrade(store.engine)
        with store.engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), Table.metadata) == []
        with store.reading() as session:
            assert session.scalars(select(RunRow.sweep)).all() == [None]
            whose = [saved_before(session, person, tmp_path / "saved") for person in ("ann", "ben")]
            assert whose == [{"/courses/x": ["other"]}, {"/courses/x": ["old"]}], "who saved last by that name"
            paths = session.scalars(select(GrantRow.path).order_by(GrantRow.path)).all()
            assert paths == ["/home/ann", f"/home/ann/runs/{LAB}/{RUN}"], "a run is below its lab"
        with store.writing() as session:
            what = {"identity": "c" * 16, "folder": "/home/ann", "name": "x", "person": "ann"}
            session.add(TemplateRow(**what, title="", text="", description="", parameters=[], changed_ms=1))
            session.add(SweepRow(**what, lab=LAB, version=1, fields=[], repeat=1, created_ms=1))
        with store.reading() as session:
            assert [session.scalar(select(one)) for one in (Person.name, TemplateRow.name, SweepRow.number)] == [
                "ann",
                "x",
                1,
            ]
