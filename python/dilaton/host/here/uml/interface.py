"""Which kernels the guest's clock understands, by what a kernel's file asks of libc.

The clock stands in front of the functions of libc by which a kernel learns the time, idles and runs user code
(`crates/clock/src/interpose.rs`). A kernel that does one of these in another way would run with a clock that is wrong,
so it is refused in words. What counts is what a kernel imports, not its version: distributions patch and configure.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO


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

MAGIC = b"\x7fELF\x02\x01"
DYNSYM = 11
"""SHT_DYNSYM; this and the structures: System V ABI, chapter 4, ELF64."""
HEADER, SECTION, SYMBOL = struct.Struct("<40xQ10xHH2x"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")


@cache
def why_not_understood(kernel: Path) -> str:
    """Why the clock does not understand a kernel; empty where it does.

    Args:
        kernel: A `linux.uml`.
    """
    with kernel.open("rb") as file:
        imported = _imports(file)
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
    with kernel.open("rb") as file:
        imported = _imports(file)
        file.seek(0)
        image = file.read()
    if SECCOMP_ARGUMENT not in image or not any(way <= imported for way in SECCOMP_DUTY.ways):
        return f"{kernel} does not {SECCOMP_DUTY.name}: Linux 6.16 and later do, with seccomp="
    return ""


def _imports(file: BinaryIO) -> frozenset[str]:
    """The names that an ELF file takes from libraries; none where it is no such file."""
    image = mmap(file.fileno(), 0, access=ACCESS_READ) if file.read(len(MAGIC)) == MAGIC else b""
    if len(image) < HEADER.size:
        return frozenset()
    sections_at, size, count = HEADER.unpack_from(image)
    sections = [SECTION.unpack_from(image, sections_at + number * size) for number in range(count)]
    names = set()
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind == DYNSYM:
            strings = sections[link][4]
            for name, _, _, section, _, _ in SYMBOL.iter_unpack(image[offset : offset + length]):
                if section == 0:
                    begin = strings + name
                    names.add(image[begin : image.find(b"\0", begin)].decode())
    return frozenset(names)
