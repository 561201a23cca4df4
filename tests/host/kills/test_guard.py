"""A kernel that ends while it makes a process of its guest leaves nothing, also where it does not trace that yet.

On a host that is busy, this moment is long: here the guest's processes come after all others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import PATIENCE_HOST_S, environment, started
from tests.host.kills.test_kills import every_test_begins_alone, orphans_come_to_us, wait_until_nothing_remains
from tests.host.processes import children, descendants, kernels, name_of, status_of
from tests.random_kills import FORKING

__all__ = ["every_test_begins_alone", "orphans_come_to_us"]

LAST = 19
"""The lowest priority of processes that still get on: one that has the core only when nothing else wants it may never come
to make another."""

LAB = "name: forking\nnodes: {a: {}}\nrun: [{on: a, exec: [sh, -c, 'while :; do /bin/true; done']}]\n"


def kernel_that_makes_a_stub(pid: int) -> int | None:
    """A kernel below `pid`, one of whose children runs untraced; those that it traces get what is left of the CPU."""
    for kernel in descendants(pid):
        if name_of(kernel) != "linux.uml":
            continue
        stubs = {stub: status_of(stub) for stub in children(kernel)}
        traced = [stub for stub, status in stubs.items() if status.get("TracerPid") == str(kernel)]
        # A helper that never is traced sleeps, once it is up.
        if traced and any(s["State"][0] == "R" and s["TracerPid"] == "0" for s in stubs.values() if s):
            return kernel
        for stub in traced:
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, stub, LAST)
    return None


@pytest.mark.parametrize("round_", range(2))
@pytest.mark.parametrize("how", ["jailed", "not jailed"])
def test_a_kernel_that_ends_while_it_makes_a_stub_leaves_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, traced: None, how: str, round_: int
) -> None:
    if how == "not jailed":
        request.getfixturevalue("unjailed")
    lab = tmp_path / "lab.yaml"
    lab.write_text(LAB)
    command = (
        ("exec", "--max-speed", "1", "--", "sh", "-c", FORKING)
        if how == "jailed"
        else ("run", "--no-jail", lab, "--out", tmp_path / "run")
    )
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    busy: list[subprocess.Popen[bytes]] = []
    try:
        with started(*command, env=environment(), **pipes) as process:
            deadline = time.monotonic() + PATIENCE_HOST_S
            while (kernel := kernel_that_makes_a_stub(process.pid)) is None:
                assert time.monotonic() < deadline and process.poll() is None, "no stub was seen that is not traced"
                if not busy and kernels(process.pid):
                    busy += [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in os.sched_getaffinity(0)]
            # As the life line does when the command line is killed, but at once.
            process.send_signal(signal.SIGSTOP)
            os.kill(kernel, signal.SIGKILL)
            process.kill()
            process.wait()
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    wait_until_nothing_remains()
