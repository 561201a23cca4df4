"""What SQLite has written comes to the disk before whoever wrote it is answered, by one wait for several of them.

SQLite itself would wait for the disk at each commit, one after the other, 4 ms each. By `synchronous = NORMAL` it
leaves that to whoever cares, and still has the disk keep the order of its log and the database. So after a power
failure the last transactions may be missing, and nothing else is: none of these was confirmed, though who listens to
what happens may have heard of it a moment before.

Where the disk fails nothing is confirmed any more until a server begins anew, and finds what is there: Linux tells of
what it could not write once, to one who asks, and tells the next one that all is well.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path


class Synced:
    """Has a log be on the disk; for any thread."""

    def __init__(self, log: Path) -> None:
        """`log` need not be there yet."""
        self._log = log
        self._changed = threading.Condition()
        self._asked = self._done = 0
        """Numbers of those who have asked, and of the last one of them whose writes are on the disk."""
        self._is_at_work = False
        self._failure: OSError | None = None
        self._known: int | None = None
        """The log whose name is on the disk, too."""

    def wait(self) -> None:
        """Waits until all that was written to the log before is on the disk.

        Raises:
            OSError: the disk fails, or has failed.
        """
        with self._changed:
            self._asked += 1
            mine = self._asked
            while self._is_at_work and self._done < mine:
                self._changed.wait()
            if self._done >= mine:
                return
            if self._failure is not None:
                raise OSError(*self._failure.args)
            self._is_at_work, asked = True, self._asked
        try:
            self._sync()
            self._done = asked
        except OSError as error:
            self._failure = error
            raise
        finally:
            with self._changed:
                self._is_at_work = False
                self._changed.notify_all()

    def _sync(self) -> None:
        try:
            log = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # The last connection has put all of it into the database, and has waited for that.
            return
        try:
            os.fdatasync(log)
            if (number := os.fstat(log).st_ino) != self._known:
                _sync_directory(self._log.parent)
                self._known = number
        finally:
            os.close(log)


def _sync_directory(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
