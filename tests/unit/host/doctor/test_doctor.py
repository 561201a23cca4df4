"""Every finding of the doctor, on machines made of invented facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.distribution import DEBIAN, FEDORA, UBUNTU
from dilaton.host.errors import HostLacksError
from dilaton.host.here.doctor.doctor import Finding, diagnose, require
from dilaton.host.here.doctor.facts import Facts, NamespacePolicy, SharedMemory
from dilaton.host.here.doctor.own_counter import OwnCounter
from dilaton.host.here.jail.control_groups import Place

GIBIBYTE = 1 << 30

GOOD = Facts(
    cpu_model="Some CPU at 3 GHz",
    cpu_has_amx=False,
    cpu_has_avx512=True,
    cpu_has_cpuid_faulting=True,
    core_ghz=None,
    cores=4,
    cores_usable=4,
    kernel="6.1.0-42-amd64",
    memory_available_bytes=8 * GIBIBYTE,
    open_files_max=1_048_576,
    shared_memory=SharedMemory(size_bytes=8 * GIBIBYTE, free_bytes=8 * GIBIBYTE, exec_allowed=True),
    xstate_bytes=2696,
    trace_error="",
    uml=Path("/usr/bin/linux.uml"),
    uml_error="",
    uml_unlike="",
    uml_version="6.1.176",
    distribution=DEBIAN,
    modules=Path("/usr/lib/uml/modules/6.1.176"),
    bwrap_version="0.8.0",
    jail_error="",
    namespaces=NamespacePolicy(
        unprivileged_clone=1, namespaces_max=100_000, apparmor_restricts=None, in_container=False
    ),
    control_groups=Place(Path("/sys/fs/cgroup/user.slice"), ("memory", "pids")),
    tools=frozenset({"iperf3", "ping"}),
    python="3.11.2",
    unbuilt=(),
)


def machine(**facts: Any) -> Facts:
    """A good machine, but for these facts."""
    return replace(GOOD, **facts)


def no_jail(error: str = "bwrap: No permissions to create new namespace", **policy: Any) -> Facts:
    """A machine on which no jail can be made, with this namespace policy."""
    return machine(jail_error=error, namespaces=replace(GOOD.namespaces, **policy))


def finding(facts: Facts, name: str) -> Finding:
    """The finding of that name."""
    return next(found for found in diagnose(facts) if found.name == name)


def test_a_good_machine_has_nothing_to_fix() -> None:
    assert [found for found in diagnose(GOOD) if found.status != "ok" or found.fix] == []


def test_a_good_machine_may_run() -> None:
    require(jailed=True, facts=GOOD)


NO_SHM = machine(shared_memory=None)
NOEXEC_SHM = machine(shared_memory=replace(GOOD.shared_memory, exec_allowed=False))
UBUNTU = machine(distribution=UBUNTU, uml=None, uml_version="", modules=None)
SMALL_SHM = machine(shared_memory=SharedMemory(size_bytes=64 << 20, free_bytes=63 << 20, exec_allowed=True))


@pytest.mark.parametrize(
    ("facts", "name", "status", "what", "fix"),
    [
        (machine(uml=None, uml_version="", modules=None), "guest kernel", "missing", "linux.uml", "user-mode-linux"),
        (machine(uml=None, uml_error="there is no kernel 'x'"), "guest kernel", "missing", "'x'", "kernel use debian"),
        (machine(uml_version="", modules=None), "guest kernel", "missing", "does not run", "--reinstall"),
        (machine(uml_unlike="linux.uml does not sleep"), "guest kernel", "missing", "not sleep", "Debian 12 or 13"),
        (machine(modules=None), "guest modules", "missing", "6.1.176", "apt-get install user-mode-linux"),
        (UBUNTU, "guest kernel", "missing", "linux.uml", "packages.debian.org"),
        (machine(bwrap_version=None), "bubblewrap", "missing", "bwrap", "apt-get install bubblewrap"),
        (machine(bwrap_version=None, distribution=FEDORA), "bubblewrap", "missing", "bwrap", "dnf install bubblewrap"),
        (no_jail(unprivileged_clone=0), "jail", "missing", "only root", "kernel.unprivileged_userns_clone=1"),
        (no_jail(namespaces_max=0), "jail", "missing", "max_user_namespaces is 0", "user.max_user_namespaces="),
        (no_jail(in_container=True), "jail", "missing", "container", "seccomp=unconfined"),
        (no_jail(apparmor_restricts=1), "jail", "missing", "AppArmor", "apparmor_restrict_unprivileged_userns=0"),
        (no_jail("bwrap: something new"), "jail", "missing", "bwrap: something new", "--no-jail"),
        (
            machine(trace_error="Operation not permitted", xstate_bytes=None),
            "tracing",
            "missing",
            "not permitted",
            "yama",
        ),
        (machine(unbuilt=("dilaton-agent",)), "Dilaton", "missing", "dilaton-agent", "./dev setup"),
        (machine(cores_usable=1), "cores", "warning", "1 of 4", "two cores"),
        (machine(memory_available_bytes=GIBIBYTE // 2), "memory", "warning", "0.5 GiB", "1 GiB"),
        (machine(open_files_max=512), "open files", "missing", "512", "prlimit"),
        (machine(open_files_max=4096), "open files", "warning", "4,096: labs with disks need 4,112", "prlimit"),
        (machine(open_files_max=20_000), "open files", "warning", "20,000: programs that read", "prlimit"),
        (NO_SHM, "shared memory", "warning", "no /dev/shm", "mount -t tmpfs"),
        (NOEXEC_SHM, "shared memory", "warning", "noexec", "remount,exec"),
        (SMALL_SHM, "shared memory", "warning", "63 MiB free of 64 MiB", "--shm-size"),
        (machine(tools=frozenset({"ping"})), "iperf3", "warning", "not installed", "apt-get install iperf3"),
        (machine(tools=frozenset({"iperf3"})), "ping", "warning", "not installed", "apt-get install iputils-ping"),
    ],
)
def test_a_lack_is_named_with_its_fix(facts: Facts, name: str, status: str, what: str, fix: str) -> None:
    found = finding(facts, name)
    assert found.status == status
    assert what in found.what
    assert fix in found.fix


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("guest kernel", "Linux 6.1.176"),
        ("guest modules", "/usr/lib/uml/modules/6.1.176"),
        ("bubblewrap", "0.8.0"),
        ("jail", "can be made"),
        ("control groups", "in /sys/fs/cgroup/user.slice: guests are limited in memory, processes"),
        ("tracing", "allowed"),
        ("CPU state", "2696 bytes"),
        ("Dilaton", "built"),
        ("CPU", "Some CPU"),
        ("cores", "4 of 4"),
        ("memory", "8.0 GiB"),
        ("host kernel", "6.1.0-42-amd64"),
        ("Python", "3.11.2"),
        ("shared memory", "8.0 GiB free of 8.0 GiB, exec"),
        ("iperf3", "installed"),
        ("ping", "installed"),
    ],
)
def test_what_is_there_is_shown(name: str, what: str) -> None:
    found = finding(GOOD, name)
    assert found.status == "ok"
    assert what in found.what


def test_amx_state_is_reported_as_handled_by_the_clock() -> None:
    found = finding(machine(cpu_has_amx=True, xstate_bytes=11_008), "CPU state")
    assert (found.status, found.what) == ("ok", "11008 bytes, AMX included: handled by the clock")


def test_a_machine_without_control_groups_is_told_but_runs_labs() -> None:
    found = finding(machine(control_groups=None), "control groups")
    assert (found.status, found.what.partition(":")[0]) == ("ok", "none delegated")
    require(jailed=True, facts=machine(control_groups=None))


def test_a_cpu_without_cpuid_faulting_is_told_but_does_no_harm() -> None:
    found = finding(machine(cpu_has_cpuid_faulting=False), "CPUID")
    assert (found.status, found.what) == (
        "ok",
        "no CPUID faulting: nodes see RDRAND, RDSEED and what guests cannot do",
    )


@pytest.mark.parametrize(
    ("given_up", "what"),
    [
        (True, "guests give up their time-stamp counter while programs run: to disable and enable it takes 2.40 us"),
        (False, "guests keep their time-stamp counter: to disable and enable it takes 2.40 us"),
    ],
)
def test_what_guests_do_with_their_counter_is_told_where_it_was_measured(given_up: bool, what: str) -> None:
    found = finding(machine(own_counter=OwnCounter(2400, given_up=given_up)), "counter")
    assert (found.status, found.what) == ("ok", what)
    assert "counter" not in {finding.name for finding in diagnose(machine())}


def test_state_larger_than_the_kernels_without_amx_is_not_called_amx() -> None:
    assert finding(machine(xstate_bytes=2752), "CPU state").what == "2752 bytes, handled by the clock"


def test_a_size_that_could_not_be_measured_is_not_shown() -> None:
    assert "CPU state" not in {found.name for found in diagnose(machine(xstate_bytes=None, trace_error="denied"))}


def test_modules_are_not_judged_without_a_kernel() -> None:
    assert "guest modules" not in {found.name for found in diagnose(machine(uml=None, uml_version="", modules=None))}


def test_a_lack_refuses_a_run_and_one_command_installs_all_packages() -> None:
    with pytest.raises(HostLacksError) as caught:
        require(jailed=True, facts=machine(uml=None, uml_version="", modules=None, bwrap_version=None))
    assert "linux.uml" in caught.value.what
    assert "bwrap" in caught.value.what
    assert caught.value.fix == "sudo apt-get install user-mode-linux bubblewrap"


def test_apt_get_is_not_asked_for_what_ubuntu_does_not_have() -> None:
    with pytest.raises(HostLacksError) as caught:
        require(jailed=True, facts=replace(UBUNTU, bwrap_version=None))
    assert caught.value.fix.startswith("sudo apt-get install bubblewrap; then install Dilaton as a wheel")


def test_a_warning_refuses_nothing() -> None:
    require(jailed=True, facts=machine(tools=frozenset(), cores_usable=1, shared_memory=None))


def test_where_no_jail_is_possible_a_jailed_run_is_refused() -> None:
    with pytest.raises(HostLacksError, match="AppArmor"):
        require(jailed=True, facts=no_jail(apparmor_restricts=1))


@pytest.mark.parametrize("facts", [no_jail(apparmor_restricts=1), machine(bwrap_version=None)])
def test_a_run_without_a_jail_needs_none(facts: Facts) -> None:
    require(jailed=False, facts=facts)


def test_a_run_without_a_jail_still_needs_a_kernel() -> None:
    with pytest.raises(HostLacksError, match="guest kernel"):
        require(jailed=False, facts=machine(uml=None, uml_version="", modules=None))


@pytest.mark.parametrize(
    ("has_faulting", "level", "what"),
    [
        (True, "ok", "nodes do not see it"),
        (False, "warning", "nodes see it, but for glibc, and a program that uses it loses registers"),
    ],
)
def test_avx_512_is_told_where_the_cpu_has_it(has_faulting: bool, level: str, what: str) -> None:
    found = finding(machine(cpu_has_cpuid_faulting=has_faulting), "AVX-512")
    assert found.status == level and found.what.startswith(what)
    assert all(one.name != "AVX-512" for one in diagnose(machine(cpu_has_avx512=False)))
