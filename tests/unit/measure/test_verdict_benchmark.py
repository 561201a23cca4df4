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
    found = [(case["number"], case["tdf"]) for _, case, _, _, _ in cases(benchmark["Book"](path))]
    assert sorted(found) == [(0, 2), (2, 3)]


@pytest.mark.parametrize(
    ("again", "kind"), [([1.0, 1.01], "false alarm"), ([1.0, 1.3], "right by luck"), ([0.6], "right by luck")]
)
def test_a_run_that_is_right_where_others_at_its_tdf_are_wrong_is_no_false_alarm(
    benchmark: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: list[float], kind: str
) -> None:
    rates = {"truth": [1.0], "judged": [1.02, 1.02], "again-0": [0.0, *again], "phased": [0.0, 1.0, 1.0, 1.0, 1.0]}
    made: list[str] = []

    def run_lab(lab: object, drive: str, tdf: float, *, is_proven: bool = False) -> dict[str, Any]:
        level = "valid" if tdf == 40 else "suspect"
        return {"state": "finished", "tdf": tdf, "guests": [{"busy": 0.1}], "verdict": {"level": level, "reasons": []}}

    measure, book = benchmark["measure"], benchmark["Book"](tmp_path / "records.jsonl")
    add = type(book).add

    def add_with_results(book: Any, record: dict[str, Any]) -> None:
        role, number = record["role"], record["number"]
        made.append(f"{role} {number}")
        record["results"] = {"f0.throughput": rates[role.replace("again-1", "again-0")][number]}
        add(book, record)

    monkeypatch.setattr(type(book), "add", add_with_results)
    monkeypatch.setitem(measure.__globals__, "run_lab", run_lab)
    monkeypatch.setitem(measure.__globals__, "judged_again", lambda lab, run: run["verdict"])
    measure(book, 1, is_proven=False)
    assert [each for each in made if each.startswith("again-0")] == [f"again-0 {n + 1}" for n in range(len(again))]
    assert ("phased 4" in made) == (kind == "right by luck"), "the truth is asked whether that is chance"
    assert {found for *_, found in benchmark["cases"](book)} == {kind}


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
