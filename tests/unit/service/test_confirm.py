"""The runs by which a run is confirmed: where they are, what they are of, and when no more of them are made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from dilaton.lab import loads
from dilaton.plan.model import Plan
from dilaton.run.execute import Options
from dilaton.run.record import record as records
from dilaton.run.record.model import Record
from dilaton.run.source import Source
from dilaton.service.conduct import Watcher
from dilaton.service.studies import confirm as confirming
from dilaton.service.studies.confirm import confirmed
from tests.unit.measure import made
from tests.unit.report.test_page import LATE

Made = list[tuple[str, float, int]]
"""Runs, in order: where, at which TDF, with which seed."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made.run_dir(tmp_path / "run", fidelity=LATE)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch, run: Path) -> Callable[[Callable[[float, int], float]], Made]:
    """Executes runs whose pings take as many milliseconds as is said, by TDF and seed; returns what was executed."""

    def prepare(rtt_ms: Callable[[float, int], float]) -> Made:
        done: Made = []

        def execute(plan: Plan, _: Source, path: Path, *__: object) -> Record:
            tdf = float(plan.time.tdf.ratio)
            done.append((str(path.relative_to(run)), tdf, plan.seed))
            made.run_dir(path, fidelity=LATE)
            text = (path / "run.json").read_text()
            for number in (1, 2, 3):
                text = text.replace(f"0.020{number}", f"{rtt_ms(tdf, plan.seed) / 1e3 + number * 1e-4:.7f}")
            (path / "run.json").write_text(text)
            return records.load(path)

        monkeypatch.setattr(confirming, "_execute", execute)
        return done

    return prepare


def source(time: str = "{drive: work, tdf: 10}") -> Source:
    text = made.LAB.replace("{drive: work, tdf: 10}", time) + "fidelity: confirm\n"
    return Source(loads(text, "lab.yaml"), text)


def test_a_run_is_confirmed_by_one_at_four_times_its_tdf(run: Path, executed: Callable[..., Made]) -> None:
    done = executed(lambda tdf, seed: 20)
    record = confirmed(source(), run, Options(), Mock(spec=Watcher))
    assert done == [("confirm/tdf-40/seed-1", 40, 1)]
    assert record.confirmation is not None and record.confirmation.outcome == "confirmed"
    assert record.confirmation.comparisons[0].reference_runs == ["confirm/tdf-40/seed-1"]
    assert records.load(run) == record


def test_on_the_wall_drive_it_is_twice(run: Path, executed: Callable[..., Made]) -> None:
    done = executed(lambda tdf, seed: 20)
    confirmed(source("{drive: wall, tdf: 10}"), run, Options(), Mock(spec=Watcher))
    assert done == [("confirm/tdf-20/seed-1", 20, 1)]


def test_a_change_takes_five_runs_of_each_and_the_search_one_more_at_a_time(
    run: Path, executed: Callable[..., Made]
) -> None:
    done = executed(lambda tdf, seed: 20 if tdf == 10 else 10 + 10 / tdf if tdf < 100 else 10)
    record = confirmed(source(), run, Options(), Mock(spec=Watcher))
    assert record.confirmation is not None and record.verdict is not None
    assert [seed for _, tdf, seed in done if tdf == 10] == [2, 3, 4, 5]
    assert [seed for _, tdf, seed in done if tdf == 40] == [1, 2, 3, 4, 5]
    assert (record.confirmation.outcome, record.confirmation.tdf_needed) == ("changed", 20)
    assert record.verdict.level in ("suspect", "invalid")
    assert any("raise tdf to 20, from which on nothing changes" in each.advice for each in record.verdict.reasons)


def test_no_more_runs_are_made_than_may_be(
    run: Path, executed: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "RUNS_MAX", 4)
    done = executed(lambda tdf, seed: 200 / tdf)
    record = confirmed(source(), run, Options(), Mock(spec=Watcher))
    assert (len(done), record.confirmation and record.confirmation.outcome) == (4, "unclear")
    assert record.confirmation and record.confirmation.gave_up == "4 runs were made"


def test_no_more_host_time_is_taken_than_may_be(
    run: Path, executed: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "HOST_FACTOR", 0)
    monkeypatch.setattr(confirming, "HOST_S_MIN", 0.0)
    done = executed(lambda tdf, seed: 200 / tdf)
    record = confirmed(source(), run, Options(), Mock(spec=Watcher))
    assert len(done) == 1
    assert record.confirmation and "of host time, and may take 0 s" in (record.confirmation.gave_up or "")


def test_a_run_that_was_steered_by_hand_is_not_compared(run: Path, executed: Callable[..., Made]) -> None:
    done = executed(lambda tdf, seed: 20)
    with (run / "events.jsonl").open("a") as events:
        events.write(json.dumps({"t_ns": 1, "kind": "link-steered", "link": "a--b"}) + "\n")
    record = confirmed(source(), run, Options(), Mock(spec=Watcher))
    assert (done, record.confirmation and record.confirmation.outcome) == ([], "unclear")
    assert record.confirmation and "a link was changed by hand" in record.confirmation.what


def test_outputs_that_cannot_be_read_are_told(run: Path, executed: Callable[..., Made]) -> None:
    executed(lambda tdf, seed: 20)
    (run / "measure/g0/tcp.csv").write_text("nonsense\n1\n")
    record = confirmed(source(), run, Options(), Mock(spec=Watcher))
    assert record.confirmation and record.confirmation.outcome == "unclear"
    assert "tcp.csv: damaged" in record.confirmation.what


def test_an_interruption_leaves_the_record(
    run: Path, executed: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Record:
        raise KeyboardInterrupt

    monkeypatch.setattr(confirming, "_execute", interrupted)
    before = (run / "run.json").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        confirmed(source(), run, Options(), Mock(spec=Watcher))
    assert (run / "run.json").read_bytes() == before
