"""A run on the event drive that was held is to the byte one that was not, whatever was at work where it was held."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dilaton.run.control.answers import CLOCK_RELEASE, CLOCK_SHOW, CLOCK_UNTIL, FAULT_BEGIN, LINK_CHANGE
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from tests.conftest import PYTHON, dilaton, held_run, outcome_of, run_in

LAB = f"""
name: held
time: {{drive: event, tdf: TDF}}
guests: GUESTS
nodes: {{a: , b: }}
links: [{{endpoints: [a, b], delay: 1ms}}]
run:
  - {{on: a, name: ping, exec: ping -i 0.004 -c 4 b}}
  - {{on: b, name: poll, start: 30ms, exec: [{PYTHON}, -c, "POLL"]}}
"""
"""When its next packet is due within 10 ms ping polls."""

POLL = "import time\\nend = time.monotonic() + 0.003\\nn = 0\\nwhile time.monotonic() < end: n += 1\\nprint(n, time.monotonic_ns())"

INSTANTS = ("4.0001ms", "9.5ms", "20ms", "30ms", "30.0003ms", "31.5ms", "33.123456ms")
"""Some where a program polls, some where one begins, some where nothing is at work."""


def everything(path: Path) -> dict[str, bytes | list[str]]:
    written = {str(file.relative_to(path)): file.read_bytes() for file in path.glob("nodes/*/*")}
    # Guests that are as far tell of theirs as the host is fast.
    return {**written, "events": sorted((path / "events.jsonl").read_text().splitlines())}


@pytest.mark.parametrize(("guests", "tdf"), [("1", "1"), ("1", "2.3"), ("per-node", "1")])
def test_a_run_that_is_held_where_programs_poll_is_one_that_was_not(guests: str, tdf: str, tmp_path: Path) -> None:
    lab = LAB.replace("POLL", POLL).replace("GUESTS", guests).replace("TDF", tdf)
    for directory in ("held", "not-held"):
        (tmp_path / directory).mkdir()
    with held_run(tmp_path / "held", lab, INSTANTS[0]) as (process, out):
        with Client(out) as client:
            for at in INSTANTS[1:]:
                shown = client.request(CLOCK_UNTIL, at=at)
                assert (shown["held"], shown["virtual_s"]) == (True, pytest.approx(float(at.removesuffix("ms")) / 1e3))
            client.request(CLOCK_RELEASE)
        held = outcome_of(process, out)
    run = run_in(tmp_path / "not-held", lab)
    assert held.status == run.status == 0, held.terminal + run.terminal
    assert everything(held.path) == everything(run.path)


WORKS = f"""
name: works
time: {{drive: event}}
nodes: {{a: }}
run:
  - {{on: a, name: work, exec: [{PYTHON}, -c, "import os\\nfor _ in range(60000): os.getppid()"]}}
  - {{on: a, name: sleep, exec: sleep 1}}
"""


def test_somebody_gets_into_a_node_though_a_program_was_at_work_where_it_is_held(tmp_path: Path) -> None:
    with held_run(tmp_path, WORKS, "20ms") as (process, out):
        done = dilaton("shell", out, "a", "echo", "here", stdin=subprocess.DEVNULL)
        assert (done.stdout, done.returncode) == ("here\n", 0), done.stderr
        with Client(out) as client:
            shown = client.request(CLOCK_SHOW)
            assert (shown["held"], shown["virtual_s"]) == (True, 0.02)
            client.request(CLOCK_RELEASE)
        assert outcome_of(process, out).status == 0


POLLS = f"""
name: polls
time: {{drive: event}}
guests: per-node
nodes: {{a: , b: }}
links: [{{endpoints: [a, b], delay: 5ms}}]
run: [{{on: b, name: poll, exec: [{PYTHON}, -c, "{POLL.replace("0.003", "0.06")}"]}}]
"""


def test_what_guests_do_not_hear_where_a_run_is_held_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    with held_run(tmp_path, POLLS, "30ms") as (process, out):
        with Client(out) as client:
            with pytest.raises(ControlError, match="guest b does not listen where virtual time stands"):
                client.request(LINK_CHANGE, link="a--b", settings=[("loss", "5%")], at=None, directory=str(tmp_path))
            cut = {"partition": [["a"], ["b"]], "for": "1ms"}
            with pytest.raises(ControlError, match="guest b does not listen where virtual time stands"):
                client.request(FAULT_BEGIN, fault=cut, directory=str(tmp_path))
            assert client.request(CLOCK_SHOW)["virtual_s"] == 0.03
            client.request(CLOCK_RELEASE)
        outcome = outcome_of(process, out)
    assert outcome.status == 0, outcome.terminal
    assert not [event for event in outcome.events if event["kind"] in ("link-changed", "began")]
