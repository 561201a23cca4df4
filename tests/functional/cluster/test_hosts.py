"""A lab over hosts with addresses of their own: the same bytes as on one machine; who is lost is named, nothing is left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dilaton.host.here.uml import kernels
from tests.conftest import PATIENCE_HOST_S, Outcome, RunLab, command_line, dilaton, environment
from tests.functional.cluster.named_hosts import NamedHosts, named_hosts, processes_of
from tests.functional.cluster.test_cluster import EXAMPLE, LAB, assert_same
from tests.images import busybox, layout, needs_programs


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamedHosts]:
    """Three hosts."""
    with named_hosts(tmp_path_factory.mktemp("hosts"), 3) as made:
        yield made


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab of three guests."""
    file = tmp_path / "lab.yaml"
    file.write_text(LAB)
    return file


@pytest.fixture(scope="module")
def alone(run_example: Callable[[Path], Outcome]) -> Outcome:
    """The lab on one machine."""
    return run_example(EXAMPLE)


def test_a_lab_gives_the_same_bytes_over_hosts(hosts: NamedHosts, lab: Path, tmp_path: Path, alone: Outcome) -> None:
    out = tmp_path / "run"
    done = hosts.dilaton("run", lab, "--out", out, "--onto", ",".join(hosts.names))
    print(done.stdout, done.stderr)
    assert_same(Outcome(done.returncode, done.stdout + done.stderr, out), alone)
    assert not hosts.kept()


def test_two_runs_at_once_on_the_same_hosts_with_equal_addresses_do_not_see_each_other(
    hosts: NamedHosts, lab: Path, tmp_path: Path, alone: Outcome
) -> None:
    onto = ",".join(hosts.names)
    outs = [tmp_path / "one", tmp_path / "other"]
    with contextlib.ExitStack() as stack:
        arguments = ("run", lab, "--onto", onto, "--hold-at", "100ms")
        going = [stack.enter_context(hosts.started(*arguments, "--out", out)) for out in outs]
        for process in going:
            assert process.stderr
            next(line for line in process.stderr if "clock held" in line)
        assert len(hosts.kept()) == 2 * len(hosts.names)
        for out in outs:
            assert hosts.dilaton("clock", out, "release").returncode == 0
        for process, out in zip(going, outs, strict=True):
            said = process.communicate(timeout=PATIENCE_HOST_S)[1]
            assert_same(Outcome(process.returncode, said, out), alone)
    assert not hosts.kept()


HIDING = """#!/bin/sh
exec unshare --mount sh -c 'mount -t tmpfs none {hidden} && exec "$@"' sh {shell} "$@"
"""
"""Reaches a host on which there is nothing in a directory."""

IMAGE_LAB = """name: boxes
time: {drive: event}
guests: per-node
nodes: {a: {image: box}, b: {image: box}}
links: [{endpoints: [a, b], delay: 5ms}]
run:
  - {on: b, name: cat, exec: cat /data/own}
  - {on: a, exec: ping -c 3 b}
"""


