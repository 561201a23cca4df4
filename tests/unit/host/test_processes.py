"""Processes that Dilaton starts beside guests end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from dilaton.host.processes import ending_with_us
from tests.conftest import PATIENCE_HOST_S, environment

PARENT = """
import subprocess
from dilaton.host.processes import ending_with_us
subprocess.run(["sh", "-c", "echo up; exec sleep 1000"], preexec_fn=ending_with_us())
"""


def test_a_child_ends_with_the_process_that_has_started_it() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        parent.kill()
        # The child has the other end of the pipe too.
        assert parent.communicate(timeout=PATIENCE_HOST_S)[0] == ""


def test_a_child_that_is_ended_before_it_is_a_program_of_its_own_does_not_live_on() -> None:
    ending = ending_with_us()

    def prepare() -> None:
        ending()
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert subprocess.run(["true"], preexec_fn=prepare, check=False).returncode == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)
