"""A run works wherever its directory is, and whatever the machine is short of it says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PYTHON, RunLab, command_line, dilaton, environment

LAB = """
name: place
nodes: {a: {}}
run:
  - {on: a, name: hello, exec: echo hello from a}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab that needs nothing."""
    path = tmp_path / "lab.yaml"
    path.write_text(LAB)
    return path


@pytest.mark.parametrize("name", ["with space", "ümläut", "quote'\"$HOME", "-dash", "deep/er/and/deeper", "a:b,c=d"])
def test_a_run_directory_may_be_called_anything(lab: Path, tmp_path: Path, name: str) -> None:
    done = dilaton("run", lab, "--out", tmp_path / name)
    assert done.returncode == 0
    assert (tmp_path / name / "nodes" / "a" / "hello.stdout").read_text() == "hello from a\n"


def test_a_relative_run_directory_is_below_the_current_directory(lab: Path, tmp_path: Path) -> None:
    assert dilaton("run", lab, "--out", "here", cwd=tmp_path).returncode == 0
    assert (tmp_path / "here" / "run.json").exists()


def test_without_out_runs_are_numbered_below_runs(lab: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert dilaton("run", lab.name, cwd=tmp_path).returncode == 0
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(names) == 2
    assert all(name.startswith("place-20") and name.rpartition("-")[2].isdigit() for name in names)


@pytest.mark.parametrize("place", ["/dev/shm", "/var/tmp", "/tmp"])  # noqa: S108
def test_places_that_the_jail_covers_with_its_own_can_hold_a_run(lab: Path, place: str) -> None:
    directory = Path(place) / f"places-{os.getpid()}"
    try:
        assert dilaton("run", lab, "--out", directory).returncode == 0
        assert (directory / "nodes" / "a" / "hello.stdout").read_text() == "hello from a\n"
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_a_directory_that_cannot_be_written_is_bad_input(lab: Path) -> None:
    done = dilaton("run", lab, "--out", "/proc/dilaton")
    assert done.returncode == 2
    assert done.stderr.startswith("dilaton: /proc/dilaton: the run directory cannot be made: ")


@pytest.mark.usefixtures("unjailed")
def test_a_run_without_a_jail_works_and_leaves_its_files_in_the_run_directory(lab: Path, tmp_path: Path) -> None:
    before = {path.name for path in Path("/tmp").glob("*uml*")}  # noqa: S108
    assert dilaton("run", lab, "--no-jail", "--out", tmp_path / "run").returncode == 0
    assert (tmp_path / "run" / "nodes" / "a" / "hello.stdout").read_text() == "hello from a\n"
    assert {path.name for path in Path("/tmp").glob("*uml*")} <= before  # noqa: S108


def test_two_runs_side_by_side_do_not_meet(lab: Path, tmp_path: Path) -> None:
    runs = [
        subprocess.Popen(
            command_line("run", lab, "--out", tmp_path / str(number)), env=environment(), stderr=subprocess.DEVNULL
        )
        for number in range(3)
    ]
    assert [run.wait() for run in runs] == [0, 0, 0]
    for number in range(3):
        assert (tmp_path / str(number) / "nodes" / "a" / "hello.stdout").read_text() == "hello from a\n"


DISK_BYTES = 8 << 20


def test_a_full_disk_fails_the_run_says_so_and_leaves_a_whole_record(run_lab: RunLab, tmp_path: Path) -> None:
    """The run directory is on a disk of 8 MiB that vanishes with its command, so what is in it is copied out."""
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    copy.mkdir()
    script = f'"$@"; status=$?; cp -r {disk}/run/. {copy}; exit $status'
    small_disk = ["bwrap", "--dev-bind", "/", "/", "--size", str(DISK_BYTES), "--tmpfs", disk]
    outcome = run_lab(
        """
name: full-disk
nodes: {a: {}}
run:
  - {on: a, name: fill, exec: "sh -c 'head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2'", expect_exit: any}
  - {on: a, name: after, exec: echo after the flood, after: fill}
""",
        "--out",
        disk / "run",
        wrapper=[*small_disk, "sh", "-c", script, "sh"],
    )
    assert outcome.status == 1
    outcome.path = copy
    assert outcome.record["state"] == "failed"
    assert outcome.record["reason"] == f"the disk of {disk / 'run'} is full: outputs are incomplete"
    assert outcome.terminal.startswith("failed: the disk of ")
    assert outcome.process("fill")["outcome"] == "exited"


def test_a_disk_that_is_too_small_from_the_start_is_said_before_anything_runs(lab: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    small_disk = ["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 19), "--tmpfs", str(disk)]
    done = subprocess.run(
        [*small_disk, *command_line("run", lab, "--out", disk / "run")],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr


MANY_FILES = 3000


def test_a_node_can_use_more_files_than_the_caller_of_dilaton_may(run_lab: RunLab) -> None:
    """The guest's file system holds a host file for each file in its cache."""
    code = f"""
import os
seen = 0
for directory, _, files in os.walk("/usr"):
    for name in files:
        path = os.path.join(directory, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                file.read(1)
            seen += 1
            if seen == {MANY_FILES}:
                raise SystemExit(0)
raise SystemExit(1)
"""
    outcome = run_lab(
        f"name: files\nnodes: {{a: {{}}}}\nrun:\n"
        f"  - {{on: a, name: read, exec: {json.dumps([str(PYTHON), '-c', code])}}}\n",
        wrapper=["prlimit", "--nofile=256:"],
    )
    assert outcome.status == 0
