"""What `scripts/setup.sh` says to a user who may not set up the tree, and what a server does not wait for."""

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
    assert said in ran(tmp_path, f"is_built() {{ {built}; }}; why_not_set_up")


def test_a_server_does_not_wait_for_its_first_page_but_for_one_of_newer_sources(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    told = """
        mkfifo "$root/goes_on"
        has_npm() { true; }
        build_page() { read -r _ <"$root/goes_on" && mkdir -p "$page" && touch "$page/index.html"; }
        make_page_beside
        is_page_awaited server || echo the server starts
        echo >"$root/goes_on"
        wait
        [[ -e $page/index.html ]] && echo its page is there
        make_page_beside
        is_page_awaited server && echo its next page is waited for
    """
    assert ran(tmp_path, told).splitlines() == [
        "the server starts",
        "its page is there",
        "its next page is waited for",
    ]


def ran(root: Path, script: str) -> str:
    """What a script says that has sourced `scripts/setup.sh` in another tree."""
    sourced = f'set -eu; root=$1; cp -r "${{2%/*}}" "$root"; . "$root/scripts/setup.sh"; {script}'
    done = subprocess.run(
        ["/bin/bash", "-c", sourced, "bash", root, SETUP_SH], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout
