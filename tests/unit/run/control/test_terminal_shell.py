"""The shell that a terminal in a node has where nothing else is named."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from dilaton.run.control.terminal_client import SHELL
from tests.conftest import PATIENCE_HOST_S


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_it_says_where_it_is_and_does_not_execute_what_is_made_for_the_host(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("echo start files of the host\nPS1='other> '\n")
    ours, its = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb"}
    streams = {"stdin": its, "stdout": its, "stderr": its}
    shell = subprocess.Popen(SHELL, cwd=tmp_path, env=environment, start_new_session=True, **streams)
    os.close(its)
    shown = b""
    try:
        while not shown.rstrip().endswith((b":~#", b":~$")):
            shown += os.read(ours, 4096)
            assert b"other>" not in shown and b"start files" not in shown, shown
        os.write(ours, b"exit 7\n")
        assert shell.wait(PATIENCE_HOST_S) == 7
    finally:
        shell.kill()
        os.close(ours)
