"""Processes that Dilaton starts beside guests end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from dilaton.host.processes import has_ended
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


def test_a_process_has_ended_also_where_nobody_has_waited_for_it() -> None:
    process = subprocess.Popen(["sleep", "1000"])
    try:
        assert not has_ended(process.pid)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert not has_ended(process.pid)
    finally:
        process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(process.pid), "while it is a zombie"
    process.wait()
    assert has_ended(process.pid)
