"""People work in the nodes of a run over several machines as in those of one: shell, cp, a prompt, a run that stays."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.run.control.answers import CLOCK_SHOW, STATUS
from dilaton.run.control.requests import Client
from tests.conftest import PATIENCE_HOST_S, dilaton, started
from tests.functional.cluster.test_cluster import below
from tests.terminal import TypedAt

LAB = """name: two-machines
time: {drive: DRIVE}
guests: per-node
placement: {a: 0, b: 1}
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 100Mbit, delay: 10ms}]
"""
STAYS = LAB + "run: [{on: a, name: sleep, exec: sleep 1000000}]\n"


def lab_of(directory: Path, drive: str, text: str = STAYS) -> Path:
    file = directory / "lab.yaml"
    file.write_text(text.replace("DRIVE", drive))
    return file


@pytest.fixture(scope="module", params=["event", "work"])
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a run over two machines that holds its clock at 1 s."""
    directory = tmp_path_factory.mktemp("sessions")
    lab, out = lab_of(directory, request.param), directory / "run"
    arguments = ("run", lab, "--out", out, "--machines", "2", "--hold-at", "1s")
    with started(*arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        next(line for line in process.stderr if "clock held" in line)
        yield out


def test_programs_in_nodes_of_each_machine_have_our_streams(held: Path) -> None:
    for node in ("a", "b"):
        done = dilaton("shell", held, node, "sh", "-c", "hostname; echo err >&2; exit 3", stdin=subprocess.DEVNULL)
        assert (done.stdout, done.stderr, done.returncode) == (f"{node}\n", "err\n", 3)
    kinds = [json.loads(line)["kind"] for line in (held / "events.jsonl").read_text().splitlines()]
    assert kinds[-4:] == ["session-began", "session-ended"] * 2


def test_more_than_a_window_goes_in_and_out_whole(held: Path) -> None:
    text = "".join(f"{number}\n" for number in range(300_000))
    assert len(text) > 1 << 20
    assert dilaton("shell", held, "b", "cat", input=text).stdout == text


def test_a_run_over_machines_is_not_put_away_and_goes_on_as_it_was(held: Path) -> None:
    refused = dilaton("suspend", held)
    assert refused.returncode != 0 and "spread over several machines, and cannot be suspended" in refused.stderr
    with Client(held) as client:
        clock = client.request(CLOCK_SHOW)
    assert (clock["virtual_s"], clock["held"]) == (1.0, True)
    assert dilaton("shell", held, "b", "true", stdin=subprocess.DEVNULL).returncode == 0


def test_each_guest_is_told_with_its_machine_its_work_and_its_waiting(held: Path) -> None:
    with Client(held) as client:
        guests = client.request(STATUS)["guests"]
    assert [(guest["name"], guest["machine"]) for guest in guests] == [("a", "machine0"), ("b", "machine1")]
    assert all(0 < guest["busy_s"] <= 1 and guest["waited_host_s"] is not None for guest in guests), guests


def test_files_go_to_a_node_and_come_back(held: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 800)
    assert dilaton("cp", held, tmp_path / "file", "b:/tmp/there").returncode == 0
    assert dilaton("cp", held, "b:/tmp/there", tmp_path / "back").returncode == 0
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()


def test_a_reader_that_leaves_ends_the_program(held: Path) -> None:
    with started("shell", held, "b", "yes", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_HOST_S) == 128 + signal.SIGPIPE


def test_a_program_whose_asker_is_killed_is_hung_up_on(held: Path) -> None:
    with started("shell", held, "b", "sh", "-c", "echo $$; exec sleep 1000", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().strip().decode()
        process.kill()
    while dilaton("shell", held, "b", "kill", "-0", pid, stdin=subprocess.DEVNULL).returncode == 0:
        pass


def test_a_terminal_has_its_size_and_interrupts_reach_the_program(held: Path) -> None:
    with TypedAt("shell", held, "b", "sh") as typed:
        typed.expect("# ")
        typed.type("stty size; tty\n")
        typed.expect("33 77")
        typed.expect("/dev/pts/")
        typed.expect("# ")
        typed.type("cat\n")
        typed.type("once\n")
        typed.expect("once\r\nonce")
        typed.type("\x03")
        typed.expect("# ")
        typed.type("exit 7\n")
        assert typed.wait() == 7


@pytest.mark.alone  # at the speed of the host, whose other work would make frames between machines late, which fails a run
def test_a_run_stays_and_whoever_works_in_it_reaches_the_other_machine(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started("run", lab_of(tmp_path, "work", LAB), "--out", out, "--machines", "2", "--stay") as process:
        while dilaton("shell", out, "a", "true", stdin=subprocess.DEVNULL).returncode:
            assert process.poll() is None
        done = dilaton("shell", out, "a", "ping", "-c", "3", "-i", "0.2", "b", stdin=subprocess.DEVNULL)
        # 20 ms are the link's, to which a host adds what its timers are late by, 2 to 6 ms on a slow one.
        trips = [float(trip) for trip in re.findall(r"time=([0-9.]+)", done.stdout)]
        assert "3 received" in done.stdout and 20 <= min(trips) < 30, done.stdout
        assert dilaton("stop", out).returncode == 0
        assert process.wait(PATIENCE_HOST_S) == 0
    assert json.loads((out / "run.json").read_text())["state"] == "finished"


def test_a_lab_that_is_brought_up_over_two_machines_has_its_prompt(tmp_path: Path) -> None:
    lab, out = lab_of(tmp_path, "work", LAB), tmp_path / "run"
    done = dilaton("up", lab, "--out", out, "--machines", "2", input="b hostname\na ping -c 1 b\nexit\n")
    assert done.returncode == 0, done.stderr
    assert "b\n" in done.stdout and "1 received" in done.stdout


def test_who_works_on_a_machine_that_is_lost_is_told_that_the_run_has_ended(tmp_path: Path) -> None:
    lab, out = lab_of(tmp_path, "event"), tmp_path / "run"
    arguments = ("run", lab, "--out", out, "--machines", "2", "--hold-at", "1s")
    with started(*arguments, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr
        next(line for line in run.stderr if "clock held" in line)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with started("shell", out, "b", "sh", "-c", "echo here; sleep 1000", text=True, **pipes) as working:
            assert working.stdout is not None and working.stderr is not None
            assert working.stdout.readline() == "here\n"
            commands = below(run.pid)
            agents = sorted(pid for pid, command in commands.items() if "dilaton.cluster.host_agent" in command)
            os.kill(agents[1], signal.SIGKILL)
            assert working.wait(PATIENCE_HOST_S) == 1
            assert "the run has ended" in working.stderr.read()
        run.stderr.read()
        assert run.wait(PATIENCE_HOST_S) == 1
