"""Whatever is killed, whenever: nothing is left behind, and the run directory says what happened."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import command_line, environment

LAB = """
name: kills
time: {tdf: 1}
nodes: {a: {}, b: {}}
links: ["a -- b"]
run:
  - {on: b, name: server, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: bulk, exec: iperf3 -c b -t 1000, after: server}
"""

GONE_HOST_S_MAX = 20.0
ROUNDS = 32
VICTIMS = ("command line", "bwrap", "kernel", "stub")


def children(pid: int) -> list[int]:
    """The live children of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """All live processes below `pid`."""
    return [deeper for child in children(pid) for deeper in (child, *descendants(child))]


def name_of(pid: int) -> str:
    """The program of a process; empty when it is gone."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pick(victim: str, root: int) -> int | None:
    """The process to kill; None when it does not exist (yet)."""
    below = descendants(root)
    if victim == "command line":
        return root
    if victim == "bwrap":
        return next((pid for pid in below if name_of(pid) == "bwrap"), None)
    kernels = [pid for pid in below if name_of(pid) == "linux.uml"]
    if not kernels:
        return None
    return kernels[0] if victim == "kernel" else kernels[-1]


def leftovers() -> set[str]:
    """What a run could leave on this machine: mounts, shared memory, temporary files."""
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    files = {str(path) for place in ("/dev/shm", "/tmp") for path in Path(place).iterdir()}  # noqa: S108
    homes = {str(path) for path in Path.home().glob(".uml*")}
    return mounts | files | homes


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_kill_leaves_nothing_and_is_recorded(tmp_path: Path, round_: int) -> None:
    chance = random.Random(round_)
    victim = VICTIMS[round_ % len(VICTIMS)]
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text(LAB)
    before = leftovers()
    run = subprocess.Popen(
        command_line("run", lab, "--out", out), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    # A random moment of its life; later than that a victim that is not there yet is waited for.
    time.sleep(chance.uniform(0.2, 2.0))
    deadline = time.monotonic() + GONE_HOST_S_MAX
    while (target := pick(victim, run.pid)) is None:
        assert time.monotonic() < deadline and run.poll() is None, f"no {victim} to kill"
    everyone = [run.pid, *descendants(run.pid)]
    os.kill(target, signal.SIGKILL)
    if victim == "stub":
        # The guest survives the loss of some of its processes; the run must still end when it is told to.
        time.sleep(0.2)
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
    terminal = run.communicate(timeout=GONE_HOST_S_MAX)[0].decode()
    everyone += [pid for pid in everyone for pid in descendants(pid)]
    while remaining := [pid for pid in everyone if alive(pid)]:
        assert time.monotonic() < deadline + GONE_HOST_S_MAX, f"left behind: {[(p, name_of(p)) for p in remaining]}"
        time.sleep(0.02)
    assert leftovers() <= before | {str(tmp_path)}
    if victim == "command line":
        assert run.returncode == -signal.SIGKILL
        if (out / "run.json").exists():
            record = json.loads((out / "run.json").read_text())
            assert record["state"] in ("prepare", "boot", "ready", "running")
            assert str(run.pid) in record["reason"]
    else:
        record = json.loads((out / "run.json").read_text())
        assert record["state"] in ("failed", "aborted"), terminal
        assert record["reason"], terminal
        assert run.returncode in (1, 130)


def test_ctrl_c_ends_a_run_in_good_order(tmp_path: Path) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text(LAB)
    run = subprocess.Popen(command_line("run", lab, "--out", out), env=environment(), stderr=subprocess.PIPE)
    deadline = time.monotonic() + GONE_HOST_S_MAX
    while not (out / "events.jsonl").exists() or '"bulk"' not in (out / "events.jsonl").read_text():
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=GONE_HOST_S_MAX)
    assert run.returncode == 130
    record = json.loads((out / "run.json").read_text())
    assert (record["state"], record["reason"]) == ("aborted", "interrupted")
    assert all(process["end_s"] is not None for process in record["processes"]), "every process was ended and seen"
