"""Processes that Dilaton starts beside guests end with it."""

from __future__ import annotations

import subprocess
import sys

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
