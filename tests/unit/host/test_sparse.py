"""Sparse files: copied with their holes, and summed up by what is in them, not by where holes are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dilaton.host.sparse import BLOCK_BYTES, copy_sparse, sum_of

SIZE = 1 << 24


def made(path: Path, contents: list[tuple[int, bytes]], size: int = SIZE) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
        for at, data in contents:
            os.pwrite(file.fileno(), data, at)
    return path


def copied(source: Path, target: Path) -> Path:
    with source.open("rb") as read, target.open("wb") as written:
        copy_sparse(read.fileno(), written.fileno())
    return target


@given(st.lists(st.tuples(st.integers(0, SIZE - 100), st.binary(min_size=1, max_size=100)), max_size=5))
def test_a_copy_has_the_same_contents_and_holes(contents: list[tuple[int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        source = made(Path(directory) / "source", contents)
        target = copied(source, Path(directory) / "target")
        assert target.read_bytes() == source.read_bytes()
        assert sum_of(target) == sum_of(source)
        assert target.stat().st_blocks * 512 <= (len(contents) + 1) * 2 * BLOCK_BYTES


def test_zeros_that_are_written_count_as_holes_and_everything_else_counts(tmp_path: Path) -> None:
    hole = sum_of(made(tmp_path / "hole", []))
    assert sum_of(made(tmp_path / "zeros", [(5, b"\0" * BLOCK_BYTES)])) == hole
    others = {
        sum_of(made(tmp_path / "byte", [(5, b"x")])),
        sum_of(made(tmp_path / "moved", [(6, b"x")])),
        sum_of(made(tmp_path / "block", [(5 + BLOCK_BYTES, b"x")])),
        sum_of(made(tmp_path / "longer", [], SIZE + 1)),
    }
    assert len(others | {hole}) == 5
