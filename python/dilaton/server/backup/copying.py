"""`dilaton serve --backup` and `--restore`: all that a server knows, in one file, whichever database it has.

A backup is an archive (tar). First come the tables, as they were at one moment, a line of JSON for each row, then the
files of runs that were over then, which change no more: so they fit the tables although they are copied later, while
the server goes on. A run that was still going on is in the tables alone, and is written down as failed when they are
put back, since nobody knows what became of it.

The file is there whole or not at all, and so is what was put back: tables are written in one transaction, at whose end
the directories of files, complete by then, are given their names. Rows need no knowledge of SQLite or PostgreSQL, so a
server also moves from one to the other by this.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from alembic.migration import MigrationContext
from sqlalchemy import Connection, Table, func, insert, select, text

from dilaton.run.files.directory import create_file
from dilaton.server.database import tables
from dilaton.server.database.actions import now_ms
from dilaton.server.database.store import WRITES, Store
from dilaton.server.runs.files import listed, opened
from dilaton.server.runs.life import FINAL, GOING
from dilaton.server.settings import Settings

TABLES_FILE = "tables.jsonl"

FOLDERS = ("runs", "layouts")
"""What of a server's data is files, beside the tables."""

ROWS_AT_ONCE = 500
"""Rows that are held in memory."""

LINE_BYTES_MAX = 16 << 20
"""Of a row; a longer line is of no backup."""

END_BYTES = 2 * tarfile.BLOCKSIZE
"""Of zeros, with which an archive ends."""

UNFINISHED = ".restoring"
"""Where files are put back until the tables are; of what is there, nothing counts."""

_SEQUENCE = text("SELECT pg_get_serial_sequence(:name, 'number')")

LOST = "it went on when the backup was made from which this server was restored"
"""The reason of a run that nobody knows the end of."""


class BackupError(Exception):
    """A backup cannot be made, or cannot be put back; the message names the file and says why."""


def back_up(store: Store, settings: Settings, file: Path) -> int:
    """Makes a backup of a server, which may go on meanwhile; returns how many runs have their files in it.

    Raises:
        BackupError: the file is there already.
        OSError: it cannot be written; then it is not there.
    """
    if file.exists():
        raise BackupError(f"--backup: {file}: is there already; name a new file")
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    part = Path(name)
    try:
        with open(descriptor, "wb") as output:
            with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
                ended = _add_tables(archive, store, file.absolute().parent)
                for run in ended:
                    _add_files(archive, settings.directory, f"{settings.runs.name}/{run}")
                _add_files(archive, settings.directory, settings.layouts.name)
            output.flush()
            os.fsync(output.fileno())
        os.link(part, file)  # never in place of one that came meanwhile
    except FileExistsError:
        raise BackupError(f"--backup: {file}: is there already; name a new file") from None
    finally:
        part.unlink(missing_ok=True)
    return len(ended)


