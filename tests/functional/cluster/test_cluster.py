"""A lab over several machines: the same bytes as on one, whatever is between them, and nothing of it is left."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest

from dilaton.cluster.machine import listening
from dilaton.cluster.relay import KEY_BYTES, What
from dilaton.host.here.uml import kernels
from dilaton.host.port import LEFT_OUT_FILE
from tests.conftest import PATIENCE_HOST_S, ROOT, Outcome, RunLab, environment, started

EXAMPLE = ROOT / "examples/two-sites/lab.yaml"
LAB = EXAMPLE.read_text()

SAME = (
    "nodes/client/ping.stdout",
    "nodes/client/bulk.stdout",
    "captures/server.eth0.pcapng",
    "captures/router.eth1.pcapng",
)

AT_WORK = """
name: at-work
time: {drive: work, tdf: 50}
guests: per-node
nodes: {near: , left: {kind: router}, right: {kind: router}, far: }
links:
  - {endpoints: [near, left], rate: 50Mbit, delay: 5ms}
  - {endpoints: [left, right], rate: 20Mbit, delay: 12ms, queue: {limit: 50}}
  - {endpoints: [right, far], rate: 50Mbit, delay: 5ms}
run:
  - {on: far, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: near, name: bulk, exec: iperf3 -c far -t 1 -J, after: server}
  - {on: near, name: ping, exec: ping -c 10 -i 0.05 far, after: bulk}
