"""What is printed may not arrive; that is said in a line, or, where nobody wants it any more, not at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, command_line, environment

LAB = ROOT / "examples" / "dumbbell"


@pytest.fixture
def full() -> Iterator[int]:
    """What has no room for anything."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def begun(*arguments: str | Path, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    done = subprocess.run(
        command_line(*arguments), stdout=stdout, stderr=stderr, env=environment(), text=True, check=False
    )
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("arguments", [("--version",), ("check", LAB), ("plan", LAB)])
def test_output_that_cannot_be_written_is_told_in_a_line(arguments: tuple[str | Path, ...], full: int) -> None:
    assert begun(*arguments, stdout=full) == (1, "dilaton: No space left on device\n")


@pytest.mark.parametrize("verb", ["check", "plan"])
def test_a_reader_who_has_left_is_not_worth_a_word(verb: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    _, said = begun(verb, LAB, stdout=theirs)
    os.close(theirs)
    assert said == ""


def test_a_complaint_that_cannot_be_written_leaves_the_exit_status(full: int) -> None:
    assert begun("check", "none.yaml", stderr=full)[0] == 2


def test_names_of_files_need_not_be_text(tmp_path: Path) -> None:
    lab = tmp_path / os.fsdecode(b"\xff.yaml")
    lab.write_text("name: odd\nnodes: {a: {}}\n")
    assert begun("check", lab) == (0, "")
