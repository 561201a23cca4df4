"""Counts in an SQLite database, one transaction after the other, for ever; the argument is PRAGMA synchronous.

Prints what it finds at its start, `found N` or, if the database cannot be read, `broken 0`, and then `committed N` after
each transaction: whoever reads that may rely on it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import time
from pathlib import Path

DATABASE = Path("/srv/database")

PAUSE_S = 0.005
"""After a transaction; without a disk to wait for there would be no end of them in a moment of virtual time."""


def count() -> int | None:
    """How many transactions are there, none of them missing; None if that cannot be told."""
    with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(DATABASE)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY)")
        entries, last = database.execute("SELECT COUNT(*), COALESCE(MAX(number), 0) FROM entries").fetchone()
        if entries == last and database.execute("PRAGMA integrity_check").fetchone() == ("ok",):
            return int(last)
    return None


def main() -> None:
    """Finds what is there, and goes on."""
    number = count()
    print("broken 0" if number is None else f"found {number}", flush=True)
    if number is None:
        for path in DATABASE.parent.glob(f"{DATABASE.name}*"):
            path.unlink()
        number = count() or 0
    database = sqlite3.connect(DATABASE, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {sys.argv[1]}")
    while True:
        number += 1
        database.execute("INSERT INTO entries VALUES (?)", (number,))
        print(f"committed {number}", flush=True)
        time.sleep(PAUSE_S)


def losses(printed: str) -> list[int]:
    """How many transactions that were reported as committed were missing, at each start but the first.

    It is -1 where one more was there, whose report a crash prevented.
    """
    found: list[int] = []
    committed = 0
    for line in printed.splitlines():
        word, number = line.split()
        if word != "committed":
            found.append(committed - int(number))
        committed = int(number)
    return found[1:]


if __name__ == "__main__":
    main()
