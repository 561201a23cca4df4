"""What calls, timers and devices cost (PADS'15, table 2; CNS'09, table 2 and figure 7), in small versions."""

from __future__ import annotations

import re
from pathlib import Path

from tests.functional.papers.test_papers_pads15 import rows


def test_asking_for_the_time_costs_the_same_of_the_hosts_cpu_at_every_tdf(tmp_path: Path) -> None:
    """And what it costs is the kernel's, since there is no vDSO: the C library's call is not cheaper than the kernel's."""
    native, one, ten = rows("pads15-calls", "--out", str(tmp_path), "--batches", "20", "--watch", "0", "--flow", "0")
    assert float(native[1]) < float(native[2])
    for library, kernel in ((float(row[1]), float(row[2])) for row in (one, ten)):
        assert 1 / 2 < library / kernel < 2
        assert kernel > float(native[2])
    # Without the TDF one would be ten times the other; the host's core may be half as fast in one of the runs.
    assert 1 / 3 < float(one[2]) / float(ten[2]) < 3


def test_timers_cost_less_at_a_higher_tdf_and_an_ifb_device_takes_time(tmp_path: Path) -> None:
    arguments = ["--rates", "10000", "--rounds", "5", "--turns", "1", "--seconds", "1"]
    timers, *_, without, redirected = rows("cns09-costs", "--out", str(tmp_path), *arguments)
    at_one, at_ten = (float(re.sub(" %", "", timers[cell])) for cell in (1, 3))
    assert at_one > 2 * max(at_ten, 0)
    assert float(redirected[1]) > float(without[1]) > 0
    assert (tmp_path / "figure-7.svg").is_file()
