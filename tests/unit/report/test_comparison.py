"""Runs are compared by all that they measured; the exit status says whether they are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dilaton
from dilaton.cli.errors import BadInputError
from dilaton.cli.results.compare import compare_runs
from dilaton.report.comparison import compare, compare_sets
from dilaton.report.metrics import Metric, metrics_of
from tests.unit.measure import made


def slower(path: Path) -> Path:
    """A run whose pings took half as long again."""
    run = made.run_dir(path)
    for name in ("nodes/a/ping.stdout", "run.json"):
        text = (run / name).read_text()
        for before, after in (("20.1", "30.1"), ("20.2", "30.2"), ("20.3", "30.3"), ("0.020", "0.030")):
            text = text.replace(before, after)
        (run / name).write_text(text)
    return run


def test_the_metrics_are_those_of_processes_samples_and_captures(tmp_path: Path) -> None:
    metrics = metrics_of(dilaton.load(made.run_dir(tmp_path)))
    assert set(metrics) == {
        "ping rtt",
        "ping loss",
        "ping outage",
        "ping errors",
        "a:eth0 sent",
        "a:eth0 queue",
        "b:eth0 sent",
        "b:eth0 queue",
        "a tcp to port 5201 cwnd",
        "a tcp to port 5201 srtt",
        "a:eth0 time between packets",
    }
    assert metrics["ping rtt"].values.tolist() == [0.0201, 0.0202, 0.0203]


def test_connections_of_a_server_are_told_by_its_port_and_not_by_those_of_its_clients(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    samples = path / "measure/g0/tcp.csv"
    swapped = {"source_port": "destination_port", "destination_port": "source_port"}
    pd.read_csv(samples).rename(columns=swapped).to_csv(samples, index=False)
    names = {name for name in metrics_of(dilaton.load(path)) if " tcp " in name}
    assert names == {"a tcp from port 5201 cwnd", "a tcp from port 5201 srtt"}


def test_a_connection_counts_where_something_was_acknowledged(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    samples = path / "measure/g0/tcp.csv"
    before = metrics_of(dilaton.load(path))["a tcp to port 5201 srtt"]
    assert before.t_s[0] > dilaton.load(path).tcp.t_s.min(), "of the first sample nobody knows"
    pd.read_csv(samples).assign(bytes_acked=38).to_csv(samples, index=False)
    assert not [name for name in metrics_of(dilaton.load(path)) if " tcp " in name]


def test_the_same_run_twice_is_indistinguishable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [made.run_dir(tmp_path / name) for name in ("one", "two")]
    assert compare_runs(runs, "5%", tmp_path / "both.svg") == 0
    out = capsys.readouterr().out
    assert out.rstrip().endswith("indistinguishable")
    assert "compared with one" in out
    assert "<svg" in (tmp_path / "both.svg").read_text()


def test_runs_that_differ_are_told_with_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [made.run_dir(tmp_path / "one"), slower(tmp_path / "two")]
    assert compare_runs(runs, "5%", None) == 1
    assert "different in ping rtt" in capsys.readouterr().out
    assert compare_runs(runs, "60%", None) == 0


def test_what_differs_is_at_the_head_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [made.run_dir(tmp_path / name) for name in ("one", "two")]
    (table,) = (runs[1] / "measure").glob("*/interfaces.csv")
    samples = pd.read_csv(table)
    samples["queue_packets"] += 50
    samples.to_csv(table, index=False)
    assert compare_runs(runs, "5%", None) == 1
    said = capsys.readouterr().out.splitlines()
    lines = [line for line in said if " one " in line and "compared with" not in line]
    assert [line.split()[1] for line in lines[:2]] == ["queue", "queue"]
    assert " two " in said[said.index(lines[0]) + 1], "each has a line of its own, with its name"
    assert all(line.rstrip().endswith("same") for line in lines[2:])


def test_what_only_one_run_has_is_not_compared(tmp_path: Path) -> None:
    whole = metrics_of(dilaton.load(made.run_dir(tmp_path)))
    part = {name: metric for name, metric in whole.items() if not name.startswith("ping")}
    outcome = compare({"a": whole, "b": part})
    assert outcome.missing == ["ping rtt", "ping loss", "ping outage", "ping errors"]
    assert outcome.verdict == "indistinguishable in 7 of 11 metrics, the others not compared"
    assert compare({"a": whole, "b": {}}).verdict.startswith("nothing to compare")


@pytest.mark.parametrize(
    ("names", "tolerance", "said"),
    [
        (["one"], "5%", "at least two runs"),
        (["one", "one"], "5%", "given twice"),
        (["one", "none"], "5%", "there is no such directory"),
        (["one", "two"], "5", "--tolerance: 5: "),
    ],
)
def test_bad_input_is_told(tmp_path: Path, names: list[str], tolerance: str, said: str) -> None:
    for name in ("one", "two"):
        made.run_dir(tmp_path / name)
    with pytest.raises(BadInputError, match=said):
        compare_runs([tmp_path / name for name in names], tolerance, None)


def test_sets_that_differ_a_little_in_all_metrics_are_different_though_in_none_alone() -> None:
    chance = np.random.default_rng(1)

    def runs(mean: float) -> dict[str, list[dict[str, Metric]]]:
        return {
            str(where): [{"rtt": Metric("rtt", "s", chance.normal(chance.normal(mean, 5), 0.5, 20))} for _ in range(4)]
            for where in range(20)
        }

    sets = {"one": runs(100), "another": runs(105)}
    outcome = compare_sets(sets, 0.02)
    assert (outcome.different, outcome.is_different) == ([], True)
    assert outcome.verdict == "different in all metrics together, though in none alone"
    assert not compare_sets(sets, 0.5).is_different, "by too little to matter"


def test_what_is_within_the_tolerance_does_not_make_sets_different_together() -> None:
    """Four round trips that are certainly one hundredth longer, beside a jitter that varies by chance."""
    chance = np.random.default_rng(1)

    def runs(longer: float) -> dict[str, list[dict[str, Metric]]]:
        means = {f"rtt{number}": (1 + longer, 0.003) for number in range(4)} | {"jitter": (1, 0.2)}
        return {
            "": [
                {name: Metric(name, "s", chance.normal(mean, spread, 1)) for name, (mean, spread) in means.items()}
                for _ in range(5)
            ]
        }

    told = sum(compare_sets({"one": runs(0.0), "another": runs(0.015)}).is_different for _ in range(40))
    # Of 40 with a chance of one in twenty, each of the two tests, 10 or more are told in one of 200 cases.
    assert told < 10