@needs_programs
def test_the_image_of_a_node_is_carried_once_to_a_host_that_has_not_got_it(hosts: NamedHosts, tmp_path: Path) -> None:
    data, way, lab = tmp_path / "data", tmp_path / "way", tmp_path / "lab.yaml"
    variables = environment() | {"XDG_DATA_HOME": str(data)}
    assert dilaton("image", "import", layout(tmp_path / "oci", [busybox()]), "box", env=variables).returncode == 0
    (tree,) = data.glob("dilaton/images/roots/*")
    way.write_text(HIDING.format(hidden=data, shell=hosts.environment()["DILATON_RSH"]))
    way.chmod(0o755)
    lab.write_text(IMAGE_LAB)
    carried = [hosts.directory / name / "dilaton/carried" / tree.name for name in hosts.names[:2]]
    reached = hosts.environment() | {"XDG_DATA_HOME": str(data), "DILATON_RSH": str(way)}
    pings, files = [], []
    for out in (tmp_path / "first", tmp_path / "second"):
        command = hosts.entered(*command_line("run", lab, "--out", out, "--onto", ",".join(hosts.names[:2])))
        done = subprocess.run(command, env=reached, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not hosts.kept()
        assert all(file.read_bytes() == tree.read_bytes() for file in carried)
        assert (out / "nodes/b/cat.stdout").read_text() == "mine\n"
        pings.append((out / "nodes/a/ping.stdout").read_text())
        files.append([file.stat().st_ino for file in carried])
    assert "3 packets transmitted, 3 packets received" in pings[0] and pings[0] == pings[1]
    assert files[0] == files[1], "what the first brought is there for the second"


FORGETTING = """#!/bin/sh
unset {variable}
exec sh {shell} "$@"
"""
"""Reaches a host on which nobody has chosen a kernel."""

KERNEL_LAB = """name: kernels
time: {drive: event}
guests: per-node
nodes: {a: , b: }
links: [{endpoints: [a, b], delay: 5ms}]
run: [{on: a, exec: ping -c 3 b}]
"""

MODULES = [
    f"kernel/{name}.ko"
    for name in ("fs/overlayfs/overlay", "drivers/net/veth", "net/sched/sch_netem", "net/ipv6/ipv6", "lib/crc-ccitt")
]
"""What Debian's kernel loads for that lab."""


def kernel_of_ones_own(directory: Path) -> str:
    """A kernel that is Debian's but for its last byte; its digest."""
    debians = kernels.named(kernels.DEBIAN).program
    release = subprocess.run([debians, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    modules, debians_modules = directory / "modules" / release, kernels.DEBIANS_MODULES / release
    for file in [*debians_modules.glob("modules.*"), *(debians_modules / name for name in MODULES)]:
        copy = modules / file.relative_to(debians_modules)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    shutil.copy(debians, directory / "linux.uml")
    with (directory / "linux.uml").open("ab") as file:
        file.write(b"7")
    digest = kernels.sha256(directory / "linux.uml")
    (directory / "kernel.json").write_text(kernels.describe(kernels.Built(release, "a copy", "", "", digest)))
    return digest


def test_the_kernel_of_a_run_is_carried_once_to_hosts_that_have_another(hosts: NamedHosts, tmp_path: Path) -> None:
    own, way, lab = tmp_path / "own", tmp_path / "way", tmp_path / "lab.yaml"
    digest = kernel_of_ones_own(own)
    way.write_text(FORGETTING.format(variable=kernels.VARIABLE, shell=hosts.environment()["DILATON_RSH"]))
    way.chmod(0o755)
    lab.write_text(KERNEL_LAB)
    carried = [hosts.directory / name / f"dilaton/carried/{digest}.kernel/linux.uml" for name in hosts.names[:2]]
    reached = hosts.environment() | {kernels.VARIABLE: str(own), "DILATON_RSH": str(way)}
    pings, files = [], []
    for onto in ((), hosts.names[:2], hosts.names[:2]):
        out = tmp_path / f"run{len(pings)}"
        over = ("--onto", ",".join(onto)) if onto else ()
        command = hosts.entered(*command_line("run", lab, "--out", out, *over))
        done = subprocess.run(command, env=reached, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        pings.append((out / "nodes/a/ping.stdout").read_bytes())
        assert digest in (out / "run.json").read_text()
        files.append([file.stat().st_ino for file in carried if file.exists()])
    assert pings[0] == pings[1] == pings[2]
    assert files[0] == [] and len(files[1]) == 2 and files[1] == files[2]
    assert not hosts.kept()


def kill_agent(hosts: NamedHosts) -> None:
    """Kills the host agent of the second host."""
    (agent,) = (pid for pid, command in processes_of(hosts.holder(2)).items() if "host-agent" in command)
    os.kill(agent, signal.SIGKILL)


def cut_off(hosts: NamedHosts) -> None:
    """Cuts the second host off."""
    hosts.cut(2)


@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (kill_agent, r"10\.77\.2\.2 was lost: the host agent of 10\.77\.2\.2 was killed by signal 9"),
        (cut_off, r"10\.77\.2\.2 was lost: nothing was heard for 3\.5 seconds"),
    ],
)
def test_a_host_that_is_lost_ends_the_run_and_nothing_is_left_on_any(
    hosts: NamedHosts, lab: Path, tmp_path: Path, lose: Callable[[NamedHosts], None], reason: str
) -> None:
    out = tmp_path / "run"
    try:
        with hosts.started("run", lab, "--out", out, "--onto", ",".join(hosts.names), "--hold-at", "100ms") as process:
            assert process.stderr
            next(line for line in process.stderr if "clock held" in line)
            assert len(hosts.kept()) == len(hosts.names)
            lose(hosts)
            process.stderr.read()
            assert process.wait(PATIENCE_HOST_S) == 1
        record = json.loads((out / "run.json").read_text())
        assert re.fullmatch(rf"{reason}, at 0\.1\d* virtual seconds", record["reason"]), record["reason"]
        end = time.monotonic() + PATIENCE_HOST_S
        while left := [
            processes_of(hosts.holder(number)) for number in (1, 2, 3) if processes_of(hosts.holder(number))
        ]:
            assert time.monotonic() < end, left
            time.sleep(0.1)
    finally:
        hosts.join(2)
    # What the agent kept that was killed goes when the next one comes.
    assert hosts.dilaton("cluster", "status", *hosts.names).returncode == 0
    assert not hosts.kept()


def test_what_hosts_have_is_shown_and_who_cannot_be_asked_is_named(hosts: NamedHosts) -> None:
    (hosts.directory / "ws9").mkdir(exist_ok=True)
    done = hosts.dilaton("cluster", "status", hosts.names[0], "ws9")
    assert done.returncode == 3
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    first, second = (line for line in lines if line.startswith(("10.77.1.2", "ws9  ")))
    assert first.endswith(" usable")
    assert not first.endswith("not usable")
    assert second.endswith("not usable")
    assert "ws9: the host agent of ws9 ended with status 1: nsenter: " in done.stdout


def test_the_doctor_tries_what_a_run_would_do_and_names_who_does_not_reach_this_machine(hosts: NamedHosts) -> None:
    well = hosts.dilaton("cluster", "doctor", *hosts.names[:2])
    assert well.returncode == 0, well.stdout + well.stderr
    rows = [line.split() for line in well.stdout.splitlines() if line.startswith("10.77.")]
    assert [(row[0], row[-2:]) for row in rows] == [(name, ["ms", "usable"]) for name in hosts.names[:2]]
    # An address at which hosts do not reach this one, as behind a firewall.
    elsewhere = hosts.entered("env", "DILATON_HUB=127.0.0.1", *command_line("cluster", "doctor", hosts.names[0]))
    ill = subprocess.run(elsewhere, env=hosts.environment(), capture_output=True, text=True, check=False)
    assert ill.returncode == 3
    assert re.search(r"^10\.77\.1\.2 .* not usable *$", ill.stdout, re.MULTILINE), ill.stdout
    assert "10.77.1.2: it does not reach this machine at 127.0.0.1:" in ill.stdout
    assert "; set DILATON_HUB to an address and a port" in ill.stdout
    assert not hosts.kept()


def test_a_lab_is_refused_before_it_begins_where_a_host_has_not_what_it_needs(
    hosts: NamedHosts, lab: Path, tmp_path: Path
) -> None:
    done = hosts.dilaton("run", lab, "--out", tmp_path / "run", "--onto", f"{hosts.names[0]},ws9")
    assert done.returncode == 3
    assert "ws9: the host agent of ws9 ended with status 1: nsenter: " in done.stderr
    assert not hosts.kept()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--onto", "-oProxyCommand=true"), "'-oProxyCommand=true': not the name of a host"),
        (("--onto", "a,b,c,d"), "4: the lab has 3 guests"),
        (("--onto", "a", "--machines", "2"), "these are made of this machine, and --onto names others"),
        (("--onto", "a,b", "--drive", "wall"), "on the wall drive the clock of one host drives all guests"),
    ],
)
def test_what_hosts_cannot_be_given_is_refused(run_lab: RunLab, arguments: tuple[str, ...], said: str) -> None:
    outcome = run_lab(LAB, *arguments)
    assert outcome.status == 2
    assert said in outcome.terminal
