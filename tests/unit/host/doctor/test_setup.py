"""What `scripts/setup.sh` says to a user who may not set up the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SETUP_SH = Path(__file__).resolve().parents[4] / "scripts" / "setup.sh"


@pytest.mark.parametrize(
    ("built", "said"),
    [("true", "may not run /nowhere/python3, with which"), ("false", "is not set up for its present sources")],
)
def test_a_user_hears_whether_the_tree_or_its_python_is_out_of_reach(tmp_path: Path, built: str, said: str) -> None:
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs.parent / "run.stamp").touch()
    (programs / "python").symlink_to("/nowhere/python3")
    script = f'set -eu; root=$1; cp -r "${{2%/*}}" "$root"; . "$root/scripts/setup.sh"; is_built() {{ {built}; }}; why_not_set_up'
    done = subprocess.run(
        ["/bin/bash", "-c", script, "bash", tmp_path, SETUP_SH], capture_output=True, text=True, check=True
    )
    assert said in done.stdout
