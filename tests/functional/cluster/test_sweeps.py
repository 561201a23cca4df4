"""A sweep over hosts: what it leaves is what it leaves on one machine, also where agents are killed and hosts are lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import PATIENCE_HOST_S, command_line, dilaton, environment
from tests.functional.cluster.named_hosts import NamedHosts, named_hosts, processes_of
from tests.functional.cluster.test_cluster import below

LAB = """name: small
time: {drive: event, max_speed: 1}
nodes: {a: , b: }
links: [{endpoints: [a, b], delay: 10ms}]
run: [{on: a, exec: ping -c 11 -i 0.1 b}]
"""

SWEEP = ("--set", "links.0.delay=10ms,40ms", "--repeat", "2")

APART = LAB + "guests: per-node\n"
"""The lab as two machines can have it."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamedHosts]:
    """Two hosts."""
    with named_hosts(tmp_path_factory.mktemp("hosts"), 2) as made:
        yield made


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The table of the sweep on one machine, at any speed."""
    directory = tmp_path_factory.mktemp("alone")
    (directory / "lab.yaml").write_text(LAB.replace(", max_speed: 1", ""))
    done = dilaton("sweep", directory, *SWEEP, "-j", "2", "--out", directory / "out")
    assert done.returncode == 0, done.stderr
    return measured(directory / "out")


def measured(out: Path) -> pd.DataFrame:
    """What runs have measured in virtual time."""
    table = pd.read_csv(out / "sweep.csv")
    assert table.state.unique().tolist() == ["finished"]
    return table[["run", "repeat", "virtual_s", *(name for name in table.columns if name.startswith("ping."))]]


def lab_in(directory: Path, lab: str = LAB) -> Path:
    (directory / "lab.yaml").write_text(lab)
    return directory


def agents_below(pid: int) -> list[int]:
    """The host agents that a process has started, and those that it has started."""
    return [each for each, command in below(pid).items() if "dilaton.cluster.host_agent" in command]


def guests_of(hosts: NamedHosts, number: int) -> list[int]:
    """The host agents of a host that have guests; who is asked what it has only asks a kernel for its version."""
    agents = [pid for pid, command in processes_of(hosts.holder(number)).items() if "host-agent" in command]
    return [pid for pid in agents if any("rootfstype=hostfs" in command for command in below(pid).values())]


def test_runs_go_to_all_hosts_and_leave_what_they_leave_on_one_machine(
    hosts: NamedHosts, alone: pd.DataFrame, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = hosts.dilaton("sweep", lab_in(tmp_path), *SWEEP, "-j", "2", "--out", out, "--onto", ",".join(hosts.names))
    assert done.returncode == 0, done.stderr
    assert {done.stdout.count(f"well, on {name}") for name in hosts.names} == {2}, done.stdout
    pd.testing.assert_frame_equal(measured(out), alone)
    assert not hosts.kept()
    again = hosts.dilaton("sweep", lab_in(tmp_path), *SWEEP, "--out", out, "--onto", hosts.names[0])
    assert "4 done already" in again.stdout


def test_a_run_whose_agent_was_killed_is_run_again_with_the_same_result(
    hosts: NamedHosts, alone: pd.DataFrame, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("sweep", lab_in(tmp_path), *SWEEP, "-j", "2", "--out", out, "--onto", ",".join(hosts.names))
    with hosts.started(*arguments, stdout=subprocess.PIPE) as sweep:
        end = time.monotonic() + PATIENCE_HOST_S
        while not (agents := guests_of(hosts, 2)):
            assert time.monotonic() < end and sweep.poll() is None
            time.sleep(0.02)
        os.kill(agents[0], signal.SIGKILL)
        stdout, stderr = sweep.communicate()
    assert sweep.returncode == 0, (stdout, stderr)
    assert f"{hosts.names[1]} was lost: the host agent of {hosts.names[1]} was killed by signal 9" in stdout, stdout
    assert stdout.count("it is run again") == 1 and "gets no runs any more" not in stdout
    pd.testing.assert_frame_equal(measured(out), alone)
    assert not hosts.kept()


def test_runs_of_a_host_that_is_cut_off_go_to_the_other_one(
    hosts: NamedHosts, alone: pd.DataFrame, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("sweep", lab_in(tmp_path), *SWEEP, "-j", "2", "--out", out, "--onto", ",".join(hosts.names))
    try:
        with hosts.started(*arguments, stdout=subprocess.PIPE) as sweep:
            end = time.monotonic() + PATIENCE_HOST_S
            while not guests_of(hosts, 2):
                assert time.monotonic() < end and sweep.poll() is None
                time.sleep(0.02)
            hosts.go(2)
            stdout, stderr = sweep.communicate()
    finally:
        hosts.come_back(2)
    assert sweep.returncode == 0, (stdout, stderr)
    assert f"{hosts.names[1]} gets no runs any more" in stdout
    assert stdout.count(f"well, on {hosts.names[0]}") == 4
    pd.testing.assert_frame_equal(measured(out), alone)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The table of the sweep of two guests on one machine, at any speed."""
    directory = lab_in(tmp_path_factory.mktemp("apart"), APART.replace(", max_speed: 1", ""))
    done = dilaton("sweep", directory, *SWEEP, "--out", directory / "out")
    assert done.returncode == 0, done.stderr
    return measured(directory / "out")


