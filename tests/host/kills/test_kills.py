"""Whatever is killed, whenever: nothing is left behind, and the run directory says what happened."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE_HOST_S, environment
from tests.host.processes import children, descendants, kernels, kill, name_of

LAB = """
name: kills
time: {tdf: 1}
nodes: {a: {}, b: {}}
links: ["a -- b"]
run:
  - {on: b, name: server, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: bulk, exec: iperf3 -c b -t 1000, after: server}
"""

WITHOUT_ROOM_FOR_ITS_LOG = """
from dilaton.cli.main import main
from dilaton.run import execute

async def log_clock(path, clock):
    raise OSError(f"{path.name}: there is no room")

execute.log_clock = log_clock
"""
INTERRUPTED_AT_ITS_END = """
import signal
from dilaton.cli.runs import run
from dilaton.service import conduct

def interrupted(function):
    def also(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return function(*arguments, **options)
    return also

run.print_result, run.exit_status = map(interrupted, (run.print_result, run.exit_status))
conduct._report = interrupted(conduct._report)
"""

ROUNDS = 36
VICTIMS = ("command line", "bwrap", "kernel", "stub")
PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True, scope="module")
def orphans_come_to_us() -> Iterator[None]:
    """Makes this process the parent of all that a killed run leaves, so that none of it can hide.

    What a failed test before left is not theirs to answer for, and is ended here.
    """
    _end_all_below_us()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


@pytest.fixture(autouse=True)
def every_test_begins_alone(orphans_come_to_us: None) -> Iterator[None]:
    """Ends what a test that failed has left, so that it fails alone."""
    yield
    _end_all_below_us()


def _end_all_below_us() -> None:
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def remaining() -> list[str]:
    """What lives below this process; what is dead is buried."""
    for pid in children(os.getpid()):
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
    return [f"{pid} {name_of(pid)}" for pid in descendants(os.getpid())]


def wait_until_nothing_remains() -> None:
    """Waits for the end of everything below this process."""
    deadline = time.monotonic() + PATIENCE_HOST_S
    while left := remaining():
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.01)


def wait_until_no_more_is_shared_than(before: set[str]) -> None:
    """Waits until what was not in shared places before is gone: what runs beside this test has its own there for a moment."""
    deadline = time.monotonic() + PATIENCE_HOST_S
    while more := RunToKill.read_shared() - before:
        assert time.monotonic() < deadline, f"left behind: {more}"
        time.sleep(0.01)


def is_of_python_alone(terminal: str) -> bool:
    """Whether Python itself was not up yet when it was interrupted: nothing of Dilaton had begun."""
    return "KeyboardInterrupt" in terminal and "/python/dilaton/" not in terminal


class RunToKill:
    """A run in the background, with a home and temporary directory of its own."""

    def __init__(self, directory: Path, *arguments: str, program: Sequence[str] = ("-m", "dilaton")) -> None:
        self.out = directory / "run"
        self.private = [directory / "home", directory / "temporary"]
        self.mounts = self.read_mounts()
        self.shared = self.read_shared()
        for path in self.private:
            path.mkdir()
        (directory / "lab.yaml").write_text(LAB)
        self.process = subprocess.Popen(
            [sys.executable, *program, "run", str(directory / "lab.yaml"), "--out", str(self.out), *arguments],
            env=environment() | {"HOME": str(self.private[0]), "TMPDIR": str(self.private[1])},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @staticmethod
    def read_mounts() -> set[str]:
        """The mount points that this process sees."""
        return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}

    @staticmethod
    def read_shared() -> set[str]:
        """Files in shared places with names that a kernel or Dilaton would give; others come and go all the time."""
        patterns = ("vm_file*", "*dilaton*", "*uml*", "*bwrap*")
        return {
            str(path)
            for place in ("/dev/shm", "/tmp", "/run")  # noqa: S108
            for pattern in patterns
            for path in Path(place).glob(pattern)
        }

    @property
    def record(self) -> dict[str, Any]:
        """What run.json says; empty when there is none yet."""
        path = self.out / "run.json"
        data: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return data

    def pick(self, victim: str, chance: random.Random) -> int | None:
        """The process to kill; None when it does not exist (yet)."""
        if victim == "command line":
            return self.process.pid
        if not self.record:
            return None  # what runs before is no guest but an examination of the machine
        below = descendants(self.process.pid)
        if victim == "bwrap":
            boxes = [pid for pid in below if name_of(pid) == "bwrap"]
            return chance.choice(boxes) if boxes else None
        running = kernels(self.process.pid)
        if victim == "stub":
            running = [stub for kernel in running for stub in descendants(kernel)]
        return chance.choice(running) if running else None

    def end(self) -> str:
        """Waits for its end and that of everything below it; returns what it printed."""
        terminal = self.process.communicate(timeout=PATIENCE_HOST_S)[0].decode()
        wait_until_nothing_remains()
        assert self.read_mounts() <= self.mounts
        wait_until_no_more_is_shared_than(self.shared)
        assert [path for place in self.private for path in place.iterdir()] == []
        return terminal


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_kill_leaves_nothing_and_is_recorded(tmp_path: Path, round_: int) -> None:
    kill_and_look(RunToKill(tmp_path), VICTIMS[round_ % len(VICTIMS)], random.Random(round_))


@pytest.mark.usefixtures("unjailed")
@pytest.mark.parametrize("round_", range(9))
def test_a_kill_leaves_nothing_where_there_is_no_jail_either(tmp_path: Path, round_: int) -> None:
    victims = ("command line", "kernel", "stub")
    kill_and_look(RunToKill(tmp_path, "--no-jail"), victims[round_ % len(victims)], random.Random(1000 + round_))


def kill_and_look(run: RunToKill, victim: str, chance: random.Random) -> None:
    """Kills a part of a run at a random moment, and looks at what is left."""
    # A random moment of its life; later than that, a victim that is not there yet is waited for.
    time.sleep(chance.uniform(0.1, 1.5))
    deadline = time.monotonic() + PATIENCE_HOST_S

    def choose() -> int:
        while (target := run.pick(victim, chance)) is None:
            assert time.monotonic() < deadline and run.process.poll() is None, f"no {victim} to kill"
        return target

    kill(choose)
    if victim == "stub":
        # A guest ends when it turns to a process that is lost, which may be never; the run then ends when it is told to.
        time.sleep(0.2)
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGINT)
    terminal = run.end()
    if victim == "command line":
        assert run.process.returncode == -signal.SIGKILL
        if run.record:
            assert run.record["state"] in ("prepare", "boot", "ready", "running")
            assert str(run.process.pid) in run.record["reason"]
    else:
        assert run.record["state"] in ("failed", "aborted"), terminal
        assert run.record["reason"], terminal
        assert run.record["reason"] in terminal
        # Also where the signal finds a run that has just failed by itself, at its report or on its way out.
        assert run.process.returncode == (1 if run.record["state"] == "failed" else 130)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_a_run_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    run = RunToKill(tmp_path)
    deadline = time.monotonic() + PATIENCE_HOST_S
    while not (run.out / "events.jsonl").exists() or '"bulk"' not in (run.out / "events.jsonl").read_text():
        assert time.monotonic() < deadline and run.process.poll() is None
        time.sleep(0.02)
    # As the terminal does: to every process of the group.
    os.killpg(run.process.pid, number)
    run.end()
    assert run.process.returncode == 130
    assert (run.record["state"], run.record["reason"]) == ("aborted", "interrupted")
    assert all(process["end_s"] is not None for process in run.record["processes"]), "each was ended, and seen to"


@pytest.mark.parametrize("after_s", [0.05, 0.2, 0.35, 0.5, 0.65])
def test_ctrl_c_at_an_early_moment_is_an_orderly_end_too(tmp_path: Path, after_s: float) -> None:
    run = RunToKill(tmp_path)
    time.sleep(after_s)
    os.killpg(run.process.pid, signal.SIGINT)
    terminal = run.end()
    if is_of_python_alone(terminal):
        return
    assert run.process.returncode in (130, -signal.SIGINT), terminal
    assert "Traceback" not in terminal
    if run.record:
        assert (run.record["state"], run.record["reason"].split()[0]) == ("aborted", "interrupted")


@pytest.mark.parametrize("also", ["", INTERRUPTED_AT_ITS_END], ids=["alone", "interrupted"])
def test_what_fails_beside_a_run_ends_it_with_its_message_and_leaves_nothing(tmp_path: Path, also: str) -> None:
    run = RunToKill(tmp_path, program=("-c", f"{WITHOUT_ROOM_FOR_ITS_LOG}{also}\nmain()"))
    terminal = run.end()
    assert run.process.returncode == 1
    assert (run.record["state"], run.record["reason"]) == ("failed", "clock.csv: there is no room")
    assert run.record["reason"] in terminal
    assert ("there is no report: interrupted" in terminal) == bool(also)
