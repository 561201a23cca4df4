"""NEPTUNE's experiments, in small versions that take seconds and show the same."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import ROOT, Outcome, RunLab, dilaton

LABS = ROOT / "papers" / "neptune-links"
AT_ONCE = ROOT / "papers" / "neptune-multiplexing" / "lab.yaml"
FRAME_BYTES = 1042


def received_per_s(outcome: Outcome) -> float:
    """Packets a second that came in the middle of the stream."""
    told = json.loads((outcome.path / "nodes/receiver/server.stdout").read_text())
    middle = [each["sum"] for each in told["intervals"][2:5]]
    return sum(each["packets"] - each["lost_packets"] for each in middle) / sum(each["seconds"] for each in middle)


def test_a_token_bucket_lets_its_rate_through(run_lab: RunLab) -> None:
    """Figure 9: a quarter more than that is sent."""
    stream = "iperf3 -u -c receiver -l 1000 -b 25M -t 1 --pacing-timer 100 -i 0.1 -J"
    outcome = run_lab(LABS / "shaped.yaml", "--set", f"run.1.exec={stream}")
    assert outcome.status == 0
    assert received_per_s(outcome) * FRAME_BYTES * 8 == pytest.approx(20e6, rel=0.004)


@pytest.mark.alone  # two speeds of the host's CPU, one after the other, which other work in between would make differ
def test_a_machine_four_times_as_fast_sends_about_four_times_as_much(run_lab: RunLab) -> None:
    """Figure 4: more is asked for than either can send."""
    sent = []
    for tdf, asked in (("1", "120M"), ("4", "480M")):
        stream = f"iperf3 -u -c receiver -l 1000 -b {asked} -t 1 --pacing-timer 100 -i 0.1 -J"
        sets = ["--set", f"guests.sender.tdf={tdf}", "--set", f"run.1.exec={stream}"]
        outcome = run_lab(LABS / "machine.yaml", *sets)
        assert outcome.status == 0
        sent.append(received_per_s(outcome))
    assert 3 < sent[1] / sent[0] < 5


def test_experiments_at_once_with_equal_addresses_on_the_same_machines_do_not_see_each_other(tmp_path: Path) -> None:
    """Section 3.3, on the event drive, so that to see nothing of the others is to measure the same."""
    tables = []
    for at_once, machines in ((1, 1), (3, 2)):
        out = tmp_path / str(at_once)
        short = ("--set", "time.drive=event", "--set", "run.1.exec=iperf3 -c receiver -t 1 -J")
        over = ("--machines", str(machines), "-j", str(at_once))
        done = dilaton("sweep", AT_ONCE, *short, "--repeat", "3", *over, "--out", out)
        assert done.returncode == 0, done.stderr
        table = pd.read_csv(out / "sweep.csv")
        tables.append(table[["repeat", "virtual_s", *(name for name in table if name.startswith(("bulk.", "ping.")))]])
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["bulk.throughput"].between(17e6, 20e6).all()
