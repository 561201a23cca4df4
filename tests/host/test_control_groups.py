"""Control groups of jails, on a kernel where they are delegated: that of a guest, whose root has one of its own.

In it a place is made as systemd's user manager makes one: a group that hands down controllers, with ours below it.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.conftest import ROOT, command_line, environment

DELEGATED = """
mkdir /tmp/groups && mount -t cgroup2 none /tmp/groups && mkdir /tmp/groups/own && echo 0 > /tmp/groups/own/cgroup.procs &&
echo "+memory +pids +cpu" > /tmp/groups/cgroup.subtree_control && umount /sys/fs/cgroup && exec "$0" -c "$1"
"""

PRELUDE = """
import os, signal, subprocess, time
from pathlib import Path
from dilaton.host.here.jail import control_groups, warden

def keep(group, *command, **more):
    return subprocess.Popen([*warden.command(life, group), *command], pass_fds=[life], **more)

def groups():
    return sorted(path.name for path in place.directory.glob("dilaton-*"))

life, ours = os.pipe()
os.set_inheritable(ours, False)
place = control_groups.find()
"""


def in_a_guest(script: str) -> list[str]:
    """The lines that a script prints in a guest where control groups are delegated."""
    program = PRELUDE + textwrap.dedent(script)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    done = subprocess.run(
        command_line("exec", "--memory", "500M", "--", "sh", "-ec", DELEGATED, sys.executable, program),
        env=environment() | {"PYTHONPATH": f"{ROOT / 'python'}:{packages}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_group_is_made_with_its_limits_and_goes_with_its_jail() -> None:
    lines = in_a_guest("""
        print(place.directory, *place.controllers)
        with control_groups.made(place, 64 << 20, 0) as group:
            jailed = keep(group, "cat", "/proc/self/cgroup", *[f"{group}/{name}" for name in ("pids.max", "cpu.max")])
        print(jailed.wait(), groups())
        try:
            with control_groups.made(place, 64 << 20, 0):
                raise RuntimeError
        except RuntimeError:
            print(groups())
    """)
    assert lines[0] == "/tmp/groups memory pids cpu"  # noqa: S108
    assert lines[1].startswith("0::/dilaton-")
    assert lines[2:] == [str((64 << 20) // (32 << 10) + 256), "200000 100000", "0 []", "[]"]


def test_a_guest_that_takes_too_much_memory_is_ended_whole_and_that_is_told() -> None:
    lines = in_a_guest("""
        control_groups.MEMORY_BYTES_BESIDE = 0
        hog = "sleep 1000 & exec python3 -c 'b = bytearray([1]) * (300 << 20)'"
        with control_groups.made(place, 8 << 20, 0) as group:
            limit = (group / "memory.max").read_text().strip()
            jailed = keep(group, "sh", "-c", hog, stderr=subprocess.PIPE, text=True)
        print(jailed.communicate()[1].replace(limit, "LIMIT").strip())
        print(jailed.returncode, groups())
    """)
    told = "dilaton warden: the guest was ended, since it took the LIMIT bytes of the host's memory that it may have"
    assert lines == [told, "137 []"]


def test_a_guest_that_makes_processes_for_ever_gets_so_many_and_no_more() -> None:
    lines = in_a_guest("""
        with control_groups.made(place, 8 << 20, 0) as group:
            limit = int((group / "pids.max").read_text())
            (group / "pids.max").write_text("20")
            bomb = "i=0; while [ $i -lt 30 ]; do sleep 1000 & i=$((i + 1)); done"
            jailed = keep(group, "sh", "-c", bomb, stderr=subprocess.PIPE, text=True)
        told = jailed.communicate()[1]
        print(limit, "fork" in told, "was refused more than the 20 processes" in told, groups())
    """)
    assert lines == ["512 True True []"]


@pytest.mark.parametrize("killed", ["dilaton", "warden and dilaton"])
def test_a_kill_leaves_no_group(killed: str) -> None:
    lines = in_a_guest(f"""
        if (dilaton := os.fork()) == 0:
            life, ours = os.pipe()
            with control_groups.made(place, 8 << 20, 0) as group:
                jailed = keep(group, "sleep", "1000", close_fds=True)
            Path("/tmp/warden").write_text(f"{{jailed.pid}}\\n")
            time.sleep(1000)
        while not Path("/tmp/warden").exists() or not Path("/tmp/warden").read_text().endswith("\\n"):
            time.sleep(0.01)
        while len((place.directory / groups()[0] / "cgroup.procs").read_text().split()) != 1:
            time.sleep(0.01)
        members = (place.directory / groups()[0] / "cgroup.procs").read_text().split()
        if "warden" in {killed!r}:
            os.kill(int(Path("/tmp/warden").read_text()), signal.SIGKILL)
        os.kill(dilaton, signal.SIGKILL)
        os.waitpid(dilaton, 0)
        if "warden" in {killed!r}:
            # In a jail the life line ends it.
            os.kill(int(members[0]), signal.SIGKILL)
            while (place.directory / groups()[0] / "cgroup.procs").read_text():
                time.sleep(0.01)
            with control_groups.made(place, 8 << 20, 0) as group:
                print(len(groups()))
            group.rmdir()
        while groups():
            time.sleep(0.01)
        print("none")
    """)
    assert lines == (["1", "none"] if "warden" in killed else ["none"])
