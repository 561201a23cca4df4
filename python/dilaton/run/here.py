"""This machine, as plans and records want to know it."""

from __future__ import annotations

import os
from pathlib import Path

from dilaton.host.here.doctor import calibration, facts
from dilaton.host.here.doctor.cpu import cpu_model
from dilaton.plan.machine import Machine
from dilaton.plan.users import users_in


def core_ghz() -> float | None:
    """What a core of this machine has, in GHz-equivalents; None: it was not measured."""
    found = calibration.stored(cpu())
    return found.ghz if found else None


def for_plans() -> Machine:
    """This machine, as plans want to know it."""
    users = users_in(Path("/etc/passwd").read_text(errors="replace"))
    return Machine(cores=len(os.sched_getaffinity(0)), memory_bytes=memory_bytes(), users=users)


def cpu() -> str:
    """The model of its CPU."""
    return cpu_model(Path("/proc/cpuinfo").read_text())


def memory_bytes() -> int:
    """All that it has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_available_bytes() -> int:
    """What of that programs can still get."""
    return facts.memory_available_bytes()
