"""Where runs leave what they leave."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dilaton.host.messages import Event, SamplingEnded
from dilaton.run.files.clock_log import log_clock
from dilaton.run.files.directory import RunDir, RunDirError, take_default
from dilaton.run.files.event_log import EventLog
from dilaton.run.observer import RunClock

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_runs_that_start_in_one_second_get_directories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    taken = [take_default("lab", NOW) for _ in range(3)]
    assert [str(path) for path in taken] == [f"runs/lab-20260102T030405Z-{number}" for number in (1, 2, 3)]
    assert RunDir(taken[0]).path == tmp_path / taken[0]


@pytest.mark.parametrize("what", ["a file", "a link to nowhere"])
def test_runs_that_is_no_directory_is_refused(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if what == "a file":
        Path("runs").touch()
    else:
        Path("runs").symlink_to("nowhere")
    with pytest.raises(RunDirError, match="runs: no run directory can be made there: File exists"):
        take_default("lab", NOW)


def test_nothing_is_written_through_a_link_that_a_guest_left(tmp_path: Path) -> None:
    victim, run_dir = tmp_path / "victim", RunDir(tmp_path / "run")
    victim.write_text("mine")
    names = ["events.jsonl", "clock.csv", "link-update-1.json"]
    for name in names:
        (run_dir.path / name).symlink_to(victim)

    async def scenario() -> None:
        logging = asyncio.create_task(log_clock(run_dir.path / "clock.csv", lambda: RunClock(0, 0, None, 0)))
        await asyncio.sleep(0)
        logging.cancel()
        await asyncio.gather(logging, return_exceptions=True)

    with EventLog(run_dir.path / "events.jsonl", [], lambda _: None) as log:
        log.add(0, SamplingEnded(t_ns=0, table="tcp", reason="no space"))
    asyncio.run(scenario())
    run_dir.write("link-update-1.json", "{}")
    assert victim.read_text() == "mine"
    assert all((run_dir.path / name).stat().st_size > 0 and not (run_dir.path / name).is_symlink() for name in names)


@pytest.mark.parametrize(("guests", "order"), [((0, 0, 0, 0), "1302"), ((1, 0, 0, 0), "1320")])
def test_events_are_in_the_order_of_virtual_time_also_those_of_one_guest(
    tmp_path: Path, guests: tuple[int, ...], order: str
) -> None:
    events: list[Event] = []
    path = tmp_path / "events.jsonl"
    with EventLog(path, events, lambda _: None) as log:
        for t_ns, guest in zip((5, 3, 5, 4), guests, strict=True):
            log.add(guest, SamplingEnded(t_ns=t_ns, table=f"{len(events)}", reason=""))
        log.sort()
    assert "".join(event.record()["table"] for event in events) == order
    assert [json.loads(line) for line in path.read_text().splitlines()] == [event.record() for event in events]
