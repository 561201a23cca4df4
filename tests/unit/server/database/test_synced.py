"""Whoever writes waits until that is on the disk, once with all who have written meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dilaton.server.database import synced
from dilaton.server.database.actions import note
from dilaton.server.database.store import Store
from dilaton.server.database.synced import Synced
from tests.conftest import PATIENCE_HOST_S

WRITERS = 8


class Disk:
    """Takes note of what comes to it, and lets nothing pass until it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, may: bool = True) -> None:
        self.sizes: list[int] = []
        self.began, self.may = threading.Event(), threading.Event()
        if may:
            self.may.set()
        self._sync: Callable[[int], None] = os.fdatasync
        monkeypatch.setattr(synced.os, "fdatasync", self.take)

    def take(self, file: int) -> None:
        self.sizes.append(os.fstat(file).st_size)
        self.began.set()
        assert self.may.wait(PATIENCE_HOST_S)
        self._sync(file)


def test_a_transaction_is_on_the_disk_before_its_writer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "server.sqlite")
    disk = Disk(monkeypatch)
    for number in (1, 2):
        with store.writing() as session:
            note(session, "ann", "lab.make", "/home/ann", number=number)
            assert len(disk.sizes) == number - 1
        assert len(disk.sizes) == number
        assert disk.sizes[-1] == (tmp_path / "server.sqlite-wal").stat().st_size, "all that was written"
    with store.reading():
        pass
    assert len(disk.sizes) == 2
    store.close()


def test_who_comes_while_the_disk_is_waited_for_shares_the_next_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"")
    disk, one = Disk(monkeypatch, may=False), Synced(log)
    with ThreadPoolExecutor(WRITERS + 1) as threads:
        first = threads.submit(one.wait)
        assert disk.began.wait(PATIENCE_HOST_S)
        # What it waits for may have been read before this was written.
        log.write_bytes(b"more")
        others = [threads.submit(one.wait) for _ in range(WRITERS)]
        while one._asked < 1 + WRITERS:
            pass
        assert not any(other.done() for other in others)
        disk.may.set()
        for done in (first, *others):
            done.result(PATIENCE_HOST_S)
    assert disk.sizes == [0, 4]


def test_after_a_disk_has_failed_nothing_is_confirmed_until_it_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x")
    one, began, may = Synced(log), threading.Event(), threading.Event()

    def fail(_: int) -> None:
        began.set()
        assert may.wait(PATIENCE_HOST_S)
        raise OSError("broken")

    with monkeypatch.context() as broken, ThreadPoolExecutor(WRITERS + 1) as threads:
        broken.setattr(synced.os, "fdatasync", fail)
        waiting = [threads.submit(one.wait)]
        assert began.wait(PATIENCE_HOST_S)
        # Their writes may be among what the disk has lost.
        waiting += [threads.submit(one.wait) for _ in range(WRITERS)]
        while one._asked < 1 + WRITERS:
            pass
        # As Linux does: it tells one who asks, and the next one that all is well.
        broken.setattr(synced.os, "fdatasync", lambda _: None)
        may.set()
        for each in waiting:
            with pytest.raises(OSError, match="broken"):
                each.result(PATIENCE_HOST_S)
    disk = Disk(monkeypatch)
    with pytest.raises(OSError, match="broken"):
        one.wait()
    assert disk.sizes == []
    Synced(log).wait()
    assert disk.sizes == [1]


def test_what_is_not_there_needs_no_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    Synced(tmp_path / "log").wait()
    assert disk.sizes == []
