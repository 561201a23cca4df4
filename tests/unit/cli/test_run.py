"""The exit status of a run, from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from dilaton.cli.runs.run import exit_status
from dilaton.run.record import record as records
from dilaton.run.record.model import VerdictRecord
from dilaton.run.record.states import State
from tests.unit.measure import made

Level = Literal["valid", "suspect", "invalid"]


@pytest.mark.parametrize(
    ("state", "level", "plain", "strict"),
    [
        ("finished", "valid", 0, 0),
        ("finished", "suspect", 0, 1),
        ("finished", "invalid", 0, 1),
        ("finished", None, 0, 1),
        ("failed", "valid", 1, 1),
        ("aborted", "valid", 130, 130),
    ],
)
def test_strictly_only_a_valid_run_is_well(
    tmp_path: Path, state: State, level: Level | None, plain: int, strict: int
) -> None:
    verdict = level and VerdictRecord(level=level, reasons=[])
    record = records.load(made.run_dir(tmp_path)).model_copy(update={"state": state, "verdict": verdict, "checks": []})
    assert exit_status(record) == plain
    assert exit_status(record, strict=True) == strict
