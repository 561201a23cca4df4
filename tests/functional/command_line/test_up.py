"""`dilaton up`, `down` and the `lab>` prompt: a lab that stays, worked in by hand."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import dilaton as package
from dilaton.run.control.answers import CLOCK_SHOW
from dilaton.run.control.requests import Client
from tests.conftest import dilaton, started
from tests.terminal import TypedAt

LAB = """
name: {name}
nodes: {{a: {{}}, r: {{kind: router}}, b: {{}}}}
links:
  - {{endpoints: "a -- r", rate: 100Mbit, delay: 1ms}}
  - {{endpoints: "r -- b", rate: 100Mbit, delay: 1ms}}
stop_after: 1s
run: [{{on: a, name: first, exec: "true"}}]
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab of a name that no other has, whose plan is over at once."""
    path = tmp_path / "lab.yaml"
    path.write_text(LAB.format(name=f"up-{tmp_path.name[-20:].replace('_', '-')}"))
    return path


def test_the_words_of_the_prompt_do_what_they_say(lab: Path) -> None:
    out = lab.parent / "run"
    script = """
nodes
net
dump
pingall
link a r down
pingpair
link a r up
iperf a b
py run.execute("b", "hostname").stdout.strip() * 2
sh echo outside
b sleep 1000 &
b until pgrep sleep > /tmp/found; do :; done; wc -l < /tmp/found
clock
nosuch
link a b down
a exit 3
"""
    done = dilaton("up", lab, "--out", out, "--max-speed", "100", input=script)
    assert done.returncode == 3, "that of the last command"
    for line in (
        "a r b",
        "r eth0:a-eth0 eth1:b-eth0",
        "a eth0:10.0.0.0/31",
        "a -> b",
        "0% dropped (2/2 received)",
        "100% dropped (0/2 received)",
        "bb",
        "outside",
        "1",
    ):
        assert line in done.stdout.splitlines(), line
    assert "Mbits/sec" in done.stdout
    assert "running at TDF 1, work drive, at most 100x" in done.stdout
    assert "nosuch: neither a command nor a node; help lists both" in done.stderr
    assert "a b: no link between these; net shows all" in done.stderr
    record = json.loads((out / "run.json").read_text())
    assert (record["state"], record["reason"]) == ("finished", None)
    assert record["time"]["virtual_s"] > 5, "long after all of the plan was over"


@pytest.fixture(autouse=True)
def nothing_stays_up(tmp_path: Path) -> Iterator[None]:
    """Ends the labs in the background that a test has left, as one whose own `down` fails."""
    yield
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # Names of files, here those of other tests, need not be UTF-8.
            words = os.fsencode(os.readlink(process / "cwd")) + b" " + (process / "cmdline").read_bytes()
            if os.fsencode(tmp_path) in words and b"dilaton" in words:
                os.kill(int(process.name), signal.SIGKILL)


def test_a_lab_in_the_background_stays_until_it_is_taken_down(lab: Path) -> None:
    out = lab.parent / "run"
    assert dilaton("up", "-d", lab, "--out", out, "--hold-at", "0s").returncode == 0
    try:
        with Client(out) as client:
            state = client.request(CLOCK_SHOW)
        assert state["held"]
        assert state["virtual_s"] == 0
        refused = dilaton("cli", out, input="pingall\na hostname\nb hostname\n")
        assert (refused.returncode, refused.stdout) == (0, "a\nb\n")
        assert "the clock is held, and that takes time: clock release" in refused.stderr
        assert refused.stderr.count("what waits for time waits until clock release") == 1
        assert dilaton("cli", out, input="clock until 2s\n").returncode == 0
        assert dilaton("shell", out, "b", "echo", "still up", stdin=subprocess.DEVNULL).stdout == "still up\n"
    finally:
        done = dilaton("down", lab)
    assert done.returncode == 0
    assert package.load(out).record.state == "finished"
    assert dilaton("down", out).returncode == 2


def test_every_verb_takes_the_directory_and_the_file_of_a_lab_that_is_up(tmp_path: Path) -> None:
    assert dilaton("new", "first", cwd=tmp_path).returncode == 0
    assert dilaton("up", "-d", "first", "--hold-at", "0s", cwd=tmp_path).returncode == 0
    try:
        for words in (
            ("shell", "first", "client", "true"),
            ("link", "first/lab.yaml", "client--router"),
            ("top", "first"),
            ("clock", "first"),
            ("cp", "first", "client:/etc/hostname", "taken"),
            ("logs", "first"),
            ("cli", "first/"),
        ):
            assert dilaton(*words, cwd=tmp_path, stdin=subprocess.DEVNULL).returncode == 0, words
    finally:
        done = dilaton("down", "first/lab.yaml", cwd=tmp_path)
    assert done.returncode == 0
    again = dilaton("stop", "first", cwd=tmp_path)
    assert again.returncode == 2
    assert "first: not a run directory, nor a lab that runs, nor the name of one" in again.stderr


def test_what_is_wrong_with_a_lab_is_said_and_nothing_runs(lab: Path) -> None:
    lab.write_text("name: wrong\nnodes: {a: {}}\nlinks: ['a -- b']\n")
    for detached in ([], ["-d"]):
        done = dilaton("up", *detached, lab, "--out", lab.parent / "run", stdin=subprocess.DEVNULL)
        assert done.returncode == 2
        assert f"{lab}:3:" in done.stderr
    assert not (lab.parent / "run").exists()


def test_at_a_terminal_commands_have_it_and_the_prompt_comes_back(lab: Path) -> None:
    with TypedAt("up", lab, "--out", lab.parent / "run") as typed:
        before = typed.expect("lab> ")
        assert "kernels boot" in before and "3 nodes, 2 links; help lists" in before
        typed.type("a stty size\n")
        typed.expect("33 77")
        typed.expect("lab> ")
        typed.type("a ping b\n")
        typed.expect("icmp_seq=2")
        typed.type("\x03")
        typed.expect("lab> ")
        typed.type("r\n")
        typed.expect("r:")
        typed.type("exit\n")
        typed.expect("lab> ")
        typed.type("a sh -c 'exit 130'\n")
        typed.expect("lab> ")
        typed.type("exit\n")
        typed.expect("outputs and record")
        assert typed.wait() == 128 + signal.SIGINT, "that of the last command, as of a shell"
        assert typed.is_restored()


def test_a_lab_ends_with_its_prompt_however_that_ends(lab: Path) -> None:
    out = lab.parent / "run"
    with started("up", lab, "--out", out, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write("nodes\n")
        process.stdin.flush()
        assert process.stdout.readline() == "a r b\n"
        process.send_signal(signal.SIGKILL)
        assert package.attach(out).wait().record.state == "finished"


def test_a_lab_that_stays_answers_prometheus_at_a_port_that_is_free(lab: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = dilaton("up", lab, "--out", lab.parent / "run", "--metrics", str(port), input="exit\n")
    assert (done.returncode, f"{port}: cannot listen on 127.0.0.1" in done.stderr) == (2, True), done.stderr
