"""A sweep runs every combination, goes on where it was interrupted, and makes a table and plots of what was measured."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import dilaton, started

LAB = """
name: small
time: {drive: work}
nodes: {a: , b: }
links: [{endpoints: [a, b], delay: 10ms}]
run: [{on: a, exec: ping -c 3 -i 0.1 b}]
"""

SWEEP = ["--set", "links.0.delay=10ms,40ms", "--set", "time.tdf=1,10", "--repeat", "2"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of eight runs, done."""
    directory = tmp_path_factory.mktemp("sweep")
    (directory / "lab.yaml").write_text(LAB)
    done = dilaton("sweep", directory, *SWEEP, "-j", "2", "--out", directory / "out")
    assert done.returncode == 0
    return directory


def test_every_combination_was_run_with_its_values(swept: Path) -> None:
    table = pd.read_csv(swept / "out/sweep.csv")
    assert len(table) == 8
    assert table.state.unique().tolist() == ["finished"]
    near, far = (table[table["links.0.delay"] == delay]["ping.rtt.min"] for delay in ("10ms", "40ms"))
    assert near.between(0.020, 0.030).all()
    assert far.between(0.080, 0.090).all()
    seeds = {json.loads((swept / "out" / run / "plan.json").read_text())["seed"] for run in table.run}
    assert seeds == {1, 2}
    means = pd.read_csv(swept / "out/sweep-means.csv")
    assert (means.runs.tolist(), means["ping.rtt.min ±"].notna().tolist()) == ([2] * 4, [True] * 4)
    assert (swept / "out/sweep-means.tex").read_text().count("pm") >= 4
    assert (swept / "out/sweep-ping-rtt-avg.svg").read_text().rstrip().endswith("</svg>")


def test_a_sweep_has_a_page_which_is_written_anew_and_its_figures_in_other_formats(swept: Path) -> None:
    page = (swept / "out/report.html").read_text()
    assert "8 runs" in page and "±" in page and 'id="figure-sweep-ping-rtt-avg"' in page
    assert page.count("/report.html") == 8
    (swept / "out/report.html").unlink()
    assert dilaton("report", swept / "out").returncode == 0
    assert (swept / "out/report.html").read_text() == page
    done = dilaton("report", swept / "out", "--format", "pdf", "--out", swept / "figures")
    assert done.returncode == 0
    assert (swept / "figures/sweep-ping-rtt-avg.pdf").read_bytes().startswith(b"%PDF")
    assert dilaton("report", swept / "out", "--format", "csv").returncode == 2


def test_what_is_done_is_not_done_again(swept: Path) -> None:
    records = sorted((swept / "out").glob("*/*/run.json"))
    before = [record.stat().st_mtime_ns for record in records]
    records[0].write_text(records[0].read_text().replace('"finished"', '"running"'))
    doubted = json.loads(records[1].read_text())
    doubted["verdict"]["level"] = "invalid"
    records[1].write_text(json.dumps(doubted))
    before[1] = records[1].stat().st_mtime_ns
    again = dilaton("sweep", swept, *SWEEP, "--out", swept / "out")
    assert again.returncode == 0
    assert "8 runs in" in again.stdout and "7 done already" in again.stdout
    invalid = sum(pd.read_csv(swept / "out/sweep.csv").verdict == "invalid")
    assert f"{invalid} invalid of 8 runs; sweep.csv says which" in again.stdout
    after = [record.stat().st_mtime_ns for record in records]
    assert [old != new for old, new in zip(before, after, strict=True)] == [True, *[False] * 7]


def test_a_directory_of_another_sweep_is_not_taken(swept: Path) -> None:
    other = dilaton("sweep", swept, "--set", "seed=1,2", "--out", swept / "out")
    assert other.returncode == 2
    assert "another lab or other fields" in other.stderr
    bad = dilaton("sweep", swept, "--set", "links.7.delay=1ms", "--out", swept / "new")
    assert bad.returncode == 2
    assert "links is a list of 1" in bad.stderr
    assert not (swept / "new").exists()


def test_a_run_is_not_put_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(LAB)
    (tmp_path / "out/seed=1").mkdir(parents=True)
    (tmp_path / "out/sweep.json").write_text(json.dumps({"lab": LAB, "fields": ["seed"]}, indent=1) + "\n")
    (tmp_path / "out/seed=1/0").symlink_to(tmp_path)
    refused = dilaton("sweep", tmp_path, "--set", "seed=1", "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert refused.stderr == f"dilaton: {tmp_path}/out/seed=1/0: a symbolic link, which no run replaces; remove it\n"


def test_an_interrupted_sweep_ends_its_runs_in_good_order(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(LAB.replace("drive: work", "drive: wall").replace("-c 3 -i 0.1", "-c 1000"))
    arguments = ("sweep", tmp_path, "--set", "seed=1,2", "--out", tmp_path / "out")
    events = tmp_path / "out/seed=1/0/events.jsonl"
    with started(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sweep:
        while not (events.exists() and events.read_text()):
            assert sweep.poll() is None
            time.sleep(0.05)
        sweep.send_signal(signal.SIGINT)
        stdout, stderr = sweep.communicate()
    assert sweep.returncode == 130
    assert "1/2 seed=1 #0: interrupted" in stdout
    assert "interrupted" in stderr
    assert json.loads((tmp_path / "out/seed=1/0/run.json").read_text())["state"] == "aborted"
    assert not (tmp_path / "out/seed=2").exists()
