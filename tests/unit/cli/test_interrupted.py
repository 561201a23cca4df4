"""Ctrl-C ends a command as an interrupt, whatever becomes of the exception on its way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import environment

COMMAND = """
import os, signal
import dilaton.__main__ as command
import dilaton.cli.main

def main():
    try:
        {interrupt}
    except KeyboardInterrupt:
        pass
    raise ValueError("another error")

dilaton.cli.main.main = main
command.run()
"""


@pytest.mark.parametrize(("interrupt", "status"), [("os.kill(os.getpid(), signal.SIGINT)", 130), ("pass", 1)])
def test_an_interrupt_of_which_another_error_was_made_is_one_still(interrupt: str, status: int) -> None:
    command = [sys.executable, "-c", COMMAND.format(interrupt=interrupt)]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == status
    assert ("Traceback" in ended.stderr) == (status == 1)
