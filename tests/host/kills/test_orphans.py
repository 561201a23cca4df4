"""What a bubblewrap leaves that is killed while it makes a jail is ended."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dilaton.host.here.guests.guest import Guest
from dilaton.host.here.guests.kernel import Placement, Wanted
from dilaton.host.here.jail import orphans
from tests.conftest import PATIENCE_HOST_S, ROOT
from tests.host.processes import children, descendants, name_of

KILLS = 20
MAKING_HOST_S = 0.01
"""In which a jail is made: the kills are spread over it."""

TURNS_MAX = 10
"""Of the event loop, in which the start of a guest comes to where it waits for its jail and its kernel."""

BUSY_HOST_S = [0.0, 0.001, 0.002, 0.003, 0.005]
"""For how long the loop is busy with something else then, while bubblewrap makes the jail."""


def test_the_first_process_of_a_jail_is_ended_when_its_bubblewrap_is_gone() -> None:
    orphans.adopt()
    # Without a user namespace set up, as bubblewrap's own child: unshare forks it into a PID namespace, and is killed.
    command = ["unshare", "--user", "--pid", "--fork", "sleep", "1000"]
    parent = subprocess.Popen(command)
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    while not (found := children.read_text().split()):
        time.sleep(0.01)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    orphans.end()
    assert not Path(f"/proc/{found[0]}").exists()


def test_children_that_are_no_jails_are_left_alone() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        orphans.end()
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)


def _wait_until_what_is_left_is(before: list[int], when: str) -> None:
    """Buries our children, and waits until there are no others than before."""
    deadline = time.monotonic() + PATIENCE_HOST_S
    while (left := children(os.getpid())) != before:
        assert time.monotonic() < deadline, f"{when}: {[(pid, name_of(pid)) for pid in left]}"
        for pid in set(left) - set(before):
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.001)


def _in_a_process_of_its_own(kills: Callable[[Path], None], directory: Path) -> None:
    """Does that where there is one thread, as a process that was forked beside others may wait for their locks for ever."""
    code = (
        f"from pathlib import Path; from {__name__} import {kills.__name__} as kills; kills(Path({str(directory)!r}))"
    )
    paths = os.pathsep.join((str(ROOT), str(ROOT / "python")))
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": paths}, check=True)


def test_a_dilaton_that_is_killed_while_its_jail_is_made_leaves_nothing(tmp_path: Path) -> None:
    _in_a_process_of_its_own(kill_dilaton, tmp_path)


def kill_dilaton(tmp_path: Path) -> None:
    """Kills a Dilaton while a jail is made, at many moments."""
    orphans.adopt()
    before = children(os.getpid())
    for kill in range(KILLS):
        if (dilaton := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                asyncio.run(Guest.start(Wanted("guest0", 64 << 20), Placement(tmp_path, jailed=True)))
            os._exit(0)
        while not children(dilaton):
            time.sleep(0.0005)
        time.sleep(MAKING_HOST_S * kill / KILLS)
        os.kill(dilaton, signal.SIGKILL)
        os.waitpid(dilaton, 0)
        _wait_until_what_is_left_is(before, f"after kill {kill}")


def test_a_bubblewrap_and_a_dilaton_that_are_killed_while_a_jail_is_made_leave_nothing(tmp_path: Path) -> None:
    _in_a_process_of_its_own(kill_both, tmp_path)


def kill_both(tmp_path: Path) -> None:
    """Kills a bubblewrap that makes a jail, and its Dilaton, at many moments."""
    orphans.adopt()
    before = children(os.getpid())
    for kill in range(KILLS):
        if (dilaton := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                asyncio.run(Guest.start(Wanted("guest0", 64 << 20), Placement(tmp_path, jailed=True)))
            os._exit(0)
        while not (boxes := [pid for pid in descendants(dilaton) if name_of(pid) == "bwrap"]):
            time.sleep(0.0005)
        # It has no time to notice.
        os.kill(dilaton, signal.SIGSTOP)
        time.sleep(MAKING_HOST_S / 5 * kill / KILLS)
        with contextlib.suppress(ProcessLookupError):
            os.kill(boxes[0], signal.SIGKILL)
        os.kill(dilaton, signal.SIGKILL)
        os.waitpid(dilaton, 0)
        _wait_until_what_is_left_is(before, f"after kill {kill}")


def test_a_guest_that_is_given_up_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    async def give_up(turns: int, busy_host_s: float) -> None:
        starting = asyncio.create_task(Guest.start(Wanted("guest0", 64 << 20), Placement(tmp_path, jailed=True)))
        for _ in range(turns):
            await asyncio.sleep(0)
        time.sleep(busy_host_s)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting

    before = children(os.getpid())
    for turns, busy_host_s in itertools.product(range(TURNS_MAX), BUSY_HOST_S):
        asyncio.run(give_up(turns, busy_host_s))
    assert children(os.getpid()) == before
