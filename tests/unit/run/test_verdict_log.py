"""How the verdict stood while a run went on, as the run writes it down."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dilaton.run.files import verdict_log
from dilaton.run.files.verdict_log import Stood, is_told, log_verdicts
from dilaton.run.record.model import ReasonRecord, VerdictRecord

S = 1_000_000_000
VALID = VerdictRecord(level="valid", reasons=[])


def test_rows_are_the_further_apart_the_longer_a_run_is_unless_the_level_changes() -> None:
    assert is_told(S, "valid", 0, None)
    assert not is_told(100 * S + 1, "valid", 100 * S, "valid") and is_told(101 * S, "valid", 100 * S, "valid")
    assert is_told(100 * S + 1, "suspect", 100 * S, "valid")
    assert not is_told(100 * S, "suspect", 100 * S, "valid"), "while the clock is held there is one row"


def test_a_run_of_a_week_has_about_a_thousand_rows() -> None:
    rows, told_ns = 0, 0
    for at_ns in range(S, 7 * 24 * 3600 * S, S):
        if is_told(at_ns, "valid", told_ns, "valid"):
            rows, told_ns = rows + 1, at_ns
    assert 900 < rows < 1000


def test_how_a_run_stands_is_written_with_what_its_guests_have_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_log, "INTERVAL_HOST_S", 0.0)
    monkeypatch.setattr(verdict_log, "RESTS", 0)
    reason = ReasonRecord(level="suspect", what="late", value=2, bound=1, unit="us", advice="a larger tdf")
    late = VerdictRecord(level="suspect", reasons=[reason])
    guests = [{"name": "g", "machine": None, "busy_s": 0.25, "waited_host_s": None}]
    said = iter(
        Stood(at_ns, 3 * at_ns, verdict, guests)
        for at_ns, verdict in [(S // 2, None), (S, VALID), (S, VALID), (2 * S, late), (2 * S, late)]
    )

    async def scenario() -> None:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await log_verdicts(tmp_path / "verdicts.jsonl", lambda: next(said))

    asyncio.run(scenario())
    rows = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [(row["at_ns"], row["verdict"] and row["verdict"]["level"]) for row in rows] == [
        (S // 2, None),
        (S, "valid"),
        (2 * S, "suspect"),
    ]
    assert rows[2]["verdict"]["reasons"][0]["what"] == "late"
    assert (rows[2]["host_s"], rows[2]["guests"]) == (6.0, guests)
