"""The reproduction of NSDI'06's table 3, in a small version that shows the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.papers.test_papers_pads15 import rows


def test_flows_get_the_same_on_slow_hardware_that_is_dilated_as_on_fast_hardware(tmp_path: Path) -> None:
    """A twentieth of the rate and of the CPUs; one that is not scaled by its TDF would be a fiftieth of the others."""
    arguments = ["--seconds", "3", "--flows", "4", "--smaller", "20"]
    means = [float(row[3]) for row in rows("nsdi06-table3", "--out", str(tmp_path), *arguments)]
    assert len(means) == 4
    # In the first seconds a queue overflows, which may cost a flow some of its window.
    assert means == pytest.approx([means[0]] * 4, rel=0.15)
    assert 0.8 * 500 / 20 / 4 < means[0] < 500 / 20 / 4
