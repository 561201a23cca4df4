"""Which kernels the guest's clock understands, by what a kernel's file asks of libc.

The clock stands in front of the functions of libc by which a kernel learns the time, idles and runs user code
(`crates/clock/src/interpose.rs`). A kernel that does one of these in another way would run with a clock that is wrong,
so it is refused in words. What counts is what a kernel imports, not its version: distributions patch and configure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dilaton.host.here.uml.elf import DYNSYM, Elf


@dataclass(frozen=True)
class Duty:
    """Something that a kernel does through libc.

    Attributes:
        name: what it does, as a sentence about it goes on.
        ways: how; of each, all that it imports then.
    """

    name: str
    ways: tuple[frozenset[str], ...]


def _duty(name: str, *ways: str) -> Duty:
    return Duty(name, tuple(frozenset(way.split()) for way in ways))


DUTIES = (
    _duty("read its clock", "clock_gettime"),
    _duty("set its timer", "timer_create timer_settime"),
    _duty("take signals", "sigaction sigprocmask sigaltstack"),
    # Until it hears that its timer has expired, or on a descriptor that tells of it (Linux 7).
    _duty("sleep when it is idle", "timer_gettime sigsuspend", "signalfd poll"),
    _duty("run programs", "clone ptrace waitpid kill"),
    _duty("hear of input", "epoll_ctl epoll_wait"),
    _duty("serve its disks", "socketpair read write pread64 pwrite64"),
    _duty("draw random numbers", "getrandom"),
)
"""All that the clock stands in front of and no kernel can be without."""

SECCOMP_DUTY = _duty("run programs without tracing them", "clone syscall waitpid kill sigaction")
SECCOMP_ARGUMENT = b"\0seccomp=\0"
"""What a kernel has in it that knows this argument."""

FOREIGN = frozenset(
    {"clock_nanosleep", "nanosleep", "usleep", "setitimer", "alarm", "timerfd_settime", "ftime", "time"}
)
"""What would tell a kernel the host's time, or let it wait in that."""


@cache
def why_not_understood(kernel: Path) -> str:
    """Why the clock does not understand a kernel; empty where it does.

    Args:
        kernel: A `linux.uml`.
    """
    imported = _imports(kernel)
    for duty in DUTIES:
        if not any(way <= imported for way in duty.ways):
            lacking = " or ".join(" and ".join(sorted(way - imported)) for way in duty.ways)
            return f"{kernel} does not {duty.name} as the clock knows it: it does not import {lacking}"
    if foreign := sorted(FOREIGN & imported):
        return f"{kernel} imports {', '.join(foreign)}, which would tell it the host's time"
    return ""


@cache
def why_no_seccomp(kernel: Path) -> str:
    """Why a kernel has to trace its programs; empty where it can do without, as Linux 6.16 and later.

    Args:
        kernel: A `linux.uml`.
    """
    imported = _imports(kernel)
    if SECCOMP_ARGUMENT not in kernel.read_bytes() or not any(way <= imported for way in SECCOMP_DUTY.ways):
        return f"{kernel} does not {SECCOMP_DUTY.name}: Linux 6.16 and later do, with seccomp="
    return ""


def _imports(kernel: Path) -> frozenset[str]:
    """The names that a kernel takes from libraries; none where it is no such file."""
    return frozenset(symbol.name.decode() for symbol in Elf(kernel).symbols(DYNSYM) if not symbol.is_defined)
