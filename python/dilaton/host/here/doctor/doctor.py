"""Judges the facts of this machine: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from dilaton.host.distribution import Distribution, Program
from dilaton.host.errors import HostLacksError
from dilaton.host.here.doctor.facts import Facts, gather
from dilaton.host.here.doctor.own_counter import OwnCounter
from dilaton.host.here.guests import open_files
from dilaton.host.here.jail.control_groups import Place
from dilaton.host.here.uml import kernels

Status = Literal["ok", "warning", "missing"]

MEMORY_BYTES_MIN = 1 << 30
"""Available memory below which only small labs fit."""

SHARED_MEMORY_BYTES_MIN = 256 << 20
"""Free space in /dev/shm below which a guest without a jail may die of a bus error."""

KERNEL_XSTATE_BYTES = 2696
"""Room for extended CPU state in the stock kernel (FP_SIZE in arch/x86/um/user-offsets.c); the clock adds the rest."""

NO_STOCK_FIX = (
    "install Dilaton as a wheel, which has a kernel, as README.md says; or get the package user-mode-linux from "
    "https://packages.debian.org/bookworm/user-mode-linux, and sudo apt-get install ./user-mode-linux_*.deb"
)
"""What helps where the stock kernel is no package of the distribution."""

UNLIKE_FIX = "use the kernel of Debian 12 or 13: dilaton kernel use debian; or build one: dilaton kernel build"
"""What helps where the clock does not understand the kernel."""

LIMITED = {"memory": "memory", "pids": "processes", "cpu": "CPU"}
"""What the controllers of control groups limit, in words."""

STOCK_KERNEL = ("linux.uml", "user-mode-linux")

JAIL_FINDINGS = frozenset({"bubblewrap", "jail"})
"""What a run without a jail does not need."""


@dataclass(frozen=True)
class Finding:
    """One row of the diagnosis.

    Attributes:
        name: what was examined.
        status: `missing` stops a run, `warning` may spoil it.
        what: what was found, a sentence without a full stop.
        fix: what to do about it; empty when all is well.
        program: what is not installed, where a package brings it.
    """

    name: str
    status: Status
    what: str
    fix: str = ""
    program: Program | None = None


def diagnose(facts: Facts) -> list[Finding]:
    """Judges every fact; the parts that a run needs come first."""
    return [finding for examine in EXAMINATIONS for finding in examine(facts)]


def require(*, jailed: bool, facts: Facts | None = None) -> None:
    """Makes sure that this machine can run guests; `facts` are gathered when they are not given.

    Raises:
        HostLacksError: naming everything that is missing, with one command for all packages.
    """
    facts = facts or gather()
    lacks = [finding for finding in diagnose(facts) if finding.status == "missing"]
    if not jailed:
        lacks = [finding for finding in lacks if finding.name not in JAIL_FINDINGS]
    if lacks:
        what = "; ".join(f"{lack.name}: {lack.what}" for lack in lacks)
        raise HostLacksError(what, combined_fix(lacks, facts.distribution))


def combined_fix(findings: list[Finding], distribution: Distribution) -> str:
    """One line that fixes all of these: a single installation for all packages, then the other fixes."""
    packages = distribution.fix(finding.program for finding in findings if finding.program)
    others = [finding.fix for finding in findings if finding.fix and not finding.program]
    return "; then ".join(dict.fromkeys(filter(None, [packages, *others])))


def _lack(facts: Facts, name: str, status: Status, what: str, program: Program) -> Finding:
    return Finding(name, status, what, facts.distribution.fix([program]), program)


def _kernel_image(facts: Facts) -> Iterator[Finding]:
    if facts.uml_error:
        yield Finding("guest kernel", "missing", facts.uml_error, kernels.fix())
    elif facts.uml is None:
        yield _lacks_stock_kernel(facts, "guest kernel", "linux.uml is not installed")
    elif facts.uml_unlike:
        yield Finding("guest kernel", "missing", facts.uml_unlike, UNLIKE_FIX)
    elif not facts.uml_version:
        reinstall = "sudo apt-get install --reinstall user-mode-linux"
        yield Finding("guest kernel", "missing", f"{facts.uml} does not run", reinstall)
    else:
        yield Finding("guest kernel", "ok", f"{facts.uml}, Linux {facts.uml_version}")
        if facts.modules is None:
            what = f"the modules of Linux {facts.uml_version} are not installed"
            yield _lacks_stock_kernel(facts, "guest modules", what)
        else:
            yield Finding("guest modules", "ok", str(facts.modules))


def _lacks_stock_kernel(facts: Facts, name: str, what: str) -> Finding:
    if facts.distribution.package(STOCK_KERNEL[1]) is None:
        return Finding(name, "missing", what, NO_STOCK_FIX)
    return _lack(facts, name, "missing", what, STOCK_KERNEL)


def _jail(facts: Facts) -> Iterator[Finding]:
    if facts.bwrap_version is None:
        yield _lack(facts, "bubblewrap", "missing", "bwrap is not installed", ("bwrap", "bubblewrap"))
        return
    yield Finding("bubblewrap", "ok", facts.bwrap_version)
    if facts.jail_error:
        what, fix = explain_jail(facts)
        yield Finding("jail", "missing", what, f"{fix}; or --no-jail, where the lab may write your files")
    else:
        yield Finding("jail", "ok", "can be made")
    yield Finding("control groups", "ok", _control_groups(facts.control_groups))


def _control_groups(place: Place | None) -> str:
    if place is None:
        return "none delegated: guests have no limits but those of their jails and their user (docs/security.md)"
    words = [LIMITED[name] for name in place.controllers]
    return f"in {place.directory}: guests are limited in {', '.join(words)}"


def explain_jail(facts: Facts) -> tuple[str, str]:
    """Why no jail can be made, and what helps."""
    policy = facts.namespaces
    if policy.unprivileged_clone == 0:
        return (
            "this machine lets only root make user namespaces (kernel.unprivileged_userns_clone is 0)",
            _sysctl("kernel.unprivileged_userns_clone=1"),
        )
    if policy.namespaces_max == 0:
        return (
            "this machine allows no user namespaces (user.max_user_namespaces is 0)",
            _sysctl("user.max_user_namespaces=15000"),
        )
    if policy.in_container:
        return (
            f"the container that this runs in forbids it ({facts.jail_error})",
            "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined",
        )
    if policy.apparmor_restricts == 1:
        return (
            "AppArmor keeps ordinary users from using user namespaces "
            "(kernel.apparmor_restrict_unprivileged_userns is 1)",
            _sysctl("kernel.apparmor_restrict_unprivileged_userns=0"),
        )
    return f"bwrap says: {facts.jail_error}", "let an administrator allow it"


def _sysctl(setting: str) -> str:
    return f"sudo sysctl {setting} (until the next boot; a line in /etc/sysctl.d keeps it)"


def _tracing(facts: Facts) -> Iterator[Finding]:
    if facts.trace_error:
        yield Finding(
            "tracing",
            "missing",
            f"a process may not trace its child ({facts.trace_error})",
            f"{_sysctl('kernel.yama.ptrace_scope=1')}; in a container: --cap-add SYS_PTRACE",
        )
        return
    yield Finding("tracing", "ok", "allowed")
    if facts.xstate_bytes is not None:
        more = facts.xstate_bytes > KERNEL_XSTATE_BYTES
        handled = f", {'AMX included: ' if facts.cpu_has_amx else ''}handled by the clock" if more else ""
        yield Finding("CPU state", "ok", f"{facts.xstate_bytes} bytes{handled}")


def _built(facts: Facts) -> Iterator[Finding]:
    if facts.unbuilt:
        yield Finding("Dilaton", "missing", f"not built: {', '.join(facts.unbuilt)}", "./dev setup")
    else:
        yield Finding("Dilaton", "ok", "clock and agent are built")


def _avx512(is_hidden: bool) -> Finding:
    """What becomes of AVX-512, whose registers a program loses to the handler of a signal that interrupts it."""
    if is_hidden:
        return Finding("AVX-512", "ok", "nodes do not see it")
    what = "nodes see it, but for glibc, and a program that uses it loses registers to handlers of signals"
    return Finding("AVX-512", "warning", what, "tell such programs to do without, as docs/exec.md says")


def _machine(facts: Facts) -> Iterator[Finding]:
    yield Finding("CPU", "ok", facts.cpu_model)
    speed = "not measured: --calibrate does" if facts.core_ghz is None else f"{facts.core_ghz:.2f} GHz-equivalents"
    yield Finding("core", "ok", speed)
    hides = "nodes do not see" if facts.cpu_has_cpuid_faulting else "no CPUID faulting: nodes see"
    yield Finding("CPUID", "ok", f"{hides} RDRAND, RDSEED and what guests cannot do")
    if facts.cpu_has_avx512:
        yield _avx512(facts.cpu_has_cpuid_faulting)
    if facts.own_counter:
        yield Finding("counter", "ok", _own_counter(facts.own_counter))
    if facts.cores_usable == 1:
        what = f"1 of {facts.cores} usable: the guest shares it with everything else"
        yield Finding("cores", "warning", what, "give the machine, or this process, two cores")
    else:
        yield Finding("cores", "ok", f"{facts.cores_usable} of {facts.cores} usable")
    memory = f"{_gibibytes(facts.memory_available_bytes)} available"
    if facts.memory_available_bytes < MEMORY_BYTES_MIN:
        yield Finding("memory", "warning", memory, "close other programs; large labs need 1 GiB")
    else:
        yield Finding("memory", "ok", memory)
    yield _open_files(facts.open_files_max)
    yield Finding("host kernel", "ok", f"Linux {facts.kernel}")
    yield Finding("Python", "ok", facts.python)


def _own_counter(found: OwnCounter) -> str:
    rule = (
        "guests give up their time-stamp counter while programs run"
        if found.given_up
        else "guests keep their time-stamp counter"
    )
    return f"{rule}: to disable and enable it takes {found.switch_ns / 1e3:.2f} us"


def _open_files(limit: int) -> Finding:
    if limit == resource.RLIM_INFINITY:
        return Finding("open files", "ok", "as many as the kernel has")
    if limit >= open_files.EASY:
        return Finding("open files", "ok", f"at most {limit:,}")
    if limit < open_files.GUEST_MIN:
        what = f"at most {limit:,}, and a guest needs {open_files.GUEST_MIN:,}"
        return Finding("open files", "missing", what, open_files.FIX)
    failing = "programs that read many files may fail"
    if limit < open_files.DISKS_MIN:
        failing = f"labs with disks need {open_files.DISKS_MIN:,}, and {failing}"
    return Finding("open files", "warning", f"at most {limit:,}: {failing}", open_files.FIX)


def _shared_memory(facts: Facts) -> Iterator[Finding]:
    """A jail brings its own /dev/shm, so that this one matters only to runs without."""
    shm = facts.shared_memory
    if shm is None:
        what, fix = "there is no /dev/shm: runs with --no-jail fail", "sudo mount -t tmpfs tmpfs /dev/shm"
    elif not shm.exec_allowed:
        what, fix = "mounted noexec: runs with --no-jail fail", "sudo mount -o remount,exec /dev/shm"
    elif shm.free_bytes < SHARED_MEMORY_BYTES_MIN:
        what = f"{shm.free_bytes >> 20} MiB free of {shm.size_bytes >> 20} MiB: runs with --no-jail may fail"
        fix = "sudo mount -o remount,size=1G /dev/shm; in a container: --shm-size 1g"
    else:
        what = f"{_gibibytes(shm.free_bytes)} free of {_gibibytes(shm.size_bytes)}, exec"
        yield Finding("shared memory", "ok", what)
        return
    yield Finding("shared memory", "warning", what, fix)


def _tools(facts: Facts) -> Iterator[Finding]:
    for tool, package in (("iperf3", "iperf3"), ("ping", "iputils-ping")):
        if tool in facts.tools:
            yield Finding(tool, "ok", "installed")
        else:
            yield _lack(facts, tool, "warning", "not installed; the examples use it", (tool, package))


def _gibibytes(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB"


def _people(_: Facts) -> Iterator[Finding]:
    """What separates the people of a server."""
    what = (
        "a server that is root may give each person's runs a user id (run_as); otherwise they have its account, and "
        "jails and guests alone separate them (docs/security.md)"
    )
    yield Finding("people of a server", "ok", what)


EXAMINATIONS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _kernel_image,
    _jail,
    _tracing,
    _built,
    _machine,
    _shared_memory,
    _tools,
    _people,
)
