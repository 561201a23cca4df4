"""The runs by which a run is confirmed: where they are, what they are of, and when no more of them are made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dilaton.lab import loads
from dilaton.plan.model import Plan
from dilaton.run.execute import Options
from dilaton.run.files.directory import RunDir
from dilaton.run.record import record as records
from dilaton.run.record.events import LinkSteered
from dilaton.run.record.model import Record
from dilaton.run.source import Source
from dilaton.service.studies import confirm as confirming
from dilaton.service.studies.confirm import Execute, confirmed
from tests.unit.measure import made
from tests.unit.report.test_page import LATE


class Executions:
    """Executes runs whose pings take as many milliseconds as is said, by TDF and seed."""

    def __init__(self, run: Path, rtt_ms: Callable[[float, int], float]) -> None:
        self.run = run
        self.rtt_ms = rtt_ms
        self.done: list[tuple[str, float, int]] = []
        """What was executed, in order: where, at which TDF, with which seed."""

    async def __call__(self, plan: Plan, source: Source, run_dir: RunDir, options: Options) -> Record:
        path, tdf = run_dir.path, float(plan.time.tdf.ratio)
        self.done.append((str(path.relative_to(self.run)), tdf, plan.seed))
        made.run_dir(path, fidelity=LATE)
        text = (path / "run.json").read_text()
        for number in (1, 2, 3):
            text = text.replace(f"0.020{number}", f"{self.rtt_ms(tdf, plan.seed) / 1e3 + number * 1e-4:.7f}")
        (path / "run.json").write_text(text)
        return records.load(path)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made.run_dir(tmp_path / "run", fidelity=LATE)


def confirm(run: Path, execute: Execute, *, time: str = "{drive: work, tdf: 10}") -> Record:
    return confirmed(source(time), run, Options(), execute, lambda note: None)


def source(time: str) -> Source:
    text = made.LAB.replace("{drive: work, tdf: 10}", time) + "fidelity: confirm\n"
    return Source(loads(text, "lab.yaml"), text)


def test_a_run_is_confirmed_by_one_at_four_times_its_tdf(run: Path) -> None:
    executions = Executions(run, lambda tdf, seed: 20)
    record = confirm(run, executions)
    assert executions.done == [("confirm/tdf-40/seed-1", 40, 1)]
    assert record.confirmation is not None and record.confirmation.outcome == "confirmed"
    assert record.confirmation.comparisons[0].reference_runs == ["confirm/tdf-40/seed-1"]
    assert records.load(run) == record


def test_on_the_wall_drive_it_is_twice(run: Path) -> None:
    executions = Executions(run, lambda tdf, seed: 20)
    confirm(run, executions, time="{drive: wall, tdf: 10}")
    assert executions.done == [("confirm/tdf-20/seed-1", 20, 1)]


def test_a_change_takes_five_runs_of_each_and_the_search_one_more_at_a_time(run: Path) -> None:
    executions = Executions(run, lambda tdf, seed: 20 if tdf == 10 else 10 + 10 / tdf if tdf < 100 else 10)
    record = confirm(run, executions)
    assert record.confirmation is not None and record.verdict is not None
    assert [seed for _, tdf, seed in executions.done if tdf == 10] == [2, 3, 4, 5]
    assert [seed for _, tdf, seed in executions.done if tdf == 40] == [1, 2, 3, 4, 5]
    assert (record.confirmation.outcome, record.confirmation.tdf_needed) == ("changed", 20)
    assert record.verdict.level in ("suspect", "invalid")
    assert any("raise tdf to 20, from which on nothing changes" in each.advice for each in record.verdict.reasons)


def test_no_more_runs_are_made_than_may_be(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirming, "RUNS_MAX", 4)
    executions = Executions(run, lambda tdf, seed: 200 / tdf)
    record = confirm(run, executions)
    assert (len(executions.done), record.confirmation and record.confirmation.outcome) == (4, "unclear")
    assert record.confirmation and record.confirmation.gave_up == "4 runs were made"


def test_no_more_host_time_is_taken_than_may_be(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirming, "HOST_FACTOR", 0)
    monkeypatch.setattr(confirming, "HOST_S_MIN", 0.0)
    executions = Executions(run, lambda tdf, seed: 200 / tdf)
    record = confirm(run, executions)
    assert len(executions.done) == 1
    assert record.confirmation and "of host time, and may take 0 s" in (record.confirmation.gave_up or "")


def test_a_run_that_was_steered_by_hand_is_not_compared(run: Path) -> None:
    executions = Executions(run, lambda tdf, seed: 20)
    with (run / "events.jsonl").open("a") as events:
        steered = LinkSteered(t_ns=1, link="a--b", asked="delay=1ms", at_ns=1, file="x", host_s=0.1)
        events.write(json.dumps(steered.record()) + "\n")
    record = confirm(run, executions)
    assert (executions.done, record.confirmation and record.confirmation.outcome) == ([], "unclear")
    assert record.confirmation and "a link was changed by hand" in record.confirmation.what


def test_outputs_that_cannot_be_read_are_told(run: Path) -> None:
    executions = Executions(run, lambda tdf, seed: 20)
    (run / "measure/g0/tcp.csv").write_text("nonsense\n1\n")
    record = confirm(run, executions)
    assert record.confirmation and record.confirmation.outcome == "unclear"
    assert "tcp.csv: damaged" in record.confirmation.what


def test_an_interruption_leaves_the_record(run: Path) -> None:
    async def interrupted(*_: object) -> Record:
        raise KeyboardInterrupt

    before = (run / "run.json").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        confirm(run, interrupted)
    assert (run / "run.json").read_bytes() == before


def test_what_an_interrupted_run_left_is_removed(run: Path) -> None:
    executions = Executions(run, lambda tdf, seed: 20)

    async def aborted(plan: Plan, source: Source, run_dir: RunDir, options: Options) -> Record:
        record = await executions(plan, source, run_dir, options)
        return record.model_copy(update={"state": "aborted"})

    with pytest.raises(KeyboardInterrupt):
        confirm(run, aborted)
    assert executions.done and not (run / "confirm").exists()