def test_each_run_is_over_machines_made_of_this_one_and_again_where_an_agent_was_killed(
    apart: pd.DataFrame, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("sweep", lab_in(tmp_path, APART), *SWEEP, "--out", out, "--machines", "2")
    with subprocess.Popen(
        command_line(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as sweep:
        try:
            end = time.monotonic() + PATIENCE_HOST_S
            while len(found := agents_below(sweep.pid)) < 2:
                assert time.monotonic() < end and sweep.poll() is None
                time.sleep(0.02)
            os.kill(found[0], signal.SIGKILL)
            stdout, stderr = sweep.communicate()
        finally:
            sweep.kill()
    assert sweep.returncode == 0, (stdout, stderr)
    assert re.search(r"machine[01] .*; it is run again", stdout), stdout
    assert stdout.count(": well") == 4
    pd.testing.assert_frame_equal(measured(out), apart)
    assert not list(out.rglob("machine[01]"))


def test_each_run_is_over_as_many_of_the_hosts_as_it_is_to_have(
    hosts: NamedHosts, apart: pd.DataFrame, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    over = ("--onto", ",".join(hosts.names), "--machines", "2")
    done = hosts.dilaton("sweep", lab_in(tmp_path, APART), *SWEEP, "--out", out, *over)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"well, on 10\.77\.[12]\.2, 10\.77\.[12]\.2$", done.stdout, re.MULTILINE)) == 4, done.stdout
    pd.testing.assert_frame_equal(measured(out), apart)
    assert not hosts.kept()


def test_hosts_that_cannot_have_the_runs_are_refused_before_any_begins(hosts: NamedHosts, tmp_path: Path) -> None:
    lab = lab_in(tmp_path)
    out = tmp_path / "out"
    for settings, said in (
        (("--onto", "-oX=y"), "not the name of a host"),
        (("--onto", hosts.names[0], "--set", "time.drive=wall"), "on the wall drive"),
        (
            ("--onto", hosts.names[0], "--machines", "2"),
            "--machines: 2: --onto names 1 host, and each run is to be on so many",
        ),
        (("--machines", "2"), "the lab has 1 guest, and each is on one machine"),
        (("--onto", f"{hosts.names[0]},10.77.9.2"), "10.77.9.2: "),
    ):
        done = hosts.dilaton("sweep", lab, "--repeat", "2", "--out", out, *settings)
        assert done.returncode in (2, 3), done.stderr
        assert said in done.stderr, done.stderr
    assert not out.exists()
