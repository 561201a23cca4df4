"""What a sweep says of its runs."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from dilaton.run.record import record as records
from dilaton.run.record.record import SoFar
from dilaton.service.errors import RequestError
from dilaton.service.request import LabText
from dilaton.service.studies import sweep as sweeping
from dilaton.service.studies.sweep import PointEnded, Sweep, SweepRequest
from dilaton.service.tidings import Ended
from tests.unit.measure.made import plan, so_far

LAB = "name: x\nnodes: {a: }\nrun: [{on: a, exec: 'true'}]\nexpect: [true.exit == 0]\n"


@pytest.mark.parametrize(
    ("progress", "why"),
    [
        (so_far(state="failed", reason="process true on a was killed\nby signal 9"), "by signal 9"),
        (
            so_far(events=[{"t_ns": 0, "kind": "skipped", "process": "true", "reason": "late"}]),
            "failed: true.exit",
        ),
    ],
)
def test_why_a_run_did_not_go_well_is_told_in_a_line(progress: SoFar, why: str, tmp_path: Path) -> None:
    record = records.make(plan(LAB), progress, tmp_path)
    records.write(tmp_path, record)
    ended = Ended(run_dir=tmp_path, state=record.state, reason=record.reason, is_well=False)
    assert sweeping._why(tmp_path, ended).startswith(why)


def swept(tmp_path: Path, *, give_up: bool = False) -> list[PointEnded]:
    """What a sweep of three runs says, two at a time; of one that is given up, after the first."""
    request = SweepRequest(
        lab=LabText(text=LAB, name="lab"), fields=("seed=1,2,3",), jobs=1 if give_up else 2, out=tmp_path / "out"
    )
    sweep, stop = Sweep(request), asyncio.Event()

    async def run() -> list[PointEnded]:
        said = []
        runs = sweep.run(stop)
        async for ended in runs:
            said.append(ended)
            if give_up:
                break
        await runs.aclose()  # type: ignore[attr-defined]
        assert not stop.is_set(), "that is for who asks for an end"
        return said

    return asyncio.run(run())


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each run say why it cannot be, and end."""
    program = "import sys; sys.exit('no room')"
    monkeypatch.setattr("dilaton.service.launch.RUNNER", (sys.executable, "-c", program))
    monkeypatch.setattr(sweeping, "require", lambda jailed: None)


@pytest.mark.usefixtures("broken")
def test_a_run_that_says_nothing_of_its_end_was_killed(tmp_path: Path) -> None:
    said = swept(tmp_path)
    assert {(ended.number, ended.why, ended.was_interrupted) for ended in said} == {
        (number, "the run was killed: no room", False) for number in (1, 2, 3)
    }
    assert said[0].log.read_text() == "no room\n"


@pytest.mark.usefixtures("broken")
def test_a_sweep_that_is_given_up_begins_no_further_run(tmp_path: Path) -> None:
    said = swept(tmp_path, give_up=True)
    assert len(said) == 1
    assert len(list((tmp_path / "out").glob("*/*.log"))) < 3


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("seed",), "--label seed: write NAME=TEXT"),
        (("speed=TDF",), "--label speed: not a field of this sweep, nor of a process; there are seed, true.…"),
        (("seed=a", "seed=b"), "--label seed=b: said twice"),
        (("seed=a", "true.exit=a"), "--label true.exit=a: said twice, or of two things"),
    ],
)
def test_labels_are_of_what_there_is_and_said_once(texts: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        sweeping.labels_of(texts, {"seed": ["1"]}, ["true"])


def test_a_sweep_goes_on_with_other_labels_but_not_with_other_fields(tmp_path: Path) -> None:
    sweeping.take(tmp_path, LAB, {"seed": ["1"]}, {})
    sweeping.take(tmp_path, LAB, {"seed": ["1"]}, {"seed": "draw"})
    assert json.loads((tmp_path / "sweep.json").read_text())["labels"] == {"seed": "draw"}
    with pytest.raises(RequestError, match="another lab or other fields"):
        sweeping.take(tmp_path, LAB, {"time.tdf": ["1"]}, {"seed": "draw"})
