"""Whatever of `dilaton exec` is killed, whenever: nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PATIENCE_HOST_S, environment, started
from tests.host.kills.test_kills import (
    RunToKill,
    every_test_begins_alone,
    is_of_python_alone,
    orphans_come_to_us,
    wait_until_no_more_is_shared_than,
    wait_until_nothing_remains,
)
from tests.host.processes import children, descendants, kernels, kill, status_of
from tests.random_kills import FORKING

__all__ = ["every_test_begins_alone", "orphans_come_to_us"]

SCRIPT = "echo ready; while :; do sleep 0.01; done"
COUNTING = "echo ready; while :; do :; done"


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment with a home and temporary directory of its own, which have to stay empty."""
    paths = {"HOME": tmp_path / "home", "TMPDIR": tmp_path / "temporary"}
    for path in paths.values():
        path.mkdir()
    mounts, shared = RunToKill.read_mounts(), RunToKill.read_shared()
    yield environment() | {name: str(path) for name, path in paths.items()}
    wait_until_nothing_remains()
    assert RunToKill.read_mounts() <= mounts
    wait_until_no_more_is_shared_than(shared)
    assert [file for path in paths.values() for file in path.iterdir()] == []


@pytest.mark.parametrize("round_", range(8))
def test_a_kill_of_any_part_leaves_nothing(directories: dict[str, str], round_: int) -> None:
    chance = random.Random(round_)
    arguments = ("exec", "--max-speed", "1", "--", "sh", "-c", SCRIPT)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(*arguments, env=directories, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        if round_ % 2:
            process.stdout.readline()
        else:
            # A random moment of its start.
            time.sleep(chance.uniform(0, 0.8))
        kill(lambda: chance.choice([process.pid, *descendants(process.pid)]))
        time.sleep(0.2)
        process.terminate()
        process.stdout.read()
        assert process.wait() != 0


@pytest.mark.parametrize("script", [COUNTING, FORKING], ids=["counting", "forking"])
def test_a_guest_whose_program_is_killed_from_outside_ends_and_says_so(
    directories: dict[str, str], script: str
) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started("exec", "--max-speed", "1", "--", "sh", "-c", script, env=directories, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        deadline = time.monotonic() + PATIENCE_HOST_S
        # One that is at work: of the end of others the kernel hears when it turns to them.
        while process.poll() is None:
            assert time.monotonic() < deadline
            for stub in (stub for kernel in kernels(process.pid) for stub in children(kernel)):
                if status_of(stub).get("State", "").startswith("R"):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(stub, signal.SIGKILL)
        assert "a process of a program was killed from outside" in process.stderr.read().decode()
        assert process.returncode == 1


@pytest.mark.parametrize("after_s", [0.3, 0.6, 0.9])
def test_ctrl_c_during_the_start_is_an_end_without_words(directories: dict[str, str], after_s: float) -> None:
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with started("exec", "--max-speed", "1", "--", "sleep", "1000", env=directories, **pipes) as process:
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        terminal = process.communicate()[0]
    if is_of_python_alone(terminal.decode()):
        return
    assert (process.returncode, terminal) in ((130, b""), (-signal.SIGINT, b""))
