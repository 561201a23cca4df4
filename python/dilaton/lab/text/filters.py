"""Capture filters: the language of tcpdump (pcap-filter(7)), compiled to what a kernel runs.

The compiler is libpcap's own, so a filter means what it means to tcpdump. It is called when the lab is read, so that a
mistake is one of the lab and not of the run, and the plan holds the program: guests need no compiler.
"""

from __future__ import annotations

import ctypes
import functools

LIBRARY = "libpcap.so.0.8"
DLT_EN10MB = 1
"""Frames begin with an Ethernet header."""
NETMASK_UNKNOWN = 0xFFFFFFFF
BPF_RET = 6
"""The instruction that accepts as many bytes of a packet as its operand says."""

Instruction = tuple[int, int, int, int]
"""Code, jumps if true and if false, operand: `struct sock_filter` of `linux/filter.h`."""


class FilterError(ValueError):
    """A filter that cannot be compiled; the message says why."""


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.POINTER(_Instruction)))


def compile_filter(text: str | None, snaplen: int) -> list[Instruction]:
    """Compiles a filter for Ethernet.

    Args:
        text: What is to be kept, as for tcpdump; None: every packet.
        snaplen: Bytes of a packet that are kept at most, above 0.

    Raises:
        FilterError: it is no such filter, or libpcap is missing.
    """
    if text is None:
        return [(BPF_RET, 0, 0, snaplen)]
    library = _library()
    handle = ctypes.c_void_p(library.pcap_open_dead(DLT_EN10MB, snaplen))
    program = _Program()
    try:
        if library.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, NETMASK_UNKNOWN):
            raise FilterError(f"{text}: not a filter as of tcpdump: {_reason(library.pcap_geterr(handle))}")
        found = [(each.code, each.jt, each.jf, each.k) for each in program.instructions[: program.length]]
        library.pcap_freecode(ctypes.byref(program))
    finally:
        library.pcap_close(handle)
    return found


def _reason(error: bytes) -> str:
    reason = error.decode(errors="replace")
    hint = "; names of nodes mean nothing here, write an address" if "host" in reason or "name" in reason else ""
    return reason + hint


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise FilterError("a filter is compiled by libpcap, which is not there; install libpcap0.8") from error
    library.pcap_open_dead.restype = ctypes.c_void_p
    library.pcap_geterr.restype = ctypes.c_char_p
    return library
