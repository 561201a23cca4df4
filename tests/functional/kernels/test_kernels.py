"""Guests run on the kernels of other suites of Debian's too, not only on that of this machine.

`./dev kernels` fetches them. All other tests run on this machine's kernel, and `DILATON_KERNEL=6.12.113 ./dev test` runs them
on another. These few meet each part of the clock that depends on how a kernel does it: idle time, timers, programs and who
pays for them, disks, wires, the time-stamp counter, what is left after a kill, the end.
"""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dilaton.host.here.uml import interface, kernels
from tests.conftest import PATIENCE_HOST_S, PYTHON, Outcome, RunLab, dilaton
from tests.fidelity import test_control
from tests.functional.nodes.test_nodes import LONG_READS, charged_s
from tests.functional.nodes.test_topologies import check_without_iptables
from tests.functional.time.test_repeatable import left
from tests.host.clock.test_cpuid import answering
from tests.host.kills.test_kills import every_test_begins_alone, orphans_come_to_us
from tests.random_kills import Kill, do
from tests.same_on_kernels import check_same, event_lab

__all__ = ["every_test_begins_alone", "orphans_come_to_us"]

SERIES = ("6.12", "7", f"7{kernels.SECCOMP}")
"""Those that are understood, beside the one of this machine: Debian 13's, and sid's, which is a later one each time, as it
traces its programs and as it does not."""

COUNTER = """
import ctypes, mmap, time
code = mmap.mmap(-1, 4096, prot=7)
code.write(b"\\x0f\\x31\\x48\\xc1\\xe2\\x20\\x48\\x09\\xd0\\xc3")  # rdtsc; shl rdx, 32; or rax, rdx; ret
read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
begin, ticks = time.monotonic_ns(), read()
time.sleep(1)
print(read() - ticks, time.monotonic_ns() - begin)
"""
"""On the event drive a tick of the time-stamp counter is a nanosecond."""

EVENTS = {
    "name": "kernels",
    "seed": 1,
    "time": {"drive": "event"},
    "stop_after": "60s",
    "guests": "per-node",
    "nodes": {"a": {"disk": {"fixed": {"read_latency": "1ms", "write_latency": "1ms"}, "size": "64MB"}}, "b": {}},
    "links": [{"endpoints": ["a", "b"], "rate": "10Mbit", "delay": "20ms", "loss": "1%"}],
    "run": [
        {"on": "b", "name": "server", "exec": "iperf3 -s", "ready": {"tcp": 5201}, "background": True},
        {"on": "a", "name": "ping", "exec": "ping -c 5 -i 2 b"},
        {"on": "a", "name": "bulk", "exec": "iperf3 -c b -t 1 -J", "after": ["server", "ping"]},
        {
            "on": "a",
            "name": "disk",
            "exec": "sh -c 'for n in 1 2 3; do echo $n > /var/tmp/$n; sync; done; cat /var/tmp/3'",
        },
        {"on": "b", "name": "counter", "exec": [str(PYTHON), "-I", "-S", "-c", COUNTER]},
    ],
}

SHARES = """
name: shares
time: {tdf: 10}
nodes: {a: {cpu: 0.2}, b: {cpu: 0.05}}
links: [{endpoints: [a, b], rate: 1Gbit, delay: 20ms}]
run:
  - {on: a, name: fast, exec: [python3, -I, -S, -c, "for _ in range(3_000_000): pass"]}
  - {on: b, name: slow, exec: [sh, -c, "python3 -I -S -c 'for _ in range(3_000_000): pass'"]}
  - {on: a, name: ping, exec: ping -c 3 b, after: slow}
"""


NEIGHBOURS = """
import struct
after = before = 0
with open("/proc/self/pagemap", "rb") as frames:
    for line in open("/proc/self/maps"):
        begin, end = (int(word, 16) // 4096 for word in line.split()[0].split("-"))
        if "r-xp" not in line or "/" not in line: continue
        frames.seek(begin * 8)
        words = [word for word, in struct.iter_unpack("Q", frames.read((end - begin) * 8))]
        steps = [other - one for one, other in zip(words, words[1:]) if one >> 63 and other >> 63]
        after += steps.count(1)
        before += steps.count(-1)
print(after, before)
"""
"""How many pages of a program's files lie in memory behind that which is before them in the file, and how many before it."""


@pytest.fixture(scope="module", params=SERIES)
def release(request: pytest.FixtureRequest) -> str:
    """A kernel of Debian's of each series, which guests are to run."""
    series, way, _ = request.param.partition(kernels.SECCOMP)
    found = [kernel.name for kernel in kernels.own() if re.fullmatch(rf"{series}\.[\d.]+", kernel.name)]
    if not found:
        pytest.skip(f"there is no Linux {series} of Debian's here: ./dev kernels fetches it, if Debian still has it")
    program = kernels.named(found[-1]).program
    if why := interface.why_not_understood(program) or (way and interface.why_no_seccomp(program)):
        pytest.skip(f"sid has a kernel that is refused: {why}")
    return found[-1] + way