"""


@pytest.fixture(scope="module")
def alone(run_example: Callable[[Path], Outcome]) -> Outcome:
    """The lab on one machine."""
    outcome = run_example(EXAMPLE)
    assert outcome.status == 0
    return outcome


def happened(outcome: Outcome) -> list[dict[str, object]]:
    return [{name: value for name, value in event.items() if name != "host_s"} for event in outcome.events]


def assert_same(outcome: Outcome, alone: Outcome) -> None:
    assert outcome.status == 0
    assert happened(outcome) == happened(alone)
    for name in SAME:
        assert (outcome.path / name).read_bytes() == (alone.path / name).read_bytes(), name
    assert [process.get("results") for process in outcome.record["processes"]] == [
        process.get("results") for process in alone.record["processes"]
    ]
    assert outcome.record["verdict"] == alone.record["verdict"]
    assert not list(outcome.path.glob("machine*")), "nothing of the machines is left"


@pytest.mark.parametrize("machines", [2, 3])
def test_a_lab_gives_the_same_bytes_on_several_machines(alone: Outcome, run_lab: RunLab, machines: int) -> None:
    assert_same(run_lab(LAB, "--machines", str(machines)), alone)


def test_on_the_work_drive_several_machines_measure_what_one_does(run_lab: RunLab) -> None:
    alone, apart = run_lab(AT_WORK), run_lab(AT_WORK, "--machines", "2")
    assert (alone.status, apart.status) == (0, 0)
    least_s = [outcome.process("ping")["result"]["rtt"]["min"] for outcome in (alone, apart)]
    assert abs(least_s[1] - least_s[0]) < 1.5e-6, f"within 1 us, which is what ping prints: {least_s}"
    rates = [outcome.process("bulk")["result"]["throughput"] for outcome in (alone, apart)]
    assert rates[1] == pytest.approx(rates[0], rel=0.005)
    assert apart.record["verdict"]["level"] == alone.record["verdict"]["level"]


def test_however_late_machines_hear_of_each_other_it_is_the_same(alone: Outcome, tmp_path: Path) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text(LAB)
    command = [sys.executable, "-m", "tests.functional.cluster.connections", "late", "run", lab, "--machines", "2"]
    done = subprocess.run(
        [*map(str, command), "--out", str(out)],
        env=environment() | {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.stderr.count("a connection stood still for") == 1
    assert_same(Outcome(done.returncode, done.stdout + done.stderr, out), alone)


def below(pid: int) -> dict[int, str]:
    """All processes below one, with their command lines."""
    found: dict[int, str] = {}
    try:
        of_threads = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return found
    for child in map(int, " ".join(of_threads).split()):
        try:
            found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        found |= below(child)
    return found


def is_there(pid: int, command: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") == command
    except OSError:
        return False


@pytest.mark.parametrize(
    ("victim", "by", "reason", "lost"),
    [
        (
            "dilaton.cluster.host_agent",
            SIGKILL,
            r"machine0 was lost: the host agent of machine0 was killed by signal 9",
            1,
        ),
        (
            "dilaton-relay machine",
            SIGKILL,
            r"machine0 was lost: (the relay of the machine|the connection) has ended",
            1,
        ),
        (
            "dilaton.cluster.host_agent",
            SIGSTOP,
            r"machine0 was lost: its host agent has said nothing for 3\.9 seconds",
            1,
        ),
        ("dilaton-relay machine", SIGSTOP, r"machine0 was lost: nothing was heard for 3\.5 seconds", 1),
        ("dilaton-relay hub", SIGKILL, r"the relay of the hub has ended", 2),
    ],
    ids=["host agent", "relay", "host agent that is stopped", "relay that is stopped", "hub"],
)
def test_whatever_dies_ends_the_run_and_nothing_is_left(
    tmp_path: Path, victim: str, by: int, reason: str, lost: int
) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text(LAB)
    arguments = ("run", lab, "--out", out, "--machines", "2", "--hold-at", "100ms")
    with started(*arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        next(line for line in process.stderr if "clock held" in line)
        everything = {pid: command for pid, command in below(process.pid).items() if command}
        os.kill(next(pid for pid, command in everything.items() if victim in command), by)
        process.stderr.read()
        assert process.wait(PATIENCE_HOST_S) == 1
    record = json.loads((out / "run.json").read_text())
    assert record["state"] == "failed"
    assert re.fullmatch(rf"{reason}, at 0\.1\d* virtual seconds", record["reason"]), record["reason"]
    end = time.monotonic() + PATIENCE_HOST_S
    while left := [command for pid, command in everything.items() if is_there(pid, command)]:
        assert time.monotonic() < end, left
        time.sleep(0.1)
    assert not list(out.glob("machine*"))
    assert record["left_out"] == lost == len((out / LEFT_OUT_FILE).read_text().splitlines())
    assert (
        f"Missing: {lost} of the files of guests on other machines; {LEFT_OUT_FILE}"
        in (out / "report.html").read_text()
    )
    if lost == 1:
        assert list(out.glob("guest/*.log")), "what the other machine's guests have written is there"


IDLE = """
name: idle
time: {drive: event}
guests: per-node
nodes: {a: {}, b: {}, c: {}, d: {}}
links: [{endpoints: a -- b, delay: 10ms}, {endpoints: b -- c, delay: 10ms}, {endpoints: c -- d, delay: 10ms}]
run: [{on: a, exec: sleep 600}]
"""


def test_guests_in_which_nothing_happens_seldom_have_to_hear_of_each_other(run_lab: RunLab) -> None:
    outcome = run_lab(IDLE, "--machines", "4")
    assert outcome.status == 0
    # Of a device at a wire the kernel looks once a second whether it sends, and up to a tick longer. Linux 6.12 and later also
    # looks once a second whether real-time programs leave others enough of the CPU (fair_server, kernel/sched/deadline.c).
    each_s = 2.2 if kernels.chosen_name() == kernels.DEBIAN else 3.2
    for guest in outcome.record["guests"]:
        assert guest["fidelity"]["timers"] < 600 * each_s, guest["name"]
        assert guest["waits"]["agreements"] < 600 * 2 * each_s, guest["name"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--machines", "4"), "the lab has 3 guests"),
        (("--machines", "2", "--drive", "wall"), "on the wall drive the clock of one host drives all guests"),
    ],
)
def test_what_cannot_be_on_several_machines_is_refused(run_lab: RunLab, arguments: tuple[str, ...], said: str) -> None:
    outcome = run_lab(LAB, *arguments)
    assert outcome.status == 2
    assert said in outcome.terminal


STOPPED_AGENT = """
import asyncio, os, signal, sys
from dilaton.cluster.relay import Relay, What

async def main():
    fd = os.memfd_create("dilaton-wire")
    relay = await Relay.start(bytes.fromhex(sys.argv[1]), "machine", str(fd), fds=[fd])
    await relay.send(0, What.CONTROL, sys.argv[2].encode())
    os.kill(os.getpid(), signal.SIGSTOP)

asyncio.run(main())
"""


def test_an_agent_that_is_stopped_when_its_run_ends_is_ended_by_its_relay() -> None:
    async def do() -> int:
        key = secrets.token_bytes(KEY_BYTES)
        hub, address = await listening(key, "127.0.0.1:0")
        command = [sys.executable, "-c", STOPPED_AGENT, key.hex(), address]
        with subprocess.Popen(command, env=environment()) as agent:
            try:
                async with asyncio.timeout(PATIENCE_HOST_S):
                    machine, what, _ = await hub.hear()
                    assert (machine, what) == (0, What.JOINED)
                    os.waitid(os.P_PID, agent.pid, os.WSTOPPED | os.WNOWAIT)
                    await hub.close()
                    return await asyncio.to_thread(agent.wait, PATIENCE_HOST_S)
            finally:
                agent.kill()

    assert asyncio.run(do()) == -9
