"""The database: opened, brought up to date, read and written.

SQLite has one writer at a time. A transaction that begins with reading and then writes may find another writer ahead of
it, and fails. So whoever will write says so at the beginning, and waits for its turn; who only reads is never kept.
SQLite itself waits by sleeping and looking again, up to 100 ms each time, whoever comes first. This server alone writes
to its file, so its threads wait for each other by a lock, which wakes the next one at once. What is written is on the
disk before anybody is told that it is (`synced.py`), which one wait for the disk may do for several of them.

PostgreSQL would have many. But events are numbered, and of two transactions the one with the higher number could
commit first: whoever reads in between would miss the other for good. So there, too, writers come one after the other,
by a lock that ends with the transaction; what they do takes milliseconds. Who reads sees the database as it was when
they began.

A database that is gone for a while is waited for by who keeps runs (`surely`), and told to who asks (`GONE`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session

from dilaton.server.database.memory import DECIDING, Memory
from dilaton.server.database.synced import Synced

MIGRATIONS = Path(__file__).parent / "migrations"

BUSY_HOST_S = 30.0
"""How long a writer waits for its turn."""

WRITES = "writes"
"""The option of a connection that will write."""

CHANGES = "changes"
"""The option of a connection that will write: a list, not empty once it may have changed who may do what."""

GONE = (OperationalError, InterfaceError)
"""What says that the database cannot be reached, or not in time."""

AGAIN_HOST_S = 1.0
"""After which one tries again."""

CONNECT_HOST_S = 5
"""How long one waits for a server of PostgreSQL."""

TURN = 0x64696C61746F6E
"""The lock of who writes: "dilaton"."""

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")


class Store:
    """A database."""

    def __init__(self, path: Path, postgresql: str = "", *, upgraded: bool = True) -> None:
        """Opens a database, made or brought up to date if necessary.

        Args:
            path: Of a file of SQLite.
            postgresql: The URL of a database of PostgreSQL instead; empty: none.
            upgraded: False: it is not made, and its tables stay as they are, as for who only reads.
        """
        self.memory = Memory()
        self._published: list[Callable[[], None]] = []
        self._turn = threading.Lock()
        self.engine = _postgresql(postgresql) if postgresql else _sqlite(path)
        self._synced = None if postgresql else Synced(Path(f"{path}-wal"))
        if upgraded:
            upgrade(self.engine)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """A view of the database as it is at one moment."""
        engine = self.engine
        if engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction: all of it is done at the end of the context, or, after an exception, nothing."""
        changes: list[str] = []
        engine = self.engine.execution_options(**{WRITES: True, CHANGES: changes})
        with (
            contextlib.ExitStack() as stack,
            self._taking_turn(),
            Session(engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session
            session.flush()
            # Until it is done, also where its commit has no answer.
            if changes:
                stack.enter_context(self.memory.changing())
        if self._synced is not None:
            self._synced.wait()
        for publish in self._published:
            publish()

    @contextlib.contextmanager
    def _taking_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=BUSY_HOST_S):
            raise OperationalError("a turn to write", None, TimeoutError(f"none came within {BUSY_HOST_S:g} s"))
        try:
            yield
        finally:
            self._turn.release()

    def on_commit(self, publish: Callable[[], None]) -> None:
        """Has `publish` called after each transaction that may have changed something."""
        self._published.append(publish)

    def close(self) -> None:
        """Closes the database."""
        self.engine.dispose()


async def surely(work: Callable[[], Result]) -> Result:
    """Does something with the database in a thread, again and again as long as that is gone.

    Whatever is done so may have been done already: a connection may be lost after a commit and before its answer.
    """
    while True:
        try:
            return await asyncio.to_thread(work)
        except GONE as error:
            LOG.error("the database cannot be reached; trying again: %s", str(error.orig).strip())
            await asyncio.sleep(AGAIN_HOST_S)


def _sqlite(path: Path) -> Engine:
    # Secrets in it are digests, and labs are their owners' alone.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    engine = create_engine(
        f"sqlite:///{path}", connect_args={"timeout": BUSY_HOST_S, "isolation_level": None}, pool_size=20
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "before_cursor_execute", _note_change)
    return engine


def _postgresql(url: str) -> Engine:
    asked = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(asked, connect_args={"connect_timeout": CONNECT_HOST_S}, pool_size=20, pool_pre_ping=True)
    event.listen(engine, "begin", _take_turn)
    event.listen(engine, "before_cursor_execute", _note_change)
    return engine


def upgrade(engine: Engine) -> None:
    """Makes the tables what this version takes them for."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _prepare(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    # Who reads does not wait for who writes. The log of what is written comes to the disk by `Synced`.
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _take_turn(connection: Connection) -> None:
    if connection.get_execution_options().get(WRITES):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(BUSY_HOST_S * 1000)}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({TURN})")


def _note_change(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
    changes = connection.get_execution_options().get(CHANGES)
    if changes is not None and statement.startswith(DECIDING):
        changes.append(statement)


def _begin(connection: Any) -> None:
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
