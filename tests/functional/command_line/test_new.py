"""`dilaton new` writes a lab that runs as it is, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT, RunLab, dilaton


def test_a_new_lab_follows_its_load_and_meets_its_expectations(tmp_path: Path, run_lab: RunLab) -> None:
    done = dilaton("new", tmp_path / "first")
    assert done.stdout.endswith(f"next: dilaton run {tmp_path / 'first'}\n")
    outcome = run_lab(tmp_path / "first")
    assert outcome.status == 0
    assert outcome.record["lab"] == "first"
    assert outcome.record["fidelity"]["adaptation"]["policy"] == "lateness"
    assert outcome.record["checks"] and all(check["passed"] for check in outcome.record["checks"])


@pytest.mark.parametrize(
    ("path", "file"), [("mine.yml", "mine.yml"), ("far/down/mine", "far/down/mine/lab.yaml"), (".", "lab.yaml")]
)
def test_a_new_lab_is_where_it_was_asked_for_and_is_good(tmp_path: Path, path: str, file: str) -> None:
    (tmp_path / "here").mkdir()
    assert dilaton("new", path, cwd=tmp_path / "here").returncode == 0
    assert (tmp_path / "here" / file).exists()
    assert dilaton("check", path, cwd=tmp_path / "here").returncode == 0


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text("mine\n")
    for path in (tmp_path, lab, lab / "below"):
        done = dilaton("new", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert str(lab) in done.stderr
    assert lab.read_text() == "mine\n"


def test_a_name_that_no_lab_can_have_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    done = dilaton("new", tmp_path / "my lab")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "a lab name has" in done.stderr


def test_the_network_of_a_file_becomes_a_lab_that_says_what_it_lacks(tmp_path: Path) -> None:
    done = dilaton("new", "mine", "--from", ROOT / "tests/unit/importers/fixtures/kathara", cwd=tmp_path)
    assert done.returncode == 0
    assert [line.split(": ")[:-1] for line in done.stdout.splitlines()[:-1]] == [
        ["left out", "lab.conf:8", "image"],
        ["left out", "pc1.startup:2", "ip route add default via 10.0.0.2", "startup"],
    ]
    assert (tmp_path / "mine/lab.yaml").read_text().startswith("# From lab.conf\nname: mine\n")
    assert dilaton("check", "mine", cwd=tmp_path).returncode == 0


def test_which_of_a_files_topologies_and_how_is_said_as_in_a_lab(tmp_path: Path) -> None:
    custom = ROOT / "tests/unit/importers/fixtures/custom.py"
    refused = dilaton("new", "mine.yaml", "--from", custom, cwd=tmp_path)
    assert (refused.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "say which by topo:, or --set topology.topo=NAME" in refused.stderr
    for setting, said in (
        ("topology.top=pair", "top: a topology from mininet has no such field; did you mean topo?"),
        ("time.tdf=3", "--set time.tdf=3: only a field of topology: says how a file is read"),
    ):
        refused = dilaton("new", "mine.yaml", "--from", custom, "--set", setting, cwd=tmp_path)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    assert dilaton("new", "mine.yaml", "--set", "topology.topo=pair", cwd=tmp_path).returncode == 2
    settings = ("--set", "topology.topo=pair", "--set", "topology.args=[2, 50]")
    done = dilaton("new", "mine.yaml", "--from", custom, *settings, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rate: 50Mbit" in (tmp_path / "mine.yaml").read_text()
