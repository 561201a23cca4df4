"""A run becomes a data file as Flent reads it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

import dilaton
from dilaton.measure.flent import tcp_series
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


def test_a_round_trip_is_where_its_request_was_sent_and_one_of_an_idle_connection_does_not_count(
    tmp_path: Path,
) -> None:
    path = made.run_dir(tmp_path / "run")
    record = json.loads((path / "run.json").read_text())
    (ping,) = (process for process in record["processes"] if process["name"] == "ping")
    ping["result"] |= {"sent": 4, "received": 2, "samples": [0.02, 0.03], "requests": [0, 3]}
    (path / "run.json").write_text(json.dumps(record))
    data = json.loads(gzip.decompress(dilaton.load(path).to_flent().read_bytes()))
    step_s = (ping["end_s"] - ping["start_s"]) / 4
    instants = [point["t"] for point in data["raw_values"]["Ping (ms) ICMP"]]
    assert instants == pytest.approx([ping["start_s"], ping["start_s"] + 3 * step_s])
    tcp = pd.DataFrame({"t_s": [1, 1], "rtt_us": [10e3, 99e3], "goodput_bit_per_s": [1e6, 0], "cwnd_packets": [9, 10]})
    assert tcp_series(tcp)["TCP upload::tcp_rtt"][1] == pytest.approx([10.0])


def test_a_run_without_anything_for_it_and_another_ending_are_refused(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path / "run", events=[])
    (path / "measure/g0/tcp.csv").unlink()
    with pytest.raises(ValueError, match="no TCP samples and no ping"):
        dilaton.load(path).to_flent(tmp_path / "x.flent.gz")
    with pytest.raises(ValueError, match=r"their ending: \.flent\.gz"):
        dilaton.load(path).to_flent(tmp_path / "x.json")
