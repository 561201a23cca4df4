"""A lab over machines of a cluster of Ray's that is ours: the same bytes as on one, and nothing of it is left."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from dilaton.cluster import own
from dilaton.cluster.files import place
from tests.conftest import PATIENCE_HOST_S, ROOT, Outcome, RunLab, command_line, environment
from tests.functional.cluster.named_hosts import CONDUCTOR, named_hosts, processes_of
from tests.functional.cluster.test_cluster import LAB, assert_same, below

UNPACKED = ROOT / "target/ray"
"""Where `./dev engines` puts it."""

IS_THERE = UNPACKED.is_dir() or importlib.util.find_spec("ray") is not None

pytestmark = pytest.mark.skipif(not IS_THERE, reason="there is no Ray; ./dev engines fetches it")


@dataclass(frozen=True)
class Cluster:
    """A place in which a user may have a cluster."""

    directory: Path

    def environment(self) -> dict[str, str]:
        places = f"{environment()['PYTHONPATH']}:{UNPACKED}"
        found = environment() | {"PYTHONPATH": places, "XDG_CACHE_HOME": str(self.directory)}
        return {name: value for name, value in found.items() if not name.startswith("RAY_")}

    def dilaton(self, *arguments: str | Path, entering: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        command = [*entering, *command_line(*arguments)]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr)
        return done

    def keeper(self) -> int:
        return int((self.directory / "dilaton/cluster/keeper.pid").read_text())

    def part_of_ray(self, name: str) -> int:
        """The process of some program of Ray's, the last that was started."""
        return max(pid for pid, command in below(self.keeper()).items() if name in command.split(" ")[0])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of two machines."""
    made = Cluster(tmp_path / "cache")
    started = made.dilaton("cluster", "start", "--machines", "2")
    assert started.returncode == 0, (tmp_path / "cache/dilaton/cluster/keeper.log").read_text()
    everything = below(made.keeper())
    token = (made.directory / "dilaton/cluster/token").read_text()
    try:
        yield made
    finally:
        assert made.dilaton("cluster", "stop").returncode == 0
    assert not [pid for pid, command in everything.items() if is_there(pid, command)]
    assert not (made.directory / "dilaton/cluster").exists()
    assert not own.files(token).exists()


def is_there(pid: int, command: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") == command
    except OSError:
        return False


def lab_in(directory: Path) -> Path:
    file = directory / "lab.yaml"
    file.write_text(LAB)
    return file


def test_runs_over_a_cluster_are_as_on_one_machine_and_deaths_end_them(
    cluster: Cluster, tmp_path: Path, run_lab_once: RunLab
) -> None:
    lab, alone = lab_in(tmp_path), run_lab_once(LAB)
    out = tmp_path / "run"
    done = cluster.dilaton("run", lab, "--out", out, "--engine", "ray", "--machines", "2")
    assert_same(Outcome(done.returncode, done.stdout + done.stderr, out), alone)
    assert not list(cluster.directory.glob("dilaton/machines/*"))

    swept = cluster.dilaton(
        *("sweep", lab, "--repeat", "2", "-j", "2", "--out", tmp_path / "sweep"),
        *("--engine", "ray", "--machines", "2"),
    )
    assert (swept.returncode, swept.stdout.count(": well")) == (0, 2)
    assert not list(cluster.directory.glob("dilaton/machines/*"))

    too_many = cluster.dilaton("run", lab, "--out", tmp_path / "3", "--engine", "ray", "--machines", "3")
    assert too_many.returncode == 1
    assert re.search(r"Ray: the cluster has 2 machines, 2 of them with 1 cores and .*; 3 are wanted", too_many.stdout)
    again = cluster.dilaton("cluster", "start")
    assert again.returncode == 1
    assert "this machine is in a cluster already, that of 127.0.0.1:6379" in again.stderr

    for victim in ("agent", "ray::Agent", "raylet"):
        out = tmp_path / victim.replace(":", "")
        record = killed(cluster, lab, out, victim)
        assert record["state"] == "failed"
        assert record["lost_machine"] in record["reason"]
        assert "was lost: " in record["reason"]
        # What an agent that was killed has left is removed when the next one starts; nobody has it any more.
        assert place.in_use(cluster.directory / "dilaton/machines") == 0


def test_another_host_joins_with_the_token_and_with_no_other(tmp_path: Path, run_lab_once: RunLab) -> None:
    head, joining, out = Cluster(tmp_path / "head"), Cluster(tmp_path / "joining"), tmp_path / "run"
    token, wrong = head.directory / "dilaton/cluster/token", tmp_path / "wrong"
    wrong.write_text("0" * 64)
    with named_hosts(tmp_path, 1) as hosts:
        here, there = hosts.entered(), hosts.entered("nsenter", f"--target={hosts.holder(1)}", "--net")
        try:
            assert head.dilaton("cluster", "start", "--address", CONDUCTOR, entering=here).returncode == 0
            join = ("cluster", "join", f"{CONDUCTOR}:6379", "--address", hosts.names[0], "--token")
            refused = joining.dilaton(*join, wrong, entering=there)
            assert (refused.returncode, "Ray does not start" in refused.stderr) == (1, True)
            assert joining.dilaton(*join, token, entering=there).returncode == 0
            over = ("run", lab_in(tmp_path), "--out", out, "--engine", "ray", "--machines", "2")
            done = head.dilaton(*over, entering=here)
            assert_same(Outcome(done.returncode, done.stdout + done.stderr, out), run_lab_once(LAB))
        finally:
            ended = [joining.dilaton("cluster", "stop", entering=there), head.dilaton("cluster", "stop", entering=here)]
        assert [each.returncode for each in ended] == [0, 0]
        assert [processes_of(pid) for pid in (hosts.pid, hosts.holder(1))] == [{}, {}]


def killed(cluster: Cluster, lab: Path, out: Path, victim: str) -> dict[str, object]:
    """The record of a run of which something is killed while its clock is held."""
    command = command_line("run", lab, "--out", out, "--engine", "ray", "--machines", "2", "--hold-at", "100ms")
    with subprocess.Popen(command, env=cluster.environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            lines = []
            for line in process.stderr:
                lines.append(line)
                if "clock held" in line:
                    break
            everything = below(cluster.keeper())
            kernels = [pid for pid, words in everything.items() if "linux.uml" in words.split(" ")[0]]
            assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in kernels} == {os.getpriority(os.PRIO_PROCESS, 0)}
            if victim == "agent":
                pid = next(pid for pid, words in everything.items() if "dilaton.cluster.host_agent" in words)
            elif victim == "raylet":
                pid = cluster.part_of_ray("raylet/raylet")
            else:
                pid = next(pid for pid, words in everything.items() if words.startswith(victim))
            os.kill(pid, signal.SIGKILL)
            lines += process.stderr.readlines()
            assert process.wait(PATIENCE_HOST_S) == 1, lines
        finally:
            process.kill()
    end = time.monotonic() + PATIENCE_HOST_S
    while [words for words in below(cluster.keeper()).values() if "dilaton.cluster.host_agent" in words]:
        assert time.monotonic() < end
        time.sleep(0.1)
    found: dict[str, object] = json.loads((out / "run.json").read_text())
    return found
