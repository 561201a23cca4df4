"""Nodes are machines apart: what one does to itself, the others and the host do not see."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.conftest import PYTHON, Outcome, RunLab

LAB = """
name: nodes
nodes: {vandal: {}, witness: {}, lonely: {sysctls: {net.ipv4.ip_default_ttl: "77", kernel.msgmax: "4321"}}}
links: ["vandal -- witness"]
run:
  - {on: witness, name: keeper, exec: sleep 1000, background: true}
  - on: vandal
    name: deeds
    after: keeper
    exec:
      - sh
      - -ec
      - |
        for directory in /etc /usr/bin /tmp /run /var/tmp /dev/shm /root /; do
          echo mark > $directory/vandal-was-here
        done
        echo poison >> /etc/passwd
        rm /usr/share/doc/bash/copyright || true
        hostname renamed
        mount -t tmpfs none /mnt
        ipcmk --shmem 1000
        sleep 1000 &
        kill -9 -1 2>/dev/null
  - on: vandal
    name: memory
    after: deeds
    exec: sh -c 'cat /etc/vandal-was-here /tmp/vandal-was-here; hostname; ps -e -o comm='
  - on: witness
    name: sight
    after: memory
    exec:
      - sh
      - -c
      - |
        find / /etc /usr/bin /root -maxdepth 1 -name vandal-was-here
        find /tmp /run /var/tmp /dev/shm -name vandal-was-here
        grep poison /etc/passwd
        grep /mnt /proc/self/mountinfo
        ipcs --shmems | grep 0x
        hostname
        ps -e -o args= | grep 'sleep 1000' | grep -v grep
  - {on: witness, name: directories, exec: "sh -c 'stat -c %a /tmp /var/tmp /dev/shm /dev /run /dev/net /dev/null /dev/net/tun; umask; ls -A /tmp /dev/shm'"}
  - {on: witness, name: devices, exec: "sh -c 'head -c 4 /dev/urandom | wc -c; echo x > /dev/null; : < /dev/zero'"}
  - {on: witness, name: logs, exec: "sh -c 'find /var/log/ ! -type d; find /var/log/ -mindepth 1 -type d | sort'"}
  - {on: witness, name: daemon, after: logs, exec: "sh -c 'nginx -t 2>&1'"}
  - {on: lonely, name: interfaces, exec: ls /sys/class/net}
  - {on: lonely, name: group, exec: "sh -c 'cat /proc/self/cgroup /sys/fs/cgroup/pids.current; mkdir /sys/fs/cgroup/x 2>&1 | grep -o Read-only'"}
  - {on: lonely, name: security, exec: "sh -c 'mount -t securityfs none /mnt && cat /mnt/lsm'"}
  - {on: lonely, name: loopback, exec: ping -c 1 -W 1 127.0.0.1}
  - {on: lonely, name: user-ping, exec: ping -c 1 -W 1 127.0.0.1, user: nobody}
  - {on: lonely, name: sysctls, exec: cat /proc/sys/net/ipv4/ip_default_ttl /proc/sys/kernel/msgmax}
  - {on: lonely, name: script, exec: "sh -c 'printf \\"#!/bin/sh\\\\necho ran\\" > /tmp/it; chmod +x /tmp/it; /tmp/it'"}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that all tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.process("keeper")["outcome"] == "signalled", "it outlived the vandal's kill of everything"
    assert outcome.status == 0
    return outcome


def test_a_node_keeps_what_it_writes(outcome: Outcome) -> None:
    assert outcome.stdout("vandal", "memory").split()[:3] == ["mark", "mark", "renamed"]


def test_other_nodes_see_no_files_mounts_memory_names_or_processes_of_it(outcome: Outcome) -> None:
    assert outcome.stdout("witness", "sight").splitlines() == ["witness", "sleep 1000"]


def test_the_host_sees_nothing_of_it(outcome: Outcome) -> None:
    assert outcome.record["state"] == "finished"
    for directory in ("/etc", "/usr/bin", "/tmp", "/run", "/var/tmp", "/dev/shm", "/root", "/"):  # noqa: S108
        assert not os.path.exists(f"{directory}/vandal-was-here")
    assert "poison" not in Path("/etc/passwd").read_text()


def test_a_node_has_the_directories_and_devices_of_a_machine(outcome: Outcome) -> None:
    modes = ["1777"] * 3 + ["755"] * 3 + ["666"] * 2
    assert outcome.stdout("witness", "directories").split() == [*modes, "0022", "/dev/shm:", "/tmp:"]  # noqa: S108
    assert outcome.stdout("witness", "devices").split() == ["4"]
    assert outcome.stdout("lonely", "script") == "ran\n"


def test_a_node_has_the_machines_directories_of_logs_without_its_logs(outcome: Outcome) -> None:
    directories = sorted(str(path) for path in Path("/var/log").iterdir() if path.is_dir() and not path.is_symlink())
    assert outcome.stdout("witness", "logs").splitlines() == directories
    assert "test is successful" in outcome.stdout("witness", "daemon"), "who may not read the machine's logs"


def test_a_node_without_links_has_a_working_loopback_and_nothing_else(outcome: Outcome) -> None:
    assert outcome.stdout("lonely", "interfaces").split() == ["lo"]
    assert outcome.process("loopback")["result"]["received"] == 1


def test_a_node_sees_its_own_control_group_and_cannot_change_it(outcome: Outcome) -> None:
    group, members, refusal = outcome.stdout("lonely", "group").split()
    assert (group, refusal) == ("0::/", "Read-only")
    assert int(members) >= 1


def test_the_kernel_asks_no_policy_that_nodes_do_not_have(outcome: Outcome) -> None:
    assert set(outcome.stdout("lonely", "security").split(",")) <= {"lockdown", "capability", "yama", "ima", "evm"}


def test_every_user_of_a_node_may_ping(outcome: Outcome) -> None:
    assert outcome.process("user-ping")["result"]["received"] == 1


def test_sysctls_are_those_of_the_lab(outcome: Outcome) -> None:
    assert outcome.stdout("lonely", "sysctls").split() == ["77", "4321"]


def test_a_node_has_the_date_of_the_run(run_lab: RunLab) -> None:
    before_s = time.time()
    outcome = run_lab("name: date\nnodes: {a: {}}\nrun: [{on: a, name: date, exec: date +%s.%N}]\n")
    # The kernel booted at fifty virtual seconds a second; none of that may be left in its date.
    assert before_s <= float(outcome.stdout("a", "date")) <= time.time() + 1


def test_the_init_of_a_node_has_in_memory_what_the_plan_says_of_that_node_alone(run_lab: RunLab) -> None:
    """Each page that it has is a mapping of the host's, which takes time and memory (`agent/src/guest/maker.rs`)."""
    words = 40 * 4096
    looks = [{"on": name, "name": f"look-{name}", "exec": "cat /proc/1/statm"} for name in "ab"]
    long = {"on": "b", "name": "long", "env": {"A": "x" * (words // 2), "B": "x" * (words // 2)}, "exec": "true"}
    outcome = run_lab(json.dumps({"name": "apart", "nodes": {"a": {}, "b": {}}, "run": [*looks, long]}))
    here, there = (int(outcome.stdout(name, f"look-{name}").split()[1]) for name in "ab")
    assert here + words // 4096 // 2 < there, "pages"


# Few calls in which the kernel works long, on memory that is there: of a short one most is the way there and back, and how
# much of that is the program's depends on the host.
LONG_READS = "[zeros.readinto(room) for _ in range(200)]"


def charged_s(run_lab: RunLab, work: str) -> tuple[float, float]:
    """What a program that does this work is charged, and what its kernel is for it, seconds of CPU."""
    code = f"""
import os
zeros, room = open("/dev/zero", "rb", 0), bytearray(1 << 24)
before = os.times()
{work}
after = os.times()
print(*[b - a for a, b in zip(before, after)])
"""
    outcome = run_lab(
        f"name: charged\nnodes: {{a: {{}}}}\nrun: [{{on: a, name: it, exec: {json.dumps([str(PYTHON), '-c', code])}}}]"
    )
    assert outcome.status == 0
    user_s, system_s, *_ = map(float, outcome.stdout("a", "it").split())
    return user_s, system_s


@pytest.mark.parametrize(("work", "who"), [("sum(i * i for i in range(6_000_000))", "user"), (LONG_READS, "system")])
def test_cpu_time_is_charged_to_the_program_or_to_the_kernel_whoever_used_it(
    run_lab: RunLab, work: str, who: str
) -> None:
    user_s, system_s = charged_s(run_lab, work)
    charged, other = (user_s, system_s) if who == "user" else (system_s, user_s)
    assert charged > 2 * other


DATE = """
name: date
GUESTS
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], delay: 5ms}]
run:
  - {on: a, name: set, exec: "sh -c 'date -s 2030-01-01 2>&1'", expect_exit: any}
  - {on: a, name: own, exec: date +%Y, after: set}
  - {on: b, name: other, exec: date +%Y, after: set}
"""


def test_a_node_cannot_set_the_date_of_the_nodes_that_share_its_kernel(run_lab: RunLab) -> None:
    packed = run_lab(DATE.replace("GUESTS", ""))
    assert "Operation not permitted" in packed.stdout("a", "set")
    assert packed.stdout("a", "own") == packed.stdout("b", "other") != "2030\n"


def test_a_node_that_is_alone_in_its_guest_may_set_its_date(run_lab: RunLab) -> None:
    apart = run_lab(DATE.replace("GUESTS", "guests: per-node"))
    assert apart.stdout("a", "own") == "2030\n"
    assert apart.stdout("b", "other") != "2030\n"
