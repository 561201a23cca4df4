"""A filter of system calls under which a program stays one process with one thread.

What a process may use is limited for each by itself, so one that multiplies has no limit: the limit of processes does
not hold for root, and counts all others of its user where it does. bubblewrap takes a filter as the kernel does: a
program of classic BPF (seccomp(2), linux/filter.h).
"""

from __future__ import annotations

import errno
import struct

ARCHITECTURE_X86_64 = 0xC000003E
X32 = 0x40000000
"""From this number on they are those of a third convention for calls."""

MULTIPLYING = (56, 57, 58, 435)
"""clone, fork, vfork, clone3."""

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
"""BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_JMP|BPF_JGE|BPF_K, BPF_RET|BPF_K."""

NUMBER_AT, ARCHITECTURE_AT = 0, 4
"""In struct seccomp_data."""

KILL, REFUSE, ALLOW = 0x80000000, 0x00050000 | errno.EPERM, 0x7FFF0000


def no_processes() -> bytes:
    """The filter: who asks for another process or thread is told that it may not have one."""
    asked = [(EQUAL, number) for number in MULTIPLYING] + [(AT_LEAST, X32)]
    tests = [(code, len(asked) - place, 0, value) for place, (code, value) in enumerate(asked)]
    program = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 1, 0, ARCHITECTURE_X86_64),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
        *tests,
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
