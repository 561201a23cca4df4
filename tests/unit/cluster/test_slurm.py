"""What Slurm says of a job, and what it is asked for."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path

import pytest

from dilaton.cluster.engines import slurm
from dilaton.cluster.engines.slurm import Slurm, given, repeated
from dilaton.host.errors import GuestError, HostLacksError
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan

PLAN = compile_plan(loads("name: lab\nnodes: {a: {}}\nrun: [{on: a, exec: sh}]", "lab.yaml"))


@pytest.mark.parametrize(("counts", "found"), [("2", [2]), ("2(x3)", [2, 2, 2]), ("2(x2),16", [2, 2, 16])])
def test_counts_that_repeat_are_one_for_each_node(counts: str, found: list[int]) -> None:
    assert repeated(counts) == found


@pytest.mark.parametrize("counts", ["", "x", "2(x)", "2(3)", "2,,3"])
def test_what_are_no_counts_is_refused(counts: str) -> None:
    with pytest.raises(ValueError, match="not the counts"):
        repeated(counts)


def test_within_a_job_its_nodes_are_known_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(slurm.JOB, raising=False)
    assert given() is None
    monkeypatch.setenv(slurm.JOB, "7")
    monkeypatch.setenv(slurm.CPUS, "2(x2),4")
    assert given() == 3


def asked(directory: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Has an engine ask for three nodes where Slurm's programs are these scripts."""
    monkeypatch.delenv(slurm.JOB, raising=False)
    for name, script in programs.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin" if programs else str(directory))

    async def do() -> None:
        engine = Slurm(3, ["dilaton"], "")
        try:
            await engine.hosts(PLAN, jailed=True)
        finally:
            await engine.stop()

    asyncio.run(do())


def test_without_slurm_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostLacksError, match=r"salloc cannot be started \(No such file or directory\)"):
        asked(tmp_path, monkeypatch)


def test_what_slurm_refuses_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = "echo 'salloc: error: invalid partition' >&2; exit 1"
    with pytest.raises(GuestError, match="Slurm gives no 3 nodes: salloc: error: invalid partition"):
        asked(tmp_path, monkeypatch, salloc=refusing)


def test_a_job_that_is_too_small_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 SLURM_JOB_CPUS_PER_NODE=2"
    salloc = f'while [ "$1" != sh ]; do shift; done\nenv {told} "$@"; echo given back > {tmp_path}/over'
    with pytest.raises(HostLacksError, match="job 7 has 1 nodes, and the run is to have 3"):
        asked(tmp_path, monkeypatch, salloc=salloc, scontrol="echo n1")
    assert (tmp_path / "over").read_text() == "given back\n"


def test_a_job_is_asked_for_with_all_memory_of_its_nodes_unless_somebody_says_how_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(slurm.ASKED_MEMORY)]:
        monkeypatch.delenv(name)
    salloc = f'echo "$1 $2 $3 $4" >> {tmp_path}/asked; exit 1'
    for _ in range(2):
        with pytest.raises(GuestError):
            asked(tmp_path, monkeypatch, salloc=salloc)
        monkeypatch.setenv("SALLOC_MEM_PER_NODE", "4000")
    first, second = (tmp_path / "asked").read_text().splitlines()
    assert first == "--nodes=3 --exclusive --job-name=dilaton --mem=0"
    assert second == "--nodes=3 --exclusive --job-name=dilaton sh"


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({}, [math.inf, math.inf]),
        ({slurm.MEMORY: "", slurm.MEMORY_OF_CPU: ""}, [math.inf, math.inf]),
        ({slurm.MEMORY: "500"}, [500 << 20, 500 << 20]),
        ({slurm.MEMORY_OF_CPU: "100"}, [200 << 20, 1600 << 20]),
    ],
)
def test_the_memory_of_a_job_is_said_by_node_or_by_cpu_or_is_all_there_is(
    told: dict[str, str], found: list[float]
) -> None:
    assert slurm.memory_bytes(told, [2, 16]) == found
