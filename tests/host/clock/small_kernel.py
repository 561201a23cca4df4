"""A kernel of a few calls: a program that the clock library takes for one, with handlers in machine code that count."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from dilaton.host.files import CLOCK_LIBRARY
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.here.memory.wire import VARIABLE, Wire
from dilaton.host.orders import Orders
from tests.conftest import PATIENCE_HOST_S

KERNEL = """
import ctypes, fcntl, mmap, os, signal, struct, sys
libc = ctypes.CDLL(None)
line, host = map(int, sys.argv[1:])

# Handlers in machine code, since no Python runs on a signal stack: inc dword [rip + 58]; ret. The count is at 64.
INCREMENT = bytes.fromhex("ff053a000000c3")
RUNS_CODE = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
counts = {}
def handle(number, instructions=INCREMENT):
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=RUNS_CODE)
    code.write(instructions)
    counts[number] = code
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ON_STACK_WITH_INFO = 0x08000004
    libc.sigaction(number, struct.pack("Q128sQQ", address, bytes(128), ON_STACK_WITH_INFO, 0), None)
def count(number):
    return struct.unpack_from("I", counts[number], 64)[0]
def seen():
    return [count(number) for number in (signal.SIGALRM, signal.SIGIO)]

stack = ctypes.create_string_buffer(1 << 16)
libc.sigaltstack(struct.pack("QQQ", ctypes.addressof(stack), 0, len(stack)), None)
handle(signal.SIGALRM)
handle(signal.SIGIO)
fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(line, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
timer = ctypes.c_void_p()
libc.timer_create(1, None, ctypes.byref(timer))

ALARM = struct.pack("Q120x", 1 << signal.SIGALRM - 1)
mask = ctypes.create_string_buffer(128)
def set_timer(seconds):
    libc.timer_settime(timer, 0, struct.pack("qqqq", 0, 0, seconds, 0), None)
def idle():
    libc.sigprocmask(signal.SIG_BLOCK, ALARM, mask)
    libc.sigsuspend(mask)
    libc.sigprocmask(signal.SIG_UNBLOCK, ALARM, None)
    return seen()
"""
"""Its timer is set to hours, which it jumps over at idle, so that no alarm comes before."""


def output_of_kernel(does: str, wire: Wire | None = None) -> str:
    """What a kernel prints that does this on the work drive, with a serial line to the host, as guest 0 of the wire."""
    with contextlib.ExitStack() as stack:
        page = stack.enter_context(closing(ClockPage(0)))
        host, line = map(stack.enter_context, socket.socketpair())
        page.command(Orders(Fraction(1), "work"))
        fds = [*page.guest_fds, line.fileno(), host.fileno()]
        variable = ",".join(map(str, (*page.guest_fds, line.fileno(), -1)))
        clock = {"LD_PRELOAD": str(CLOCK_LIBRARY), "DILATON_CLOCK": variable}
        if wire is not None:
            clock[VARIABLE] = wire.variable(0)
            fds.append(wire.fd)
        command = [str(Path(sys.executable).resolve()), "-c", KERNEL + does, str(line.fileno()), str(host.fileno())]
        run = subprocess.run(
            command,
            env=os.environ | clock,
            pass_fds=fds,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=PATIENCE_HOST_S,
        )
        return run.stdout
