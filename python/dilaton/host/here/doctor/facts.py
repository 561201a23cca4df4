"""What this machine has: facts for `doctor`, gathered without changing anything, in about 30 ms of host time.

Readers are thin; what is read from text is taken apart by pure functions.
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dilaton.host import distribution, files
from dilaton.host.distribution import Distribution
from dilaton.host.errors import HostLacksError
from dilaton.host.here.doctor import calibration
from dilaton.host.here.doctor.cpu import cpu_flags, cpu_model
from dilaton.host.here.doctor.own_counter import OwnCounter
from dilaton.host.here.doctor.tracing import xstate_bytes
from dilaton.host.here.guests import cores, room
from dilaton.host.here.jail import control_groups, jail, warden
from dilaton.host.here.uml import interface, kernels
from dilaton.host.here.uml.kernels import Kernel

TOOLS = ("iperf3", "ping")
"""Programs that the examples run in nodes."""

PROBE_HOST_S_MAX = 60.0
"""Host seconds after which a probe counts as failed: a program that hangs, not one on a busy host."""


@dataclass(frozen=True)
class SharedMemory:
    """The file system at /dev/shm."""

    size_bytes: int
    free_bytes: int
    exec_allowed: bool


@dataclass(frozen=True)
class NamespacePolicy:
    """What decides whether an ordinary user may make user namespaces; None where this kernel has no such switch."""

    unprivileged_clone: int | None
    namespaces_max: int | None
    apparmor_restricts: int | None
    in_container: bool


@dataclass(frozen=True)
class Facts:
    """This machine, as far as running guests is concerned."""

    cpu_model: str
    cpu_has_amx: bool
    cpu_has_avx512: bool
    cpu_has_cpuid_faulting: bool
    """Whether the answers of CPUID to user code can be changed."""
    core_ghz: float | None
    """The speed of a core, in GHz-equivalents; None when it was not measured."""
    cores: int
    cores_usable: int
    """Cores that this process may run on."""
    kernel: str
    memory_available_bytes: int
    open_files_max: int
    """Files that a process of ours may have open at once, at most."""
    shared_memory: SharedMemory | None
    xstate_bytes: int | None
    """Size of a process's extended CPU state; None when it could not be traced."""
    trace_error: str
    """Why a process of ours cannot be traced; empty when it can."""
    uml: Path | None
    """The kernel that guests run; None when it is not there."""
    uml_error: str
    """Why it is not, where it is one of our own; empty otherwise."""
    uml_unlike: str
    """Why the clock does not understand it; empty where it does, or where it is not there."""
    uml_version: str
    distribution: Distribution
    modules: Path | None
    """The modules of that kernel; None when they are not installed."""
    bwrap_version: str | None
    jail_error: str
    """Why no jail can be made; empty when one was made."""
    namespaces: NamespacePolicy
    control_groups: control_groups.Place | None
    """Where jails get control groups with limits; None where this process may not make any."""
    tools: frozenset[str]
    python: str
    unbuilt: tuple[str, ...]
    """Parts of Dilaton that are not built."""
    own_counter: OwnCounter | None = None
    """Whether guests give up their time-stamp counter; None where it was not measured, as before a run."""


def memory_available_bytes() -> int:
    """Memory of this machine that programs can still get."""
    return room.available_bytes(_read("/proc/meminfo"))


