"""Benches: what they import and call is checked by mypy; one that talks to a guest by itself runs at its smallest size."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import PATIENCE_HOST_S, ROOT, environment, show


def test_what_a_guest_takes_to_be_ready_is_a_row_for_each_size() -> None:
    command = [sys.executable, str(ROOT / "benches" / "build.py"), "2"]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_HOST_S, check=False
    )
    show(command, done)
    assert done.returncode == 0
    *_, row = done.stdout.splitlines()
    nodes, *figures = [float(cell) for cell in row.strip("| ").split("|")]
    assert nodes == 2 and len(figures) == 4 and min(figures) > 0