@pytest.fixture(autouse=True)
def chosen(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guests run that kernel; also where a test gives them another home."""
    monkeypatch.setenv(kernels.VARIABLE, release)
    monkeypatch.setenv("XDG_CACHE_HOME", str(kernels.cache().parents[1]))


def lives_s(outcome: Outcome, name: str) -> float:
    """For how long a process ran, virtual seconds."""
    return outcome.instant_s("exited", name) - outcome.instant_s("started", name)


def test_doctor_understands_it_and_a_command_runs_in_it(release: str) -> None:
    version = release.removesuffix(kernels.SECCOMP)
    assert f"Linux {version}" in " ".join(dilaton("doctor").stdout.split())
    done = dilaton("exec", "--", "sh", "-c", "uname -r; sleep 1000; exit 3")
    assert (done.stdout, done.returncode) == (f"{version}\n", 3)


def test_two_guests_with_a_disk_leave_the_same_bytes_beside_other_load(run_lab: RunLab, release: str) -> None:
    """Also, what programs measure is right: the delay of the wire, the time-stamp counter, what disks take."""
    alone = run_lab(json.dumps(EVENTS))
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        loaded = run_lab(json.dumps(EVENTS))
    finally:
        loop.kill()
        loop.wait()
    assert left(alone) == left(loaded)
    assert (alone.status, alone.record["host"]["guest_kernel"]) == (0, release.removesuffix(kernels.SECCOMP))
    round_trips_ms = [float(found) for found in re.findall(r"time=([\d.]+)", alone.stdout("a", "ping"))]
    assert 40.1 <= min(round_trips_ms) <= 40.2
    ticks, ns = map(int, alone.stdout("b", "counter").split())
    assert 1e9 <= ticks <= ns < 1.01e9
    assert alone.stdout("a", "disk") == "3\n"
    assert lives_s(alone, "disk") > 3e-3
    assert json.loads(alone.stdout("a", "bulk"))["end"]["sum_received"]["bits_per_second"] > 1e6


def test_it_loads_the_modules_that_it_wants_itself() -> None:
    """It has them where its own file is, not where this machine's are."""
    show = "tc qdisc add dev lo root htb && tc qdisc add dev lo clsact && cat /proc/modules"
    done = dilaton("exec", "--", "sh", "-c", show)
    assert done.returncode == 0
    assert {"sch_htb", "sch_ingress"} <= {line.partition(" ")[0] for line in done.stdout.splitlines()}


def test_filters_hide_what_is_behind_a_node_fragments_too(run_lab: RunLab) -> None:
    """On those without iptables a node of the kind `nat` has them."""
    check_without_iptables(run_lab)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_lab_gives_what_it_gives_on_this_machine_s_kernel(
    run_lab: RunLab, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """One in which programs send, and one in which none does, where all instants are the same to microseconds."""
    lab = event_lab(seed)
    there = run_lab(json.dumps(lab))
    monkeypatch.setenv(kernels.VARIABLE, kernels.DEBIAN)
    check_same(lab, run_lab(json.dumps(lab)), there)


def test_nodes_that_share_a_guest_are_as_fast_as_their_cpus(run_lab: RunLab) -> None:
    """Also the child of a program, which is its node's as it is."""
    outcome = run_lab(SHARES)
    assert outcome.status == 0
    shares = outcome.record["fidelity"]["shares"]
    assert lives_s(outcome, "fast") + lives_s(outcome, "slow") == pytest.approx(shares["busy_s"], rel=0.05)
    assert lives_s(outcome, "slow") == pytest.approx(4 * lives_s(outcome, "fast"), rel=0.4)
    round_trips_ms = [float(found) for found in re.findall(r"time=([\d.]+)", outcome.stdout("a", "ping"))]
    assert len(round_trips_ms) == 3 and 40 <= min(round_trips_ms) < 41


def test_long_calls_are_charged_to_the_kernel(run_lab: RunLab) -> None:
    """Which newer kernels would not, from registers: see `OF_KERNEL` of the clock."""
    user_s, system_s = charged_s(run_lab, LONG_READS)
    assert system_s > 2 * user_s


def test_extended_state_that_has_not_changed_is_not_set_again(release: str, tmp_path: Path) -> None:
    """Of which newer kernels keep all that this host has, 11,008 bytes with AMX."""
    if release.endswith(kernels.SECCOMP):
        pytest.skip("programs that are not traced set it themselves")
    test_control.test_extended_state_that_has_not_changed_is_not_set_again(tmp_path)


def test_what_is_read_of_files_lies_in_memory_in_its_order() -> None:
    """So that many pages are mapped at once. Linux 6.12 hands out what modules have left in the opposite one, if it is let."""
    after, before = (int(word) for word in dilaton("exec", "--", PYTHON, "-I", "-S", "-c", NEIGHBOURS).stdout.split())
    assert after > 100
    assert before < after / 10


def test_on_the_wall_drive_idle_time_is_waited_for(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: wall\ntime: {drive: wall, tdf: 2}\nnodes: {a: {}}\nrun: [{on: a, name: sleep, exec: sleep 1}]\n"
    )
    assert outcome.status == 0
    assert 1 <= lives_s(outcome, "sleep") < 1.5
    assert outcome.record["time"]["host_s"] >= 2


def test_programs_are_kept_from_cpuid_or_none_begins(run_lab: RunLab, release: str) -> None:
    """Also on a CPU that cannot do it: the host's call is answered for it. Stubs of Linux 7 make it themselves."""
    lab = "name: cpuid\nnodes: {a: {}}\nrun: [{on: a, name: hello, exec: echo hello}]\n"
    done = run_lab(lab, wrapper=answering(in_kernel=0, in_stubs=0))
    assert (done.status, done.stdout("a", "hello")) == (0, "hello\n")
    refused = run_lab(lab, wrapper=answering(in_kernel=0, in_stubs=errno.ENODEV))
    if release.startswith("6."):  # whose stubs have it of their kernel
        assert refused.status == 0
    else:
        assert refused.status == 1
        assert "a new process of this kernel cannot be kept from CPUID" in refused.record["reason"]


@pytest.mark.parametrize("victim", ["command line", "kernel", "stub"])
def test_a_kill_leaves_nothing(victim: str) -> None:
    _, _, found = do(Kill("exec", "with many", victim, 0.05, is_loaded=False), PATIENCE_HOST_S)
    assert found == []
