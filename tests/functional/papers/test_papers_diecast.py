"""The reproduction of DieCast's figure, in a small version that shows the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.papers.test_papers_pads15 import rows


def test_dbench_finds_the_same_disk_at_every_tdf_if_cpu_and_disk_are_scaled(tmp_path: Path) -> None:
    """Not scaled, a disk looks as much faster as time is slower.

    With a CPU that is fast enough for most of the time to be the disk's, whatever the host's core does.
    """
    arguments = ["--tdfs", "1,3", "--seconds", "2", "--clients", "2", "--faster", "20"]
    one, three = ([float(cell) for cell in row[1:]] for row in rows("diecast-disk", "--out", str(tmp_path), *arguments))
    assert one[0] == one[1] == one[2] > 0
    neither, cpu, both = three
    # The rest is the host's, whose core may be half as fast in the one run as in the other.
    assert both == pytest.approx(one[2], rel=0.25)
    assert min(neither, cpu) > 1.3 * both
    assert (tmp_path / "figure-2c.svg").is_file()
