"""`./dev systems` leaves nothing mounted, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.host.processes import descendants

MMDEBSTRAP = """#!/bin/sh
for tree; do :; done
mkdir -p "$tree/proc" && mount -t proc proc "$tree/proc" && echo mounted && exec sleep 600
"""
"""Mounts in the tree that it is asked for, as mmdebstrap does for root, and goes on with that."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts there without a namespace")
@pytest.mark.parametrize("killed", ["all", "namespace"])
def test_a_tree_whose_making_is_killed_has_nothing_mounted(tmp_path: Path, killed: str) -> None:
    program = tmp_path / "bin" / "mmdebstrap"
    program.parent.mkdir()
    program.write_text(MMDEBSTRAP)
    program.chmod(0o755)
    shell = subprocess.Popen(
        ["bash", "-c", f"say() {{ :; }}; . {ROOT}/scripts/systems.sh; make_tree bookworm; exit"],
        env={**os.environ, "root": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert shell.stdout and shell.stdout.readline() == "mounted\n"
        below = descendants(shell.pid)
        assert str(tmp_path) in Path(f"/proc/{below[-1]}/mounts").read_text()
        if killed == "namespace":
            os.kill(below[0], signal.SIGKILL)
        else:
            os.killpg(shell.pid, signal.SIGKILL)
        rest, _ = shell.communicate()
        assert rest == "", "all that was started has ended"
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
