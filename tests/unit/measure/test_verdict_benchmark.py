"""`benches/verdicts.py`: at which loads random labs are judged, and that no verdict counts twice."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[3] / "benches" / "verdicts.py"


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    """What the module has."""
    return runpy.run_path(str(BENCHMARK), run_name="verdicts")


@pytest.mark.parametrize("most", [0.05, 0.1, 0.5, 3.9, 40.0])
def test_no_load_is_more_than_the_least_tdf_of_a_lab_gives(benchmark: dict[str, Any], most: float) -> None:
    for seed in range(50):
        loads = benchmark["loads_of"](seed, most)
        assert max(loads) <= most and len(set(loads)) == (2 if most > 0.1 else 1), seed
        assert most < 4 or loads == benchmark["loads_of"](seed), "a lab without shares is judged as ever"


def test_two_runs_at_one_tdf_are_one_verdict(
    benchmark: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = {"seed": 1, "number": 0, "tdf": 40, "state": "finished", "verdict": {"level": "valid"}, "virtual_s": 1.0}
    run |= {"guests": [], "results": {"f0.throughput": 1e6}, "processes": [], "host_s": 1.0}
    judged = [run | {"role": "judged", "number": number, "tdf": tdf} for number, tdf in enumerate((2, 2, 3))]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (run | {"role": "truth"}, *judged)))
    cases = benchmark["cases"]
    monkeypatch.setitem(cases.__globals__, "judged_again", lambda lab, run: run["verdict"])
    found = [(case["number"], case["tdf"]) for _, case, _, _ in cases(benchmark["Book"](path))]
    assert sorted(found) == [(0, 2), (2, 3)]


def test_what_leaves_a_doubt_is_proven_only_where_that_is_asked_for(
    benchmark: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proven: list[tuple[str, bool]] = []
    run = {"state": "finished", "guests": [{"busy": 0.1}], "results": {}}

    def run_lab(lab: object, drive: str, tdf: float, *, is_proven: bool = False) -> dict[str, Any]:
        proven.append((drive, is_proven))
        return run | {"tdf": tdf}

    measure = benchmark["measure"]
    monkeypatch.setitem(measure.__globals__, "run_lab", run_lab)
    for is_proven in (False, True):
        proven.clear()
        measure(benchmark["Book"](tmp_path / f"{is_proven}.jsonl"), 1, is_proven=is_proven)
        assert proven[0][1] is False, "the truth needs no proof"
        assert {each for _, each in proven[1:]} == {is_proven}


def test_runs_of_the_truth_that_show_chance_begin_each_program_at_another_instant(benchmark: dict[str, Any]) -> None:
    lab = benchmark["make_lab"](20188)
    run = {process["name"]: process for process in benchmark["phased"](lab, 1)["run"]}
    flows = [process for process in lab["run"] if "after" in process]
    assert [flow["name"] for flow in flows] == ["f0", "f1"]
    later_us = {}
    for flow in flows:
        waits = run[run[flow["name"]]["after"]]
        assert (waits["on"], waits["after"]) == (flow["on"], flow["after"]), "what it waits for is ready first"
        later_us[flow["name"]] = round(1e6 * float(waits["exec"].removeprefix("sleep ")))
        assert run[flow["name"]]["start"] == f"{500_000 + later_us[flow['name']]}us"
    assert later_us["f0"] != later_us["f1"]
