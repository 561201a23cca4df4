"""A machine that lacks something is told what, and the command that helps: exit status 3, and nothing was started."""

from __future__ import annotations

import functools
import json
import os
import resource
import shutil
import stat
from pathlib import Path

import pytest

from tests.conftest import dilaton, environment

LAB = """
name: lacks
nodes: {a: {}}
run: [{on: a, name: it, exec: "true"}]
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab that needs nothing."""
    path = tmp_path / "lab.yaml"
    path.write_text(LAB)
    return path


def machine_without(directory: Path, *names: str) -> dict[str, str]:
    """An environment whose PATH has everything that this machine's has but these programs.

    Args:
        directory: Where its programs are linked; one that jails see.
        names: What it lacks.
    """
    programs = directory / "bin"
    programs.mkdir()
    for place in filter(os.path.isdir, os.environ["PATH"].split(":")):
        for path in Path(place).iterdir():
            if path.name not in names and not (programs / path.name).is_symlink():
                (programs / path.name).symlink_to(path)
    # A kernel that is chosen by its name lies elsewhere.
    here = {name: value for name, value in environment().items() if name != "DILATON_KERNEL"}
    return here | {"PATH": str(programs)}


@pytest.mark.parametrize(
    ("missing", "packages"),
    [
        (["linux.uml"], "user-mode-linux"),
        (["bwrap"], "bubblewrap"),
        (["linux.uml", "bwrap"], "user-mode-linux bubblewrap"),
    ],
)
def test_missing_programs_are_named_with_the_command_that_installs_them(
    lab: Path, tmp_path: Path, open_directory: Path, missing: list[str], packages: str
) -> None:
    done = dilaton("run", lab, "--out", tmp_path / "run", env=machine_without(open_directory, *missing))
    assert done.returncode == 3
    assert all(f"{name} is not installed" in done.stderr for name in missing)
    assert done.stderr.endswith(f"to fix it: sudo apt-get install {packages}\n")
    assert not (tmp_path / "run").exists()


def fake_bwrap(directory: Path, script: str) -> dict[str, str]:
    """An environment with another bwrap."""
    found = machine_without(directory, "bwrap")
    bwrap = directory / "bin" / "bwrap"
    bwrap.write_text(f"#!/bin/sh\n{script}\n")
    bwrap.chmod(bwrap.stat().st_mode | stat.S_IXUSR)
    return found


FORBIDDEN = 'test "$1" = --version && exec echo bubblewrap 0.0; echo "bwrap: No permissions to create a new namespace" >&2; exit 1'


@pytest.mark.usefixtures("unjailed")
def test_where_no_jail_can_be_made_a_run_is_refused_unless_it_is_asked_for_in_so_many_words(
    lab: Path, tmp_path: Path, open_directory: Path
) -> None:
    forbidding = fake_bwrap(open_directory, FORBIDDEN)
    done = dilaton("run", lab, "--out", tmp_path / "run", env=forbidding)
    assert done.returncode == 3
    assert "jail" in done.stderr and "--no-jail" in done.stderr
    assert not (tmp_path / "run").exists()
    assert dilaton("run", lab, "--out", tmp_path / "run", "--no-jail", env=forbidding).returncode == 0


@pytest.mark.usefixtures("unjailed")
def test_without_bwrap_a_run_without_a_jail_needs_none(lab: Path, tmp_path: Path, open_directory: Path) -> None:
    done = dilaton("run", lab, "--out", tmp_path / "run", "--no-jail", env=machine_without(open_directory, "bwrap"))
    assert done.returncode == 0


def test_doctor_lists_what_is_missing_and_fails(open_directory: Path) -> None:
    done = dilaton("doctor", env=machine_without(open_directory, "linux.uml"))
    assert done.returncode == 3
    assert "linux.uml is not installed" in done.stdout
    assert "sudo apt-get install user-mode-linux" in done.stdout


def test_doctor_is_content_with_this_machine() -> None:
    assert shutil.which("linux.uml") and shutil.which("bwrap"), "./dev setup installs them"
    assert dilaton("doctor").returncode == 0


def test_a_machine_that_allows_too_few_open_files_is_told_so(lab: Path, tmp_path: Path) -> None:
    few = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (512, 512))
    done = dilaton("run", lab, "--out", tmp_path / "run", preexec_fn=few)
    assert done.returncode == 3
    assert "open files: at most 512" in done.stderr
    assert not (tmp_path / "run").exists()


def test_programs_that_a_lab_runs_and_this_machine_lacks_are_told_before_anything_starts(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: lacks\nnodes: {a: {}}\nrun:\n  - {on: a, exec: no-such-program --fast}\n")
    for verb in (("check", lab), ("run", lab, "--out", tmp_path / "run")):
        done = dilaton(*verb)
        assert done.returncode == 3, verb
        assert "no-such-program: not on this machine; to fix it: " in done.stderr
        assert "apt-file search -x '/no-such-program$'" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_script_that_nodes_cannot_see_is_a_mistake(tmp_path: Path) -> None:
    script, lab = Path("/tmp") / f"{tmp_path.name}.sh", tmp_path / "lab.yaml"  # noqa: S108 - what is tested
    lab.write_text(f"name: lacks\nnodes: {{a: {{}}}}\nrun: [{{on: a, exec: sh {script}}}]\n")
    script.touch()
    try:
        done = dilaton("check", lab)
    finally:
        script.unlink()
    assert done.returncode == 2
    assert f"{lab}:3:21: run[0].exec: {script}: nodes have a /tmp" in done.stderr


def test_a_run_without_an_end_is_told_and_gets_one(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: endless\nnodes: {a: }\nrun: [{on: a, exec: ping localhost}]\n")
    assert "a/ping never ends by itself: the run ends at 60 s" in dilaton("check", lab).stdout
    done = dilaton("run", lab, "--out", tmp_path / "run")
    assert (done.returncode, json.loads((tmp_path / "run" / "run.json").read_text())["state"]) == (0, "finished")
    assert "a/ping never ends by itself: the run ends at 60 s" in done.stderr
