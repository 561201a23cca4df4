"""The runs of a sweep, with fields and without."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from dilaton.report.sweeps import draw_sweep, points, sets_of


def test_each_run_has_a_directory_told_by_its_values() -> None:
    found = [point.directory for point in points({"time.tdf": ["1", "1/2"], "links.0.rate": ["1Gbit"]}, 2)]
    assert found == [f"time.tdf={tdf},links.0.rate=1Gbit/{repeat}" for tdf in ("1", "1_2") for repeat in (0, 1)]


def test_a_lab_is_repeated_without_fields() -> None:
    assert [point.directory for point in points({}, 3)] == ["0", "1", "2"]


def test_repeats_without_fields_are_neither_drawn_nor_compared(tmp_path: Path) -> None:
    table = pd.DataFrame({"run": ["0", "1"], "state": "finished", "ping.rtt.min": [0.01, 0.02]})
    assert list(draw_sweep(table, {}, {"ping.rtt.min": "s"})) == []
    (tmp_path / "sweep.json").write_text(json.dumps({"lab": "", "fields": []}))
    table.to_csv(tmp_path / "sweep.csv", index=False)
    with pytest.raises(ValueError, match="no sets to compare"):
        sets_of(tmp_path, None)