def restore(store: Store, settings: Settings, file: Path) -> None:
    """Puts a backup back into a server that knows nothing yet.

    Raises:
        BackupError: the server knows something, or the file is no backup of this version; then nothing has changed.
        OSError: something cannot be read or written; likewise.
    """
    aside = settings.directory / UNFINISHED
    if aside.exists():
        _clear_unfinished(store, settings)
    if there := [name for name in FOLDERS if (settings.directory / name).exists()]:
        raise BackupError(f"--restore: {settings.directory / there[0]}: is there; name a new --data")
    aside.mkdir(mode=0o700)
    try:
        with contextlib.ExitStack() as stack:
            try:
                archive = stack.enter_context(tarfile.open(file, "r:"))
                connection = stack.enter_context(store.engine.execution_options(**{WRITES: True}).begin())
                _put_back(archive, connection, aside)
            except (tarfile.TarError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise BackupError(
                    f"--restore: {file}: no backup of a server: {error or type(error).__name__}"
                ) from error
            for name in FOLDERS:
                if (aside / name).is_dir():
                    (aside / name).rename(settings.directory / name)
    except BaseException:
        for name in FOLDERS:
            shutil.rmtree(settings.directory / name, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _clear_unfinished(store: Store, settings: Settings) -> None:
    """Removes the files of a restore that was killed before it had written tables; those of one that had stay."""
    with store.reading() as session:
        if _known(session.connection()) is None:
            for name in FOLDERS:
                shutil.rmtree(settings.directory / name, ignore_errors=True)
    shutil.rmtree(settings.directory / UNFINISHED)


def _known(connection: Connection) -> str | None:
    """The name of a table that has rows; None: the server knows nothing yet."""
    found = tables.Table.metadata.sorted_tables
    return next((one.name for one in found if connection.scalar(select(func.count()).select_from(one))), None)


def _add_tables(archive: tarfile.TarFile, store: Store, directory: Path) -> list[str]:
    """Adds all rows, as they are now; returns the runs that are over."""
    with tempfile.TemporaryFile(dir=directory) as spool, store.reading() as session:
        connection = session.connection()
        spool.write(json.dumps({"revision": _revision(connection)}).encode() + b"\n")
        for table in tables.Table.metadata.sorted_tables:
            wanted = select(table).execution_options(yield_per=ROWS_AT_ONCE)
            for row in connection.execute(wanted).mappings():
                line = json.dumps([table.name, dict(row)]).encode() + b"\n"
                if len(line) > LINE_BYTES_MAX:
                    raise BackupError(
                        f"--backup: a row of {table.name} takes {len(line)} bytes; at most {LINE_BYTES_MAX}"
                    )
                spool.write(line)
        ended = list(session.scalars(select(tables.RunRow.identity).where(tables.RunRow.state.in_(FINAL))))
        _add(archive, TABLES_FILE, spool, spool.tell())
    return ended


def _add_files(archive: tarfile.TarFile, top: Path, folder: str) -> None:
    """Adds the plain files below a folder, named as in `top`; what a run has left may be removed meanwhile."""
    if not (top / folder).is_dir():
        return
    for path, _ in listed(top / folder, most=None):
        with contextlib.suppress(FileNotFoundError), opened(top / folder, path) as data:
            _add(archive, f"{folder}/{path}", data, os.fstat(data.fileno()).st_size)


def _add(archive: tarfile.TarFile, name: str, data: IO[bytes], size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    data.seek(0)
    archive.addfile(entry, data)


def _put_back(archive: tarfile.TarFile, connection: Connection, aside: Path) -> None:
    first = archive.next()
    lines = archive.extractfile(first) if first is not None and first.name == TABLES_FILE else None
    if lines is None:
        raise ValueError(f"it does not begin with {TABLES_FILE}")
    _put_tables(connection, lines)
    while entry := archive.next():
        folder, *others = entry.name.split("/")
        data = archive.extractfile(entry) if entry.isreg() else None
        if data is None or folder not in FOLDERS or not others or any(part in ("", ".", "..") for part in others):
            raise ValueError(f"{entry.name!r}: not a file of a run")
        target = aside / entry.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(create_file(target), "wb") as output:
            shutil.copyfileobj(data, output)
    # What breaks off between two files, or is damaged there, reads like an end.
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(END_BYTES) != bytes(END_BYTES):
        raise ValueError("it breaks off, or is damaged, behind a file")


def _put_tables(connection: Connection, lines: IO[bytes]) -> None:
    known = {table.name: table for table in tables.Table.metadata.sorted_tables}
    if (there := _known(connection)) is not None:
        raise BackupError(f"--restore: this server has {there} already; a backup is put into a new one")
    said, present = json.loads(lines.readline(LINE_BYTES_MAX))["revision"], _revision(connection)
    if said != present:
        raise BackupError(
            f"--restore: the backup has tables {said}, this version {present}; use the version that made it"
        )
    for table, rows in _in_groups(known, lines):
        connection.execute(insert(table), rows)
    runs = known["runs"]
    lost = {"state": "failed", "reason": LOST, "ended_ms": now_ms()}
    connection.execute(runs.update().where(runs.c.state.in_(GOING)).values(lost))
    if connection.dialect.name == "postgresql":
        # Numbers that the database gives go on behind those that are there.
        for table in known.values():
            sequence = connection.scalar(_SEQUENCE, {"name": table.name}) if "number" in table.c else None
            if sequence and (last := connection.scalar(select(func.max(table.c.number)))):
                connection.execute(select(func.setval(sequence, last)))


def _in_groups(known: dict[str, Table], lines: IO[bytes]) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
    """The rows, many of one table at a time."""
    name, rows = "", list[dict[str, Any]]()
    for line in iter(lambda: lines.readline(LINE_BYTES_MAX), b""):
        table, row = json.loads(line)
        if rows and (table != name or len(rows) >= ROWS_AT_ONCE):
            yield known[name], rows
            rows = []
        name = table
        rows.append(row)
    if rows:
        yield known[name], rows


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
