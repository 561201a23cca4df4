"""The repeats of a sweep are compared as sets: by whole runs, so that chance does not make a difference."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from dilaton.cli.errors import BadInputError
from dilaton.cli.results.compare import compare_runs
from tests.unit.measure import made

REPEATS = 4


def sweep_dir(path: Path, longer_ms: float = 0.0, repeats: int = REPEATS) -> Path:
    """A sweep of TDF 1 and 10, with two queues each; at TDF 10 pings take `longer_ms` longer."""
    path.mkdir()
    fields = ["time.drive", "time.tdf", "links.0.queue"]
    (path / "sweep.json").write_text(json.dumps({"lab": made.LAB, "fields": fields}))
    rows = []
    for tdf, queue, repeat in product(("1", "10"), ("fifo", "fq"), range(repeats)):
        run = made.run_dir(path / f"{tdf}-{queue}" / str(repeat))
        text = (run / "run.json").read_text()
        record = json.loads(text)
        for process in record["processes"]:
            if samples := (process["result"] or {}).get("samples"):
                # Of one run all are long or short together, as where a queue is full.
                more_s = repeat % 3 * 2e-3 + (longer_ms / 1e3 if tdf == "10" else 0)
                process["result"]["samples"] = [sample + more_s for sample in samples]
        (run / "run.json").write_text(json.dumps(record))
        rows.append(["work", tdf, queue, repeat, str(run.relative_to(path)), "finished"])
    pd.DataFrame(rows, columns=[*fields, "repeat", "run", "state"]).to_csv(path / "sweep.csv", index=False)
    return path


def test_sets_that_chance_explains_are_indistinguishable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = sweep_dir(tmp_path / "sweep", longer_ms=1.5)
    assert compare_runs([sweep], "5%", tmp_path / "both.svg", "time.tdf") == 0
    out = capsys.readouterr().out
    assert "compared with time.tdf=1" in out
    assert "by chance" in out
    assert "time.tdf=10, all metrics together: p = " in out
    assert out.rstrip().endswith("indistinguishable")
    assert "<svg" in (tmp_path / "both.svg").read_text()


def test_sets_that_differ_are_told_with_what_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = sweep_dir(tmp_path / "sweep", longer_ms=10)
    assert compare_runs([sweep], "5%", None, "time.tdf") == 1
    said = "different in links.0.queue=fifo: ping rtt, links.0.queue=fq: ping rtt"
    assert capsys.readouterr().out.rstrip().endswith(said)
    assert compare_runs([sweep], "60%", None, "time.tdf") == 0
    assert compare_runs([sweep], "5%", None, "links.0.queue") == 0


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (None, r"sweeps time.drive, time.tdf, links.0.queue; say by --by"),
        ("seed", r"--by seed: not a field of this sweep, which has time.drive, time.tdf, links.0.queue"),
        ("time.drive", r"time.drive has one value; a comparison takes two"),
    ],
)
def test_a_field_that_is_not_there_is_told(tmp_path: Path, by: str | None, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        compare_runs([sweep_dir(tmp_path / "sweep", repeats=1)], "5%", None, by)


def test_few_runs_tell_how_far_apart_they_are_and_not_whether_by_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = sweep_dir(tmp_path / "sweep", longer_ms=10, repeats=3)
    assert compare_runs([sweep], "5%", None, "time.tdf") == 2
    out = capsys.readouterr().out
    assert out.count("not told") == 2, "the pings of both queues"
    assert "all metrics together" not in out
    said = out.rstrip().splitlines()[-1]
    assert said.startswith("cannot tell: as far apart as so few runs can be, as by chance in 10 of 100 cases")
    assert said.endswith("in links.0.queue=fifo: ping rtt, links.0.queue=fq: ping rtt; --repeat 4 tells")


def test_few_runs_that_are_no_further_apart_than_others_are_indistinguishable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = sweep_dir(tmp_path / "sweep", longer_ms=0, repeats=3)
    assert compare_runs([sweep], "5%", None, "time.tdf") == 0
    assert capsys.readouterr().out.rstrip().endswith("indistinguishable")


def test_a_value_without_a_run_is_told(tmp_path: Path) -> None:
    sweep = sweep_dir(tmp_path / "sweep", repeats=1)
    table = pd.read_csv(sweep / "sweep.csv")
    table.drop(index=table.index[-1]).to_csv(sweep / "sweep.csv", index=False)
    with pytest.raises(BadInputError, match=r"not every value of time\.tdf has a run with links\.0\.queue=fq"):
        compare_runs([sweep], "5%", None, "time.tdf")


def test_a_sweep_that_has_not_ended_or_is_damaged_is_told(tmp_path: Path) -> None:
    sweep = sweep_dir(tmp_path / "sweep", repeats=1)
    with pytest.raises(BadInputError, match="--by: tells the runs of a sweep apart"):
        compare_runs([sweep / "1-fq/0", sweep / "10-fq/0"], "5%", None, "time.tdf")
    (sweep / "sweep.csv").write_text("nothing,of\nthe,kind\n")
    with pytest.raises(BadInputError, match="not a sweep, or a damaged one"):
        compare_runs([sweep], "5%", None, "time.tdf")
    (sweep / "sweep.csv").unlink()
    with pytest.raises(BadInputError, match=r"has no sweep.csv; a sweep writes it at its end"):
        compare_runs([sweep], "5%", None, "time.tdf")
