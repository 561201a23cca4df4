"""A run whose programs write for ever ends with words, and leaves the disk to others."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from dilaton.host.here.guests.console import MEMORY_BYTES_MAX
from tests.conftest import PATIENCE_HOST_S, RunLab, dilaton, started

TALKS = """
name: talks
nodes: {a: {}}
run: [{on: a, name: talk, exec: "yes"}]
"""

FILLS = """
name: fills
nodes: {a: {}}
run:
  - on: a
    name: fill
    exec:
      - sh
      - -c
      - "mkdir /tmp/host; mount -t hostfs -o / none /tmp/host; cd /tmp/host/tmp/dilaton/run;
         for i in $(seq 1000); do dd if=/dev/zero of=hidden$i bs=1M count=10 2> /dev/null; done"
"""


@pytest.mark.parametrize(("lab", "file"), [(TALKS, "nodes/a/talk.stdout"), (FILLS, "hidden")])
def test_a_run_that_takes_too_much_of_the_disk_is_ended_and_says_why(run_lab: RunLab, lab: str, file: str) -> None:
    outcome = run_lab(lab, "--max-disk", "50MiB")
    assert outcome.record["state"] == "failed"
    assert "the run was ended since it took more than 50.0 MiB of the disk" in outcome.record["reason"]
    assert f"for {file}" in outcome.record["reason"]
    assert outcome.record["reason"] in outcome.terminal


LARGE = """
name: large
nodes: {a: {}}
run:
  - on: a
    name: write
    exec:
      - sh
      - -c
      - "mkdir /tmp/host; mount -t hostfs -o / none /tmp/host; cd /tmp/host/tmp/dilaton/run;
         dd if=/dev/zero of=large bs=1 count=1 seek=2G; echo $?; dd if=/dev/zero of=small bs=1 count=1 seek=1G; echo $?"
"""


def test_a_file_larger_than_the_run_directory_may_be_is_an_error_for_who_writes_it(run_lab: RunLab) -> None:
    outcome = run_lab(LARGE, "--max-disk", "1025MiB")
    assert outcome.record["state"] == "finished"
    assert outcome.stdout("a", "write").split() == ["1", "0"]
    assert "File too large" in (outcome.path / "nodes/a/write.stderr").read_text()


def test_a_limit_in_which_no_run_fits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(TALKS)
    for verb in ("run", "up", "sweep"):
        done = dilaton(verb, tmp_path / "lab.yaml", "--max-disk", "1MB")
        assert (done.returncode, done.stderr) == (2, "dilaton: --max-disk: 1MB: a run takes 10MiB at least\n")


def test_a_command_that_writes_to_its_console_for_ever_takes_little_memory() -> None:
    script = "mknod /tmp/console c 5 1; exec cat /dev/zero > /tmp/console"
    with started("exec", "--max-speed", "1", "--", "sh", "-c", script) as process:
        deadline = time.monotonic() + PATIENCE_HOST_S
        # What is old is forgotten every so often, in the host's time.
        while not has_forgotten(console_of(process.pid)):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)


def has_forgotten(written: os.stat_result) -> bool:
    """Whether a long file has no room for all of it."""
    return written.st_size >= 3 * MEMORY_BYTES_MAX and written.st_blocks * 512 < written.st_size


def console_of(pid: int) -> os.stat_result:
    """The largest of the files in memory that a process has open."""
    found = [os.stat("/dev/null")]
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith("/memfd:dilaton "):
                found.append(path.stat())
    return max(found, key=lambda status: status.st_size)
