"""Whatever of a lab that stays is killed, its prompt or its parts: nothing is left behind."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from dilaton.run.control.answers import SHOW
from dilaton.run.control.requests import Client
from tests.conftest import started
from tests.host.kills.test_kills import (
    RunToKill,
    every_test_begins_alone,
    orphans_come_to_us,
    wait_until_no_more_is_shared_than,
    wait_until_nothing_remains,
)
from tests.host.processes import descendants, kill

__all__ = ["every_test_begins_alone", "orphans_come_to_us"]

LAB = "name: up-kills\nnodes: {a: {}}\n"


@pytest.mark.parametrize("round_", range(4))
def test_a_kill_of_any_part_leaves_nothing(tmp_path: Path, round_: int) -> None:
    chance = random.Random(round_)
    mounts, shared = RunToKill.read_mounts(), RunToKill.read_shared()
    lab = tmp_path / "lab.yaml"
    lab.write_text(LAB)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with started("up", lab, "--out", tmp_path / "run", **pipes) as process:
        assert process.stdin and process.stdout
        process.stdin.write("a echo begun; sleep 1000\n")
        process.stdin.flush()
        assert process.stdout.readline() == "begun\n"
        # The run is a process of its own, beside the prompt.
        with Client(tmp_path / "run") as client:
            run = client.request(SHOW)["pid"]
        assert run != process.pid
        kill(lambda: chance.choice([process.pid] if round_ == 0 else [run, *descendants(run)]))
    wait_until_nothing_remains()
    assert RunToKill.read_mounts() <= mounts
    wait_until_no_more_is_shared_than(shared)
