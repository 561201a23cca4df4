"""Runs steered from Python do what was asked, and end with the program that has started them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dilaton
from dilaton.lab import LabError
from dilaton.run.control.happenings import Entered, Happened, Happening
from tests.conftest import ROOT, environment

LAB = {
    "name": "live",
    "time": {"tdf": 10},
    "nodes": {"a": {}, "b": {}},
    "links": [{"endpoints": "a -- b", "rate": "100Mbit", "delay": "10ms"}],
    "run": [{"on": "a", "exec": "ping -i 0.1 -c 100 b"}],
}


def test_a_run_is_held_led_and_changed_at_exact_instants(tmp_path: Path) -> None:
    with dilaton.start(LAB, out=tmp_path / "run", hold_at=2) as run:
        assert run.clock.held
        assert run.clock.virtual_s == 2.0
        assert run.until("3s").virtual_s == 3.0
        assert run.step().virtual_s > 3.0
        link = run.link("a--b")
        assert run.links == [link.name]
        assert link.set(delay={"mean": "20ms"}, at=4) == 4.0
        assert run.until(5.5).virtual_s == 5.5
        assert link.down() == pytest.approx(5.5)
        assert not link.show()["up"]
        link.up()
        assert run.set_tdf(20).tdf == 20
        assert len(run.result().output("ping").splitlines()) > 50, "what there is can be read meanwhile"
        with dilaton.attach(run.path) as same:
            assert same.release().held is False
        measured = run.wait()
    assert measured.record.state == "finished"
    samples = measured.processes.result[0]["samples"]
    # Never early; late by the CPU time of a round trip, and what the host takes of it.
    assert [10 * int(100 * samples[number]) for number in (10, 30, 50)] == [20, 20, 40]
    assert list(measured.events.kind).count("link-steered") == 3
    changed = measured.events[measured.events.kind == "link-changed"]
    assert list(zip(changed.at_ns, changed.what, changed.up, strict=True)) == [
        (4e9, "delay 20ms", True),
        (5.5e9, "down", False),
        (5.5e9, "down, up", True),  # all of that instant
    ]


def test_a_run_that_is_left_is_stopped_and_what_it_did_is_there(tmp_path: Path) -> None:
    with dilaton.start(LAB, out=tmp_path / "run", hold_at="1s") as run:
        pass
    assert run.result().record.state == "aborted"
    with pytest.raises(dilaton.ControlError, match="no run is going on there"):
        dilaton.attach(run.path).hold()


def test_what_is_wrong_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="unknown node"):
        dilaton.start({**LAB, "run": [{"on": "c", "exec": "true"}]})
    with dilaton.start(LAB, out=tmp_path / "run", hold_at="1s") as run:
        with pytest.raises(dilaton.ControlError, match="a rate needs a unit"):
            run.link("a--b").set(rate="10")
        with pytest.raises(dilaton.ControlError, match="no such link"):
            run.link("a--c")
        with pytest.raises(dilaton.ControlError, match="never goes back"):
            run.until("0.5s")
        assert run.clock.virtual_s == 1.0
        with pytest.raises(dilaton.ControlError, match="not empty"):
            dilaton.start(LAB, out=run.path)


def test_a_run_that_is_over_at_once_is_no_error(tmp_path: Path) -> None:
    lab = {"name": "short", "nodes": {"a": {}}, "run": [{"on": "a", "exec": "true"}]}
    assert dilaton.start(lab, out=tmp_path / "run").wait().record.state == "finished"


def test_a_run_ends_with_the_program_that_started_it_however_that_ends(tmp_path: Path) -> None:
    out = tmp_path / "run"
    program = (
        f"import dilaton; dilaton.start({LAB!r}, out={str(out)!r}, hold_at='1s'); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        with dilaton.attach(out) as run:
            run.clock  # noqa: B018 - connects, so that the end is seen
            os.kill(process.pid, signal.SIGKILL)
            assert run.wait().record.state == "aborted"


def test_the_example_shows_what_its_page_says(tmp_path: Path) -> None:
    script = ROOT / "examples" / "steered-path" / "steer.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "run"], env=environment(), capture_output=True, text=True, check=True
    )
    held, before, after = done.stdout.splitlines()
    assert held == "held at 5.0 s of virtual time, TDF 10"
    assert before.startswith("before: round trips of 20.0 to ")
    assert after.startswith("after: round trips of 60.0 to ")


def test_in_a_program_with_a_loop_both_faces_work_and_the_loop_goes_on(tmp_path: Path) -> None:
    async def program() -> None:
        with dilaton.start(LAB, out=tmp_path / "sync", hold_at=1) as plain:
            assert plain.execute("a", "hostname").stdout == "a\n", "as in a notebook"
        async with await dilaton.start_async(LAB, out=tmp_path / "async", hold_at=1) as run:
            assert (await run.clock()).virtual_s == 1.0
            told = asyncio.create_task(followed(run))
            never = asyncio.create_task(run.execute("b", "sleep 1000"))
            until = asyncio.create_task(run.until(1.5))
            done = await run.execute("b", "echo out; echo err >&2; exit 3")
            assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
            assert (await until).virtual_s == 1.5
            for waiting in (never, asyncio.create_task(run.wait())):
                await asyncio.sleep(0.1)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            assert (await run.clock()).held, "what was cancelled leaves the run as it is"
            [link] = await run.links()
            assert await run.set_link(link, delay={"mean": "20ms"}, at=2) == 2.0
            assert not (await run.release()).held
            assert (await run.wait()).record.state == "finished"
            assert (await run.wait()).record.state == "finished", "also of one that is over"
            with pytest.raises(dilaton.ControlError, match="no run is going on there"):
                await run.hold()
            happened = await told
        assert [one.state for one in happened if isinstance(one, Entered)][::5] == ["prepare", "finished"]
        events = [one.event for one in happened if isinstance(one, Happened)]
        assert events == [json.loads(line) for line in (run.path / "events.jsonl").read_text().splitlines()]

    asyncio.run(program())


async def followed(run: dilaton.AsyncRun) -> list[Happening]:
    """All that happens in a run."""
    return [happening async for happening in run.follow()]


def test_a_start_that_is_cancelled_leaves_no_run(tmp_path: Path) -> None:
    async def program() -> None:
        starting = asyncio.create_task(dilaton.start_async(LAB, out=tmp_path / "run", hold_at=1))
        while not (tmp_path / "run" / "run.json").exists():
            await asyncio.sleep(0.05)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(program())
    with contextlib.suppress(dilaton.ControlError):
        dilaton.attach(tmp_path / "run").wait()
    assert dilaton.load(tmp_path / "run").record.state == "aborted"
