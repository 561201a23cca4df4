"""A lab over nodes that Slurm has: the same bytes as on one machine, and no job is left, whatever ends the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.cluster.files import place
from tests.conftest import PATIENCE_HOST_S, Outcome, RunLab, command_line
from tests.functional.cluster.slurm_nodes import IS_THERE, SlurmNodes, slurm_nodes
from tests.functional.cluster.test_cluster import LAB, assert_same

pytestmark = pytest.mark.skipif(not IS_THERE, reason="there is no Slurm; ./dev engines fetches it")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmNodes]:
    """The cluster."""
    with slurm_nodes(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab of three guests."""
    file = tmp_path / "lab.yaml"
    file.write_text(LAB)
    return file


def assert_no_jobs(nodes: SlurmNodes) -> None:
    end = time.monotonic() + PATIENCE_HOST_S
    while jobs := nodes.jobs():
        assert time.monotonic() < end, jobs
        time.sleep(0.2)
    assert place.in_use(nodes.directory / "cache/dilaton/machines") == 0


def test_a_lab_gives_the_same_bytes_on_two_nodes_of_a_job_of_its_own(
    nodes: SlurmNodes, lab: Path, tmp_path: Path, run_lab_once: RunLab
) -> None:
    alone = run_lab_once(LAB)
    out = tmp_path / "run"
    done = nodes.dilaton("run", lab, "--out", out, "--engine", "slurm", "--machines", "2")
    print(done.stdout, done.stderr)
    assert_same(Outcome(done.returncode, done.stdout + done.stderr, out), alone)
    assert_no_jobs(nodes)


def test_within_a_job_a_run_has_the_nodes_of_the_job(nodes: SlurmNodes, lab: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = command_line("run", lab, "--out", out, "--engine", "slurm")
    done = nodes.done("salloc", "--nodes=2", *map(str, run))
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "run.json").read_text())
    assert record["state"] == "finished"
    assert_no_jobs(nodes)
    too_many = nodes.done(
        "salloc", "--nodes=1", *map(str, command_line("run", lab, "--engine", "slurm", "--machines", "2"))
    )
    assert too_many.returncode == 3
    assert "has 1 nodes, and the run is to have 2" in too_many.stderr


def test_each_run_of_a_sweep_has_a_job_of_its_own_and_in_a_job_they_go_one_after_another(
    nodes: SlurmNodes, lab: Path, tmp_path: Path
) -> None:
    sweep = ("sweep", lab, "--repeat", "2", "--engine", "slurm")
    done = nodes.dilaton(*sweep, "-j", "2", "--out", tmp_path / "out")
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert done.stdout.count(": well") == 2
    assert_no_jobs(nodes)
    within = nodes.done("salloc", "--nodes=1", *map(str, command_line(*sweep, "-j", "2", "--out", tmp_path / "within")))
    assert within.returncode == 2
    assert "--jobs: 2: this is in a job of Slurm's, which each run takes for itself" in within.stderr


def test_more_nodes_than_there_are_is_what_slurm_says_it_is(nodes: SlurmNodes, lab: Path) -> None:
    done = nodes.dilaton("run", lab, "--engine", "slurm", "--machines", "3")
    assert done.returncode == 1
    assert "Slurm gives no 3 nodes: salloc: error: " in done.stdout + done.stderr


def test_a_job_is_as_its_variables_say_and_has_all_memory_and_its_end_by_slurm_is_told(nodes: SlurmNodes) -> None:
    command, told = (
        nodes.entered(sys.executable, "-c", CONDUCTOR),
        {"SALLOC_PARTITION": "small", "SALLOC_TIMELIMIT": "7"},
    )
    with subprocess.Popen(command, env=nodes.environment() | told, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "there\n"
        number, *shown = nodes.done("squeue", "--noheader", "--format=%A %P %l %m").stdout.split()
        assert shown == ["small", "7:00", "0"], "0 is all, and not the 10 MB for a CPU of that partition"
        assert nodes.done("scancel", number).returncode == 0
        assert f"; job {number} is over for Slurm: CANCELLED, None" in process.stdout.read()
    assert_no_jobs(nodes)


CONDUCTOR = """
import asyncio, os, shlex
from dilaton.cluster.engines.slurm import Slurm
from dilaton.lab import loads
from dilaton.plan.compile import compile

PLAN = compile(loads("name: lab\\nnodes: {a: {}}\\nrun: [{on: a, exec: sh}]", "lab.yaml"))

async def conduct():
    engine = Slurm(2, shlex.split(os.environ["DILATON_REMOTE"]), "")
    hosts = await engine.hosts(PLAN, jailed=True)
    print("there", flush=True)
    print(await engine.ended(hosts[0]), flush=True)
    await engine.stop()

asyncio.run(conduct())
"""
"""Has agents on two nodes, and waits for the end of the first."""


@pytest.mark.parametrize("victim", ["host agent", "conductor"])
def test_whatever_is_killed_no_agent_and_no_job_is_left(nodes: SlurmNodes, victim: str) -> None:
    command = nodes.entered(sys.executable, "-c", CONDUCTOR)
    with subprocess.Popen(command, env=nodes.environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "there\n"
        assert nodes.jobs() and len(agents()) == 2
        if victim == "conductor":
            process.kill()
        else:
            os.kill(min(agents()), signal.SIGKILL)
            os.kill(max(agents()), signal.SIGKILL)
            assert (
                "the host agent of td1 ended with status 137: srun: error: td1: task 0: Killed" in process.stdout.read()
            )
    end = time.monotonic() + PATIENCE_HOST_S
    while agents():
        assert time.monotonic() < end
        time.sleep(0.1)
    assert_no_jobs(nodes)


def agents() -> list[int]:
    """Host agents that are steps of Slurm's, by the names of their machines' jobs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            is_ours = b"SLURM_STEP_ID=" in (process / "environ").read_bytes()
        except OSError:
            continue
        if is_ours and b"host-agent" in words and b"-m" in words and b"srun" not in words[0]:
            found.append(int(process.name))
    return found
