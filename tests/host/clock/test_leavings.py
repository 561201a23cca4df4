"""What calls of the clock leave on their kernel's stacks, which the kernel may read: it hashes registers into its random
numbers that it has not set (`kernel/leavings.rs` of the clock library). On the event drive no word of it may be an instant of
the host's."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dilaton.host.files import CLOCK_LIBRARY
from dilaton.host.here.memory.clock_page import OWN_COUNTER, ClockPage
from dilaton.host.orders import Drive, Orders
from tests.conftest import PATIENCE_HOST_S

KERNEL = Path(__file__).with_name("leavings.c")


KINDS = {"resumed", "stopped", "jumped", "idled"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That kernel, compiled."""
    program = tmp_path_factory.mktemp("leavings") / "kernel"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, KERNEL], check=True)
    return program


def left_by_calls(program: Path, drive: Drive) -> dict[str, int]:
    """How many instants of the host's the calls of a kernel leave on its stack, by kind of call."""
    host, line = socket.socketpair()
    with closing(ClockPage(0)) as page, host, line:
        page.command(Orders(Fraction(1), drive))
        variable = ",".join(map(str, (*page.guest_fds, line.fileno(), -1)))
        clock = {"LD_PRELOAD": str(CLOCK_LIBRARY), "DILATON_CLOCK": variable}
        run = subprocess.run(
            [program, str(line.fileno()), str(host.fileno())],
            env=os.environ | clock,
            pass_fds=(*page.guest_fds, line.fileno(), host.fileno()),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=PATIENCE_HOST_S,
        )
    return {kind: int(count) for kind, count in map(str.split, run.stdout.splitlines())}


@pytest.fixture(autouse=True)
def _counter_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel reads the time-stamp counter, too."""
    monkeypatch.setenv(OWN_COUNTER, "keep")


def test_on_the_event_drive_no_call_leaves_an_instant_of_the_host_on_the_stack(program: Path) -> None:
    assert left_by_calls(program, "event") == dict.fromkeys(KINDS, 0)


def test_on_the_work_drive_they_do_and_are_found(program: Path) -> None:
    found = left_by_calls(program, "work")
    assert found.keys() == KINDS
    assert found["resumed"] > 0
    assert found["idled"] > 0
