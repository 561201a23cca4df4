"""The database: opened, brought up to date, read and written.

SQLite has one writer at a time. A transaction that begins with reading and then writes may find another writer ahead of
it, and fails. So whoever will write says so at the beginning, and waits for its turn; who only reads is never kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.orm import Session

MIGRATIONS = Path(__file__).parent / "migrations"

BUSY_HOST_S = 30.0
"""How long a writer waits for its turn."""

WRITES = "writes"
"""The option of a connection that will write."""


class Store:
    """A database."""

    def __init__(self, path: Path) -> None:
        """Opens the database at `path`, made or brought up to date if necessary."""
        self._published: list[Callable[[], None]] = []
        # Secrets in it are digests, and labs are their owners' alone.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self.engine = create_engine(
            f"sqlite:///{path}", connect_args={"timeout": BUSY_HOST_S, "isolation_level": None}, pool_size=20
        )
        event.listen(self.engine, "connect", _prepare)
        event.listen(self.engine, "begin", _begin)
        upgrade(self.engine)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """A view of the database as it is at one moment."""
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction: all of it is done at the end of the context, or, after an exception, nothing."""
        engine = self.engine.execution_options(**{WRITES: True})
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session
        for publish in self._published:
            publish()

    def on_commit(self, publish: Callable[[], None]) -> None:
        """Has `publish` called after each transaction that may have changed something."""
        self._published.append(publish)

    def close(self) -> None:
        """Closes the database."""
        self.engine.dispose()


def upgrade(engine: Engine) -> None:
    """Makes the tables what this version takes them for."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _prepare(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    # Each commit is on the disk when it returns; who reads does not wait for who writes.
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Any) -> None:
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
