"""Makes a backup of a server, and puts one back: the tables, and what of it is files."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from alembic.migration import MigrationContext
from sqlalchemy import Connection, Table, func, insert, select, text

from dilaton.images.store import ImageError
from dilaton.images.store import Store as Images
from dilaton.server.backup.entries import add, put
from dilaton.server.backup.images import ImagesBack, add_images
from dilaton.server.backup.saved import add_saved, check_saved
from dilaton.server.database import tables
from dilaton.server.database.actions import now_ms
from dilaton.server.database.store import WRITES, Store
from dilaton.server.runs.files import listed, opened
from dilaton.server.runs.life import FINAL, GOING
from dilaton.server.settings import Settings

TABLES_FILE = "tables.jsonl"

FOLDERS = ("runs", "layouts", "saved")
"""What of a server's data is files, beside the tables."""

ROWS_AT_ONCE = 500
"""Rows that are held in memory."""

LINE_BYTES_MAX = 16 << 20
"""Of a row; a longer line is of no backup."""

IMAGES = "images"
"""The folder of what comes back into the store of images, which is not among a server's data."""

END_BYTES = 2 * tarfile.BLOCKSIZE
"""Of zeros, with which an archive ends."""

UNFINISHED = ".restoring"
"""Where files are put back until the tables are; of what is there, nothing counts."""

_SEQUENCE = text("SELECT pg_get_serial_sequence(:name, 'number')")

LOST = "it went on when the backup was made from which this server was restored"
"""The reason of a run that nobody knows the end of."""


class BackupError(Exception):
    """A backup cannot be made, or cannot be put back; the message names the file and says why."""


@dataclass(frozen=True)
class Copied:
    """What is in a backup: how many runs have their files there, how many saved labs and images, and what is not."""

    runs: int
    saved: int
    images: int
    left_out: tuple[str, ...]
    """A sentence for each thing that is damaged."""


def back_up(store: Store, settings: Settings, file: Path) -> Copied:
    """Makes a backup of a server, which may go on meanwhile.

    Raises:
        BackupError: the file is there already.
        OSError: it cannot be written; then it is not there.
    """
    if file.exists():
        raise BackupError(f"--backup: {file}: is there already; name a new file")
    with _new(file) as output:
        with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
            ended = _add_tables(archive, store, file.absolute().parent)
            for run in ended:
                _add_files(archive, settings.directory, f"{settings.runs.name}/{run}")
            _add_files(archive, settings.directory, settings.layouts.name)
            images = Images()
            # So that those stay which saved labs need that are removed meanwhile.
            with images.adding() if images.directory.is_dir() else contextlib.nullcontext():
                saved = add_saved(archive, settings.saved)
                kept, damaged = add_images(archive, IMAGES, images, saved.images)
        output.flush()
        os.fsync(output.fileno())
    return Copied(len(ended), saved.count, kept, (*saved.left_out, *damaged))


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
                images = ImagesBack(Images(), stack)
                _put_back(archive, connection, aside.resolve(), images)
                images.name(check_saved(aside / settings.saved.name, settings.saved))
            except (tarfile.TarError, ValueError, KeyError, TypeError, RecursionError, ImageError) as error:
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


@contextlib.contextmanager
def _new(file: Path) -> Iterator[IO[bytes]]:
    """A file to write, which gets its name at the end, unless something fails.

    Until then it has none where that can be, so that nothing is left of it if we are killed.

    Raises:
        BackupError: another one has that name by then.
    """
    part: Path | None = None
    try:
        descriptor = os.open(file.absolute().parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
        # A file system that has no files without a name.
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
        part = Path(name)
    try:
        with open(descriptor, "w+b") as output:
            yield output
            # Never in place of one that came meanwhile. With a descriptor it follows the link that leads to the file.
            os.link(f"/proc/self/fd/{descriptor}", file, src_dir_fd=descriptor)
    except FileExistsError:
        raise BackupError(f"--backup: {file}: is there already; name a new file") from None
    finally:
        if part is not None:
            part.unlink()


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
        spool.flush()
        add(archive, TABLES_FILE, spool)
    return ended


def _add_files(archive: tarfile.TarFile, top: Path, folder: str) -> None:
    """Adds the plain files below a folder, named as in `top`; what a run has left may be removed meanwhile."""
    if not (top / folder).is_dir():
        return
    for path, _ in listed(top / folder, most=None):
        with contextlib.suppress(FileNotFoundError), opened(top / folder, path) as data:
            add(archive, f"{folder}/{path}", data)


def _put_back(archive: tarfile.TarFile, connection: Connection, aside: Path, images: ImagesBack) -> None:
    first = archive.next()
    lines = archive.extractfile(first) if first is not None and first.name == TABLES_FILE else None
    if lines is None:
        raise ValueError(f"it does not begin with {TABLES_FILE}")
    _put_tables(connection, lines)
    while entry := archive.next():
        folder, *others = entry.name.split("/")
        if folder not in (*FOLDERS, IMAGES) or not others or any(part in ("", ".", "..") for part in others):
            raise ValueError(f"{entry.name!r}: not a file of a run, a saved lab or an image")
        if folder == IMAGES:
            images.put(archive, entry, others)
        elif folder == "saved" or entry.isreg():
            put(archive, entry, aside / entry.name)
        else:
            raise ValueError(f"{entry.name!r}: not a file of a run")
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
