"""The TDF of a real guest follows its load, and what is out of bounds has the consequences that the lab asks for."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import dilaton
from dilaton.run.control.answers import CLOCK_RELEASE, CLOCK_SHOW, CLOCK_TDF
from dilaton.run.control.requests import Client
from tests.conftest import Outcome, RunLab, started
from tests.overloaded import chain


def trace(outcome: Outcome) -> list[float]:
    return [change["tdf"] for change in outcome.record["fidelity"]["tdf_trace"]]


TDF = r"TDF (?P<tdf>[\d.]+)"
WHY = {
    "lateness": r"(1 % of timers later than [\d.]+ [num]?s|programs waited for the CPU for more than [\d.]+ [num]?s"
    r"|[\d.]+ % of what (happened may have waited for the CPU for|programs were woken up for took them) more than "
    r"[\d.]+ [num]?s, (the|2 times the) patience of .+"
    r"|busy \d+%(, and less was done than before)?)(: less was needed for 10 epochs)?"
    r"|programs take all CPU that they are given",
    "pads15": r"busy \d+%, (above 90|below 70)%",
}
"""What changes are explained by."""

TOO_LOW = 0.5
"""A TDF at which the chain is out of bounds for many epochs in a row, on a host eight times as fast as ours, too."""

ENOUGH = 300
"""A TDF at which it is not, on a host that is so much slower: at 30 ours had a second violation beside much other work."""

NOT_ENOUGH = r"out of bounds from [\d.]+ [num]?s to .+; it needs more than tdf [\d.]+"
"""What is told where the highest TDF is not enough for a slow host."""


@pytest.mark.parametrize("policy", ["lateness", "pads15"])
def test_the_tdf_rises_with_the_load_and_says_why(run_lab: RunLab, policy: str) -> None:
    outcome = run_lab(chain("60M", f"{{tdf: auto, auto: {{start: 1, max: 50, policy: {policy}, epoch: 20ms}}}}"))
    assert outcome.status == 0
    fidelity = outcome.record["fidelity"]
    # How often it rises in this time hangs on how often a busy host lets the run look.
    assert trace(outcome)[0] == 1 and max(trace(outcome)) > 1.5
    for change in fidelity["tdf_trace"][1:]:
        why = re.fullmatch(f"{TDF}: ({WHY[policy]})|{NOT_ENOUGH}", change["reason"])
        assert why, change["reason"]
        assert why["tdf"] is None or float(why["tdf"]) == pytest.approx(change["tdf"], rel=1e-4)
    rows = (outcome.path / "epochs.csv").read_text().splitlines()[1:]
    assert len(rows) == fidelity["adaptation"]["epochs"] > 1
    assert 0 < fidelity["adaptation"]["out_of_bounds_share"] <= 1
    assert 1 < fidelity["adaptation"]["tdf_mean"] <= 50


def test_a_violation_ends_a_run_that_may_have_none(run_lab: RunLab) -> None:
    outcome = run_lab(chain("30M", f"{{tdf: {TOO_LOW}, on_violation: fail}}"))
    assert outcome.status == 1
    assert outcome.record["state"] == "failed"
    assert "out of bounds from" in outcome.record["reason"]
    assert outcome.record["reason"].endswith(f"; it needs more than tdf {TOO_LOW}")


def test_a_violation_holds_a_run_until_somebody_lets_it_go_on(tmp_path: Path) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text(chain("60M", f"{{tdf: auto, auto: {{min: 0.4, max: {TOO_LOW}, epoch: 20ms}}, on_violation: hold}}"))
    with started("run", lab, "--out", out, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        line = next(line for line in process.stderr if "out of bounds" in line)
        assert "to go on: dilaton clock" in line
        with Client(out) as client:
            assert client.request(CLOCK_SHOW)["held"]
            # A TDF that somebody gives is kept, and the run ends with it.
            client.request(CLOCK_TDF, tdf=str(ENOUGH))
            client.request(CLOCK_RELEASE)
        process.stderr.read()
        assert process.wait() == 0
    outcome = Outcome(process.returncode, "", out)
    assert outcome.record["state"] == "finished"
    assert trace(outcome)[-1] == ENOUGH


def test_a_run_begins_again_with_the_tdf_that_it_needed_until_it_is_valid(run_lab: RunLab) -> None:
    outcome = run_lab(chain("10M", f"{{tdf: {TOO_LOW}, on_violation: retry}}"))
    record = outcome.record
    assert outcome.status == 0
    assert (record["state"], record["verdict"]["level"]) == ("finished", "valid")
    assert record["attempts"] > 1 and record["time"]["tdf"] > 2 * TOO_LOW
    first = outcome.path / "attempt-1"
    assert all((first / name).exists() for name in ("run.json", "plan.json", "events.jsonl", "nodes"))
    assert "begun again with TDF" in outcome.terminal


def test_a_load_beyond_the_highest_tdf_is_told_and_the_verdict_says_what_would_be_enough(run_lab: RunLab) -> None:
    outcome = run_lab(chain("30M", f"{{tdf: auto, auto: {{min: 0.4, max: {TOO_LOW}, epoch: 20ms}}}}"))
    terminal = " ".join(outcome.terminal.split())
    assert f"; it needs more than tdf {TOO_LOW}" in terminal
    advised = max(outcome.record["verdict"]["reasons"], key=lambda reason: reason["tdf"] or 0)
    assert outcome.record["fidelity"]["adaptation"]["tdf_needed"] == advised["tdf"] > TOO_LOW
    assert f"TDF {advised['tdf']:g} would be enough" in terminal
    assert re.search(rf"tdf(:| below) {advised['tdf']:g} ", advised["advice"])


def test_programs_that_spin_do_not_keep_the_tdf_up(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: spin\nnodes: {a: }\ntime: {tdf: auto, auto: {epoch: 20ms}}\n"
        "run: [{on: a, name: spin, exec: [sh, -c, 'while :; do :; done'], stop: 3s}]\n"
    )
    changes = outcome.record["fidelity"]["tdf_trace"]
    given_up = [change["tdf"] for change in changes if "programs take all CPU that they are given" in change["reason"]]
    assert given_up and set(given_up) == {1}
    assert outcome.record["fidelity"]["adaptation"]["tdf_mean"] < 2


def test_nodes_that_begin_to_use_their_shares_get_them_before_they_are_starved(run_lab: RunLab) -> None:
    """Eight nodes with half a core each, one of which works at first, and then all: four host seconds in a virtual one."""
    names = [f"n{number}" for number in range(8)]
    compute = ["python3", "-I", "-S", "-c", "for _ in range(4000000): pass"]
    lab = {
        "name": "shares",
        "time": {"tdf": "auto", "auto": {"start": 1, "max": 50, "epoch": "20ms"}},
        "nodes": {name: {"cpu": 0.5} for name in names},
        "run": [{"on": name, "name": name, "exec": compute, "start": "300ms"} for name in names[1:]],
    }
    lab["run"] += [{"on": "n0", "name": "n0", "exec": compute}]
    outcome = run_lab(json.dumps(lab))
    assert outcome.status == 0
    assert max(trace(outcome)) > 4
    epochs = dilaton.load(outcome.path).epochs
    enough = epochs[epochs.tdf > 4.5]
    # At 1 they would lose three quarters of theirs. Where the host is late for a moment, they do lose a little.
    assert len(enough) and enough.share_lost.mean() < 0.02
    assert epochs[epochs.begin_s < 0.25].tdf.max() < 4, "the shares that are used count, not all that there are"
