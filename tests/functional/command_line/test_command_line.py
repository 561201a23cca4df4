"""The verbs as users meet them: what they print, where, and their exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from tests.conftest import ROOT, Outcome, RunLab, dilaton

EXAMPLES = sorted((ROOT / "examples").glob("*/lab.yaml"))

GOOD = """
name: good
time: {tdf: 20}
seed: 7
nodes: {a: {}, b: {}}
links: [{endpoints: a -- b, rate: 10Mbit, delay: 5ms}]
run:
  - {on: a, name: ping, exec: ping -c 3 -i 0.01 b}
  - {on: b, name: server, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: bulk, exec: iperf3 -c b -t 1 -J, after: [ping, server]}
expect:
  - ping.loss == 0%
  - ping.rtt.avg within 10% of 10ms
  - bulk.throughput > 8Mbit
"""

BAD = """name: bad
nodes: {a: {}, b: {}}
links:
  - {endpoints: a -- b, dealy: 5ms}
run:
  - {on: c, exec: "true"}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """A run that goes well."""
    return run_lab_once(GOOD)


@pytest.fixture
def bad_lab(tmp_path: Path) -> Path:
    """A lab with two mistakes."""
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    return path


def test_a_good_run_is_exit_status_0_and_shows_what_was_asked_and_measured(outcome: Outcome) -> None:
    assert outcome.status == 0
    for text in (
        "good: finished",
        "10 Mbit/s",
        "5 ms one way",
        "TDF 20",
        "passed",
        "ping.loss == 0%",
        str(outcome.path / "report.html"),
    ):
        assert text in outcome.terminal


def test_the_run_directory_has_everything_in_its_place(outcome: Outcome) -> None:
    names = {str(path.relative_to(outcome.path)) for path in outcome.path.rglob("*") if path.is_file()}
    outputs = {f"nodes/{name}.{stream}" for name in ("a/ping", "b/server", "a/bulk") for stream in ("stdout", "stderr")}
    assert (
        names
        == {
            "lab.yaml",
            "plan.json",
            "run.json",
            "events.jsonl",
            "clock.csv",
            "verdicts.jsonl",
            "report.html",
            "guest/guest0.log",
        }
        | outputs
    )
    assert (outcome.path / "lab.yaml").read_text() == GOOD


def test_the_record_follows_its_published_schema(outcome: Outcome) -> None:
    schema = json.loads((ROOT / "docs" / "run.schema.json").read_text())
    jsonschema.validate(outcome.record, schema)
    assert (outcome.record["lab"], outcome.record["seed"], outcome.record["time"]["tdf"]) == ("good", 7, 20)
    assert [check["passed"] for check in outcome.record["checks"]] == [True, True, True]


def test_plan_prints_the_plan_that_the_run_carried_out(outcome: Outcome) -> None:
    done = dilaton("plan", outcome.path / "lab.yaml")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.rstrip("\n") == (outcome.path / "plan.json").read_text().rstrip("\n")


def test_the_tdf_of_the_command_line_wins(outcome: Outcome) -> None:
    done = dilaton("plan", outcome.path / "lab.yaml", "--tdf", "7/3")
    assert json.loads(done.stdout)["time"]["tdf"] == {"numerator": 7, "denominator": 3}
    refused = dilaton("plan", outcome.path / "lab.yaml", "--tdf", "-1")
    assert refused.returncode == 2
    assert refused.stderr.startswith("dilaton: --tdf: ")


@pytest.mark.parametrize("verb", ["run", "check", "plan"])
def test_a_bad_lab_is_exit_status_2_with_one_line_a_mistake(bad_lab: Path, verb: str) -> None:
    done = dilaton(verb, bad_lab, cwd=bad_lab.parent)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"{bad_lab}:4:25: links[0].dealy: unknown field; did you mean delay?",
        f"{bad_lab}:6:10: run[0].on: unknown node c; known: a, b",
    ]
    assert not (bad_lab.parent / "runs").exists()


@pytest.mark.parametrize("verb", ["run", "check", "plan"])
def test_a_lab_that_is_not_there_is_exit_status_2(tmp_path: Path, verb: str) -> None:
    done = dilaton(verb, tmp_path / "none.yaml")
    assert done.returncode == 2
    assert str(tmp_path / "none.yaml") in done.stderr
    assert "Traceback" not in done.stderr


def test_every_example_is_good_as_a_file_and_as_a_directory(built_examples: None) -> None:
    done = dilaton("check", *EXAMPLES, *(lab.parent for lab in EXAMPLES))
    assert done.returncode == 0
    # What a run will cost may follow.
    found = [line.rpartition(": ")[2].partition(";")[0] for line in done.stdout.splitlines()]
    assert found == ["good", "good"] * len(EXAMPLES)


def test_check_tells_of_every_lab(bad_lab: Path) -> None:
    done = dilaton("check", EXAMPLES[0], bad_lab)
    assert done.returncode == 2
    assert done.stdout.endswith(": good\n")
    assert done.stderr.count("\n") == 2


def test_help_names_every_verb_and_no_arguments_are_a_call_for_help() -> None:
    done = dilaton("--help")
    assert done.returncode == 0
    for verb in ("run", "demo", "check", "plan", "doctor"):
        assert re.search(rf"\b{verb}\b", done.stdout)
        assert dilaton(verb, "--help").returncode == 0
    assert "Usage" in dilaton().stdout


def test_the_version_is_that_of_the_package() -> None:
    done = dilaton("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "dilaton")


def test_check_takes_the_same_changes_as_run(outcome: Outcome) -> None:
    lab = outcome.path / "lab.yaml"
    assert dilaton("check", lab, "--set", "time.tdf=3", "--drive", "wall").returncode == 0
    refused = dilaton("check", lab, "--set", "time.tfd=3")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "time.tfd: unknown field; did you mean tdf?" in refused.stderr


def test_doctor_shows_what_was_looked_at() -> None:
    done = dilaton("doctor")
    assert done.returncode == 0
    for name in ("guest kernel", "guest modules", "bubblewrap", "jail", "tracing", "memory", "cores"):
        assert name in done.stdout


def test_a_lab_in_ghz_is_good_once_the_machine_is_calibrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "lab.yaml"
    path.write_text("name: ghz\nnodes: {a: {cpu: 2GHz Xeon E5}}\n")
    refused = dilaton("check", path)
    assert refused.returncode == 2 and "run dilaton doctor --calibrate" in refused.stderr
    said = dilaton("doctor", "--calibrate")
    assert said.returncode == 0
    assert re.fullmatch(
        rf"A core of this machine has [\d.]+ GHz-equivalents: {tmp_path}/dilaton/core.json\n", said.stdout
    )
    assert dilaton("check", path).returncode == 0
