"""What a run record says of the machine and of the program."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from pathlib import Path

import dilaton
from dilaton.host.files import ROOT
from dilaton.host.here.doctor import calibration
from dilaton.host.here.doctor.facts import cpu_model
from dilaton.host.port import Identity
from dilaton.plan.machine import Machine
from dilaton.plan.users import users_in
from dilaton.run.record.model import Dilaton, Host

GIT_HOST_S_MAX = 60.0
"""Host seconds after which git counts as unable to tell the commit: it hangs, however busy the host is."""


@functools.cache
def program() -> Dilaton:
    """This program."""
    return Dilaton(version=dilaton.__version__, commit=_commit())


def host(guest_kernel: str, identity: Identity) -> Host:
    """This machine, and the release of the kernel in its guests, and which one it is."""
    return Host(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(),
        kernel=platform.release(),
        guest_kernel=guest_kernel,
        guest_kernel_path=identity.path,
        guest_kernel_sha256=identity.sha256,
    )


def core_ghz() -> float | None:
    """What a core of this machine has, in GHz-equivalents; None: it was not measured."""
    found = calibration.stored(_cpu())
    return found.ghz if found else None


def for_plans() -> Machine:
    """This machine, as plans want to know it."""
    users = users_in(Path("/etc/passwd").read_text(errors="replace"))
    return Machine(cores=len(os.sched_getaffinity(0)), memory_bytes=_memory_bytes(), users=users)


def _cpu() -> str:
    return cpu_model(Path("/proc/cpuinfo").read_text())


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _commit() -> str | None:
    if not (ROOT / ".git").exists():
        return None
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_HOST_S_MAX)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