def gather() -> Facts:
    """Examines this machine."""
    cpuinfo = _read("/proc/cpuinfo")
    kernel, kernel_error = _kernel()
    uml = kernel.program if kernel else None
    uml_version = _release(kernel) if kernel else ""
    modules = ((kernel and kernel.modules) or kernels.DEBIANS_MODULES) / uml_version
    bwrap = shutil.which("bwrap")
    xstate, trace_error = _trace()
    return Facts(
        cpu_model=cpu_model(cpuinfo),
        cpu_has_amx="amx_tile" in cpu_flags(cpuinfo),
        cpu_has_avx512="avx512f" in cpu_flags(cpuinfo),
        cpu_has_cpuid_faulting="cpuid_fault" in cpu_flags(cpuinfo),
        core_ghz=found.ghz if (found := calibration.stored(cpu_model(cpuinfo))) else None,
        cores=os.cpu_count() or 1,
        cores_usable=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        memory_available_bytes=memory_available_bytes(),
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        shared_memory=_shared_memory(Path("/dev/shm")),  # noqa: S108 - examined, not written
        xstate_bytes=xstate,
        trace_error=trace_error,
        uml=uml,
        uml_error=kernel_error,
        uml_unlike=interface.why_not_understood(uml) if uml else "",
        uml_version=uml_version,
        distribution=distribution.here(),
        modules=modules if uml_version and modules.is_dir() else None,
        bwrap_version=bwrap_version(_output(bwrap, "--version")) if bwrap else None,
        jail_error=_jail_error(Path(bwrap)) if bwrap else "",
        namespaces=_namespace_policy(),
        control_groups=control_groups.find(),
        tools=frozenset(tool for tool in TOOLS if shutil.which(tool)),
        python=platform.python_version(),
        unbuilt=tuple(part.name for part in (files.CLOCK_LIBRARY, files.AGENT, files.WARDEN) if not part.exists()),
    )


def free_cores() -> int:
    """How many cores no guest holds by now."""
    return cores.free()


def bwrap_version(output: str) -> str:
    """The version in `bubblewrap 0.8.0`."""
    return output.rpartition(" ")[2]


def switch(text: str) -> int | None:
    """The value of a file below /proc/sys; None for an empty text, as of a file that does not exist."""
    return int(text) if text.strip() else None


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _kernel() -> tuple[Kernel | None, str]:
    try:
        return kernels.chosen(), ""
    except HostLacksError as error:
        return None, "" if kernels.chosen_name() == kernels.DEBIAN else error.what


def _release(kernel: Kernel) -> str:
    """What a kernel says of itself, by which it shows that it runs here; one that runs in a jail alone is believed."""
    if kernel.libraries is not None and kernel.built is not None:
        return kernel.built.release
    return _output(kernel.program, "--version")


def _output(*argv: str | Path) -> str:
    """What a program prints; empty when it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=PROBE_HOST_S_MAX)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _shared_memory(path: Path) -> SharedMemory | None:
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return SharedMemory(
        size_bytes=status.f_blocks * status.f_frsize,
        free_bytes=status.f_bavail * status.f_frsize,
        exec_allowed=not status.f_flag & os.ST_NOEXEC,
    )


def _trace() -> tuple[int | None, str]:
    try:
        return xstate_bytes(), ""
    except OSError as error:
        return None, str(error)


def _jail_error(bwrap: Path) -> str:
    """Makes the jail of a run around `true`; says why that failed, or nothing."""
    true = Path(shutil.which("true") or "/bin/true")
    life, ours = os.pipe()
    with contextlib.ExitStack() as ends:
        ends.callback(os.close, life)
        # Its end ends the warden, and with it bubblewrap.
        ours_closed = ends.enter_context(os.fdopen(ours, "wb"))
        try:
            jailed = jail.command(bwrap, jail.Parts(true.parent, agent=true, clock=true), environment={})
            command = [*warden.command(life, None), *jailed, str(true)]
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=[life]
            )
            with process, ours_closed:
                errors = process.communicate(timeout=PROBE_HOST_S_MAX)[1]
        except (OSError, subprocess.SubprocessError, HostLacksError) as error:
            return str(error)
    return errors.strip() or f"exit status {process.returncode}" if process.returncode else ""


def _namespace_policy() -> NamespacePolicy:
    return NamespacePolicy(
        unprivileged_clone=switch(_read("/proc/sys/kernel/unprivileged_userns_clone")),
        namespaces_max=switch(_read("/proc/sys/user/max_user_namespaces")),
        apparmor_restricts=switch(_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")),
        in_container=Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    )
