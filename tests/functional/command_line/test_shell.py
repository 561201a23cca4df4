"""`dilaton shell`: programs in the nodes of a run that goes on, with the streams or the terminal of whoever asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dilaton.run.control.answers import CLOCK_HOLD, CLOCK_RELEASE, CLOCK_SHOW
from dilaton.run.control.requests import Client
from tests.conftest import PATIENCE_HOST_S, dilaton, held_run, started
from tests.terminal import TypedAt

LAB = """
name: by-hand
time: {drive: work}
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 100Mbit, delay: 10ms}]
run: [{on: a, name: sleep, exec: sleep 1000000}]
"""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a run that holds its clock at 5 s."""
    with held_run(tmp_path_factory.mktemp("shell"), LAB, "5s") as (_, out):
        yield out


def shell(out: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs `dilaton shell` to its end, with no input unless it is given."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return dilaton("shell", out, *arguments, **options)


def events(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]


def test_a_program_in_a_node_has_our_streams_and_gives_its_status(held: Path) -> None:
    done = shell(held, "b", "sh", "-c", "hostname; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == ("b\n", "err\n", 3)


def test_each_guest_of_a_run_has_sessions(tmp_path: Path) -> None:
    lab = LAB.replace("nodes: {a: {}, b: {}}", "guests: 2\nnodes: {a: {guest: left}, b: {guest: right}}")
    with held_run(tmp_path, lab, "1s") as (_, out):
        assert [shell(out, node, "hostname").stdout for node in ("a", "b")] == ["a\n", "b\n"]


def test_the_clock_stays_held_and_what_was_done_is_an_event(held: Path) -> None:
    shell(held, "a", "--", "ls", "a b")
    with Client(held) as client:
        assert client.request(CLOCK_SHOW)["virtual_s"] == 5.0
    began, ended = events(held)[-2:]
    assert (began["kind"], began["node"], began["program"]) == ("session-began", "a", "ls 'a b'")
    assert (ended["kind"], ended["status"], ended["t_ns"]) == ("session-ended", 2, 5_000_000_000)


def test_input_and_output_arrive_whole(held: Path) -> None:
    text = "".join(f"{number}\n" for number in range(30_000))
    assert shell(held, "b", "cat", input=text).stdout == text


def test_what_cannot_be_is_said_in_words(held: Path) -> None:
    mistakes = {
        ("a", "x" * 5000): (126, f"exec {'x' * 295}…{'x' * 280}: File name too long"),
        ("c", "true"): (2, "c: no such node; there are a, b"),
        ("a", "no-such-program"): (127, "exec no-such-program: No such file or directory"),
        ("a", "/etc/passwd"): (126, "exec /etc/passwd: Permission denied"),
        ("-t", "a"): (2, "-t: standard input and output are no terminal; leave it out"),
    }
    for arguments, (status, message) in mistakes.items():
        order = [*arguments[:-2], held, *arguments[-2:]] if arguments[0] != "-t" else ["-t", held, "a"]
        done = dilaton("shell", *order, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stderr) == (status, f"dilaton: {message}\n")
    done = dilaton("shell", "no-such-run", "a")
    assert done.returncode == 2
    assert "not a run directory" in done.stderr


def test_a_reader_that_leaves_ends_the_program(held: Path) -> None:
    with started("shell", held, "a", "yes", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_HOST_S) == 128 + signal.SIGPIPE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_program(held: Path, number: signal.Signals) -> None:
    script = f"trap 'exit 7' {number.name.removeprefix('SIG')}; echo ready; read line"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with started("shell", held, "a", "sh", "-c", script, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(PATIENCE_HOST_S) == 7


def test_a_program_whose_asker_is_killed_is_hung_up_on(held: Path) -> None:
    program = ("sh", "-c", "echo $$; exec sleep 1000")
    with started("shell", held, "b", *program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().strip()
        process.kill()
    while shell(held, "b", "kill", "-0", pid).returncode == 0:
        pass
    ended = next(event for event in events(held) if "echo $$" in event.get("program", "") and "status" in event)
    assert ended["status"] is None, "nobody waited for it"


def test_a_terminal_has_its_size_job_control_and_host_speed(held: Path) -> None:
    with TypedAt("shell", held, "b", "sh") as typed, Client(held) as client:
        typed.expect("the clock is held at 5.000000 s")
        typed.expect("# ")
        typed.type("stty size; tty; echo $TERM $((6 * 7))\n")
        typed.expect("33 77")
        typed.expect("/dev/pts/")
        typed.expect("42")
        typed.expect("# ")
        before, began_host_s = client.request(CLOCK_SHOW), time.monotonic()
        assert client.request(CLOCK_RELEASE)["max_speed"] == 1
        typed.type("cat\n")
        typed.type("once\n")
        typed.expect("once\r\nonce")
        typed.type("\x03")
        typed.expect("# ")
        typed.type("sleep 1; echo slept $((6 * 7))\n")
        typed.expect("slept 42")
        after = client.request(CLOCK_HOLD)
        assert 1 < after["virtual_s"] - before["virtual_s"] <= 1.01 * (time.monotonic() - began_host_s)
        typed.type("exit 5\n")
        assert typed.wait() == 5
        assert typed.is_restored()
        while client.request(CLOCK_SHOW)["max_speed"] is not None:
            pass


def test_a_terminal_is_itself_again_after_whatever_ends_us(held: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with TypedAt("shell", held, "a", "sh", "-c", "echo ready $((6 * 7)); exec sleep 1000") as typed:
            typed.expect("ready 42")
            assert not typed.is_restored()
            typed.process.send_signal(number)
            typed.wait()
            while not typed.is_restored():
                os.sched_yield()


def test_a_node_without_terminals_gives_none_and_the_run_goes_on(held: Path) -> None:
    assert shell(held, "b", "umount", "-l", "/dev/pts").returncode == 0
    with TypedAt("shell", held, "b", "sh") as typed:
        typed.expect("open a session on node b: No such file or directory")
        assert typed.wait() == 126
    again = ("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=666", "devpts", "/dev/pts")
    assert shell(held, "b", *again).returncode == 0


def test_the_end_of_the_run_ends_its_shells(tmp_path: Path) -> None:
    with held_run(tmp_path, LAB, "1s") as (_, out), TypedAt("shell", out, "a", "sh") as typed:
        typed.expect("# ")
        assert dilaton("stop", out).returncode == 0
        assert typed.wait() != 0
        assert typed.is_restored()


def test_a_shell_says_on_which_node_it_is(held: Path) -> None:
    with TypedAt("shell", held, "b") as typed:
        typed.expect("b:")
        typed.type("cd /usr; echo $((6 * 7))\n")
        typed.expect("42")
        assert "b:/usr" in typed.expect("# ")
    assert shell(held, "b", input="hostname\n").stdout == "b\n", "without a terminal there is no prompt"
