"""A Python that ordinary users may run, which root's own need not be."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

NOBODY = "65534"


def interpreter() -> list[str]:
    """A Python that an ordinary user can run Dilaton with; skips the test where there is none."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    for python in (sys.executable, "/usr/bin/python3"):
        command = ["env", f"PYTHONPATH={ROOT / 'python'}:{packages}", python]
        as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        if not subprocess.run(
            [*as_nobody, *command, "-c", "import dilaton.cli.runs.run"], capture_output=True
        ).returncode:
            return command
    pytest.skip("no Python here that an ordinary user may read")
