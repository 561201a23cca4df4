"""The reproduction of NSDI'06's scaling of CPUs, in a small version that shows the same."""

from __future__ import annotations

from pathlib import Path

from tests.functional.papers.test_papers_pads15 import rows


def test_half_a_cpu_at_tdf_1_is_a_twentieth_at_tdf_10(tmp_path: Path) -> None:
    """The sender's CPU limits its flows, at both TDFs to the same; with all of it they get more out of the network."""
    arguments = ["--figures", "7", "--rates", "3200", "--seconds", "1", "--flows", "8", "--smaller", "20"]
    ((rate, *cells),) = rows("nsdi06-cpu", "--out", str(tmp_path), *arguments)
    half, twentieth, whole = (float(cell.partition(" ")[0]) for cell in cells)
    assert rate == "3200"
    # Without the TDF one would be ten times the other; what the host's core does differently in two runs is less.
    assert 1 / 2.5 < half / twentieth < 2.5
    assert whole > 1.4 * max(half, twentieth)
    assert (tmp_path / "figure-7.svg").is_file()
