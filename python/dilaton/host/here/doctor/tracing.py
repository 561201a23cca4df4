"""Whether a process may trace its child, which is how a User-Mode Linux kernel runs its user processes."""

from __future__ import annotations

import ctypes
import os
import subprocess

PTRACE_GETREGSET = 0x4204
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
NT_X86_XSTATE = 0x202

BUFFER_BYTES = 65_536
"""More than any CPU's extended state."""


class _IoVector(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def xstate_bytes() -> int:
    """Traces a child of this process for a moment; returns the size of its extended CPU state (XSAVE area).

    Seizing a child needs the same permissions as the child's PTRACE_TRACEME, and no code between fork and exec.

    Raises:
        OSError: when tracing is not allowed here.
    """
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        _ptrace(PTRACE_SEIZE, child.pid, 0, 0)
        _ptrace(PTRACE_INTERRUPT, child.pid, 0, 0)
        os.waitpid(child.pid, 0)
        buffer = ctypes.create_string_buffer(BUFFER_BYTES)
        vector = _IoVector(ctypes.addressof(buffer), BUFFER_BYTES)
        _ptrace(PTRACE_GETREGSET, child.pid, NT_X86_XSTATE, ctypes.addressof(vector))
        return int(vector.length)
    finally:
        child.kill()
        child.communicate()


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address), ctypes.c_void_p(data))
    if libc.ptrace(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace request {request:#x}: {os.strerror(number)}")
