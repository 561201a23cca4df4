"""Steering a run from another process: holding, stepping, and going on never change what happens in virtual time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.run.control.answers import CLOCK_HOLD, CLOCK_RELEASE, CLOCK_SHOW, CLOCK_STEP, CLOCK_TDF, CLOCK_UNTIL, STOP
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from tests.conftest import PATIENCE_HOST_S, Outcome, dilaton, held_run, outcome_of, started
from tests.host.processes import kernels

LAB = """
name: steered
time: {drive: work}
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 100Mbit, delay: 10ms}]
run:
  - {on: a, name: ping, exec: ping -i 1 -c 20 b}
  - {on: b, name: sleep, exec: sleep 30}
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run that holds itself at 5 s, and its directory."""
    with held_run(tmp_path, LAB, "5s") as held:
        yield held


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a run that holds itself at 5 s and stays so."""
    with held_run(tmp_path_factory.mktemp("resting"), LAB, "5s") as (_, out):
        yield out


def test_a_run_holds_itself_where_it_was_told_and_goes_on_when_released(
    held: tuple[subprocess.Popen[str], Path],
) -> None:
    _, out = held
    with Client(out) as client:
        state = client.request(CLOCK_SHOW)
        assert state["held"]
        assert state["virtual_s"] == 5.0
        client.request(CLOCK_RELEASE)
    outcome = outcome_of(*held)
    assert outcome.status == 0
    assert 30 <= outcome.instant_s("exited", "sleep") < 31
    trace = outcome.record["fidelity"]["tdf_trace"]
    assert [(change["reason"], change["tdf"]) for change in trace] == [
        ("until 5 s", 1.0),
        ("held", None),
        ("released", 1.0),
    ]
    assert trace[1]["virtual_s"] == trace[2]["virtual_s"] == 5.0


def test_the_log_of_the_clock_says_that_it_is_held_also_where_it_stopped_by_itself(resting: Path) -> None:
    deadline, rows = time.monotonic() + PATIENCE_HOST_S, [""]
    while not rows[-1].startswith("5."):
        assert time.monotonic() < deadline, "the log does not come to the instant at which the run holds"
        time.sleep(0.02)
        rows = [row.partition(",")[2] for row in (resting / "clock.csv").read_text().splitlines()]
    assert rows[-1] == "5.000000000,"


def test_until_stops_exactly_there_and_step_at_the_next_timer(held: tuple[subprocess.Popen[str], Path]) -> None:
    _, out = held
    with Client(out) as client:
        assert client.request(CLOCK_UNTIL, at="7.25s")["virtual_s"] == 7.25
        stepped = client.request(CLOCK_STEP)
        assert stepped["held"]
        assert 7.25 < stepped["virtual_s"] < 8.4, "ping's next packet leaves a second later at the latest"


def test_the_past_is_refused_and_the_run_goes_on(held: tuple[subprocess.Popen[str], Path]) -> None:
    _, out = held
    done = dilaton("clock", out, "until", "1s")
    assert (done.returncode, done.stderr) == (2, "dilaton: 1 s: virtual time is already at 5 s, and never goes back\n")
    assert dilaton("clock", out, "release").returncode == 0
    assert outcome_of(*held).status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tdf", "0"), "must be more than 0"),
        (("tdf", "nan"), "must be a number"),
        (("tdf", "10000000"), "at most 1000000"),
        (("until",), "until wants a value"),
        (("hold", "5s"), "hold takes no value"),
        (("dance",), "use show, hold, release"),
    ],
)
def test_a_wrong_command_is_refused_before_it_reaches_the_clock(
    arguments: tuple[str, ...], said: str, resting: Path
) -> None:
    done = dilaton("clock", resting, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    with Client(resting) as client:
        assert client.request(CLOCK_SHOW)["virtual_s"] == 5.0


POLLING = """
name: polling
time: {drive: event}
nodes: {a: , b: }
links: [{endpoints: [a, b], delay: 1ms}]
run: [{on: a, exec: ping -i 0.008 -c 9 b}]
"""
"""When the next packet is due within 10 ms ping polls, and on the event drive the kernel has no idle moment until then."""


def test_a_clock_that_is_held_under_a_program_that_polls_goes_on(tmp_path: Path) -> None:
    with held_run(tmp_path, POLLING, "45.5ms") as (process, out):
        with Client(out) as client:
            assert client.request(CLOCK_SHOW)["virtual_s"] == 0.0455
            assert client.request(CLOCK_STEP)["virtual_s"] > 0.0455
            client.request(CLOCK_RELEASE)
        assert outcome_of(process, out).status == 0
    assert "9 packets transmitted, 9 received" in (out / "nodes/a/ping.stdout").read_text()


def test_a_second_who_steers_is_told_and_hold_ends_the_first(tmp_path: Path) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    # In host time, in which it is not over before the others have started.
    lab.write_text(LAB.replace("drive: work", "drive: wall").replace("sleep 30", "sleep 1000"))
    with started("run", lab, "--out", out, stderr=subprocess.PIPE) as process:
        assert process.stderr
        process.stderr.readline()  # something has started
        with started("clock", out, "until", "1000s") as first:
            with Client(out) as client:
                while not client.request(CLOCK_SHOW)["steered_by"]:
                    pass
                with pytest.raises(ControlError, match="another command steers the clock: until 1000 s; hold ends it"):
                    client.request(CLOCK_TDF, tdf="10")
                assert client.request(CLOCK_HOLD)["held"]
            assert first.wait() == 0


def test_a_held_run_ends_in_good_order(held: tuple[subprocess.Popen[str], Path]) -> None:
    _, out = held
    assert dilaton("stop", out).returncode == 0
    outcome = outcome_of(*held)
    assert outcome.status == 130
    assert outcome.record["state"] == "aborted"
    assert outcome.process("sleep")["outcome"] == "signalled"
    done = dilaton("clock", out, "show")
    assert (done.returncode, done.stderr) == (2, f"dilaton: {out}: no run is going on there\n")


def test_a_guest_that_somebody_has_stopped_is_told_and_does_not_keep_its_run_from_ending(
    held: tuple[subprocess.Popen[str], Path],
) -> None:
    process, out = held
    os.kill(kernels(process.pid)[0], signal.SIGSTOP)
    with Client(out) as client:
        with pytest.raises(ControlError, match="guest guest0 was stopped by a signal"):
            client.request(CLOCK_RELEASE)
        client.request(STOP)
    assert outcome_of(process, out).record["reason"] == "interrupted"


def test_logs_and_ps_show_a_run_that_goes_on(resting: Path) -> None:
    assert "icmp_seq=5" in dilaton("logs", resting, "a/ping").stdout
    assert "no such node; there are a, b" in dilaton("logs", resting, "c").stderr
    assert "no such process of a; there are ping" in dilaton("logs", resting, "a/pong").stderr
    listed = dilaton("ps").stdout
    assert any("steered" in line and "held" in line and str(resting) in line for line in listed.splitlines())


def test_virtual_time_keeps_to_its_highest_speed(tmp_path: Path) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text("name: paced\ntime: {drive: work, max_speed: 10}\nnodes: {a: {}}\nrun: [{on: a, exec: sleep 5}]\n")
    assert dilaton("run", lab, "--out", out).returncode == 0
    time = Outcome(0, "", out).record["time"]
    assert time["virtual_s"] / time["host_s"] <= 10
