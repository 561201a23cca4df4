"""Runs are found by asking those that go on, and by what those that are over have left."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.cli.steering.control import list_runs
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Request, Result
from dilaton.run.record import record as records
from dilaton.service.catalogue import find, going, left
from tests.unit.measure import made
from tests.unit.run.control.test_requests import serving, shown


def test_a_run_is_found_by_its_directory_and_by_its_lab(tmp_path: Path) -> None:
    async def show(_: Request) -> Result:
        return shown("a-lab-of-this-test", tmp_path)

    with serving(tmp_path, {"show": show}):
        assert shown("a-lab-of-this-test", tmp_path) in going().shown
        assert find("a-lab-of-this-test") == tmp_path
        assert find(str(tmp_path)) == tmp_path
        with pytest.raises(ControlError, match="no-such-lab: not a run directory, nor a lab that runs, nor the"):
            find("no-such-lab")


def test_a_lab_that_runs_is_found_by_its_file_and_directory_and_a_directory_of_its_name_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_dir, lab = tmp_path / "run", tmp_path / "directory" / "lab.yaml"
    for directory in (run_dir, lab.parent, tmp_path / "named-in-this-test"):
        directory.mkdir()
    lab.touch()

    async def show(_: Request) -> Result:
        return shown("named-in-this-test", run_dir, lab)

    with serving(run_dir, {"show": show}):
        for run in ("directory", "directory/lab.yaml", str(lab), "named-in-this-test", "run"):
            assert find(run).resolve() == run_dir, run
        with pytest.raises(ControlError, match=r"named-in-this-test/lab\.yaml: not a run directory"):
            find("named-in-this-test/lab.yaml")


def test_a_run_that_has_ended_is_found_by_its_directory_alone(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    assert find(str(tmp_path)) == tmp_path


def test_a_lab_that_does_not_run_is_told_how_to_start_it_and_where_its_last_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wan").mkdir()
    for run in ("wan-20260101T000000Z-2", "wan-20260101T000000Z-10", "wan-far-20270101T000000Z-1"):
        (tmp_path / "runs" / run).mkdir(parents=True)
    with pytest.raises(ControlError, match=r"; the last run of it is in runs/wan-20260101T000000Z-10$"):
        find("wan")
    (tmp_path / "wan" / "lab.yaml").touch()
    with pytest.raises(ControlError, match=r"-10; dilaton up wan/lab\.yaml starts it$"):
        find("wan/lab.yaml")


def test_two_runs_of_one_lab_must_be_told_apart(tmp_path: Path) -> None:
    async def show(_: Request) -> Result:
        return shown("twins-of-this-test", tmp_path)

    other = tmp_path / "other"
    with (
        serving(tmp_path, {"show": show}),
        serving(other, {"show": show}),
        pytest.raises(ControlError, match="several runs"),
    ):
        find("twins-of-this-test")


def test_runs_that_are_over_are_told_from_those_that_were_killed_and_those_that_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("done", "killed", "going"):
        run_dir = made.run_dir(Path("runs") / name)
        if name != "done":
            records.write(run_dir, records.load(run_dir).model_copy(update={"state": "running"}))
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("nonsense")
    with serving(tmp_path / "runs" / "going"):
        found = [(each.run_dir.name, each.record.state, each.was_killed) for each in left()]
        assert list_runs(also_left=True) == 0
    assert found == [("done", "finished", False), ("killed", "running", True)]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[1:4] for line in lines if line and line[-1] == "runs/killed"] == [["killed", "while", "running"]]
    assert [line[1] for line in lines if line and line[-1] == "runs/done"] == ["finished"]
