"""A run becomes a data file as Flent reads it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import dilaton
from tests.unit.measure import made


def test_the_file_has_all_series_at_the_same_instants(tmp_path: Path) -> None:
    path = dilaton.load(made.run_dir(tmp_path / "run")).to_flent(tmp_path / "run.flent.gz")
    data = json.loads(gzip.decompress(path.read_bytes()))
    assert data["version"] == 4
    assert set(data["results"]) == {"TCP upload", "TCP upload::tcp_rtt", "TCP upload::tcp_cwnd", "Ping (ms) ICMP"}
    assert {len(values) for values in data["results"].values()} == {len(data["x_values"])} == {21}
    assert data["results"]["TCP upload"][10] == pytest.approx(10.0)
    assert [point["val"] for point in data["raw_values"]["Ping (ms) ICMP"]] == pytest.approx([20.1, 20.2, 20.3])
    assert data["metadata"]["TITLE"] == "made"


def test_a_run_without_anything_for_it_and_another_ending_are_refused(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path / "run", events=[])
    (path / "measure/g0/tcp.csv").unlink()
    with pytest.raises(ValueError, match="no TCP samples and no ping"):
        dilaton.load(path).to_flent(tmp_path / "x.flent.gz")
    with pytest.raises(ValueError, match=r"their ending: \.flent\.gz"):
        dilaton.load(path).to_flent(tmp_path / "x.json")
