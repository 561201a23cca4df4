"""What guests have written comes from one directory into another in parts, whatever lies among it."""

from __future__ import annotations

import io
import os
import socket
from pathlib import Path

import pytest

from dilaton.cluster.files.archive import PART_BYTES, pack, unpack


def carried(there: Path, here: Path) -> tuple[list[str], list[int]]:
    """What was left out, and the sizes of the parts."""
    contents, sizes = io.BytesIO(), []

    def send(part: bytes) -> None:
        sizes.append(len(part))
        contents.write(part)

    pack(sorted(there.iterdir()), send)
    contents.seek(0)
    return unpack(contents, here), sizes


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "nodes").mkdir(parents=True)
    here.mkdir()
    return there, here


def test_files_are_the_same_and_no_part_is_a_large_one(sides: tuple[Path, Path]) -> None:
    there, here = sides
    large = os.urandom(5 * PART_BYTES + 3)
    (there / "nodes/large").write_bytes(large)
    (there / "nodes/empty").touch()
    (there / "nodes/link").symlink_to("large")
    left_out, sizes = carried(there, here)
    assert not left_out
    assert (here / "nodes/large").read_bytes() == (here / "nodes/link").read_bytes() == large
    assert (here / "nodes/empty").read_bytes() == b""
    assert max(sizes) <= PART_BYTES


def test_an_odd_file_is_left_out_and_said_and_all_others_come(sides: tuple[Path, Path]) -> None:
    there, here = sides
    os.mkfifo(there / "nodes/fifo")
    (there / "nodes/absolute").symlink_to("/etc/passwd")
    (there / "nodes/outside").symlink_to("../../secret")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(there / "nodes/socket"))
    (there / "nodes/two\nlines").symlink_to("/etc/passwd")
    (there / "nodes/zz").write_text("result")
    left_out, _ = carried(there, here)
    names = ["nodes/absolute", "nodes/fifo", "nodes/outside", r"'nodes/two\nlines'"]
    assert [line.split(":")[0] for line in left_out] == names
    assert all(line.isprintable() for line in left_out)
    assert [path.name for path in (here / "nodes").iterdir()] == ["zz"]
    assert (here / "nodes/zz").read_text() == "result"


def test_no_file_of_the_run_itself_is_written_over(sides: tuple[Path, Path]) -> None:
    there, here = sides
    (there / "run.json").write_text("theirs")
    (here / "run.json").write_text("ours")
    assert carried(there, here)[0] == ["run.json: the run has a file of that name"]
    assert (here / "run.json").read_text() == "ours"
