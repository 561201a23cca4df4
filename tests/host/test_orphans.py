"""What a bubblewrap leaves that is killed while it makes a jail is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from dilaton.host import orphans


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
