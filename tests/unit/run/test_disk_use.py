"""How much disk a run may take."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dilaton.host.errors import GuestError
from dilaton.run.files import disk_use

MIB = 1 << 20


def run_directory(directory: Path) -> Path:
    """3 MiB in two files, and what must not count: a link to a large file, and a large file without contents."""
    (directory / "nodes" / "a").mkdir(parents=True)
    (directory / "nodes" / "a" / "talk.stdout").write_bytes(b"y\n" * MIB)
    (directory / "guest0.log").write_bytes(b"x" * MIB)
    (directory / "elsewhere").symlink_to("/")
    with (directory / "sparse").open("w") as file:
        os.truncate(file.fileno(), 100 * MIB)
    return directory


def test_what_is_on_the_disk_counts_and_the_largest_file_is_named(tmp_path: Path) -> None:
    disk_use.check(4 * MIB, run_directory(tmp_path))
    with pytest.raises(
        GuestError, match=r"more than 2\.5 MiB of the disk, 2\.0 MiB of it for nodes/a/talk\.stdout; --max-"
    ):
        disk_use.check(5 * MIB // 2, tmp_path)


def test_files_without_contents_count_too(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).touch()
    with pytest.raises(GuestError):
        disk_use.check(99 * disk_use.FILE_BYTES_MIN, tmp_path)


def test_a_directory_that_cannot_be_looked_at_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GuestError, match=r"it cannot be told how much disk the run takes: .*Not a directory"):
        asyncio.run(disk_use.keep_below(MIB, tmp_path / "file"))


def test_a_run_may_take_half_of_what_is_free(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    assert disk_use.limit_of(tmp_path) <= disk.f_blocks * disk.f_frsize // 2
