"""A handler that runs in the middle of what a guest does with the memory that it shares would tell others what is not so.

Here a page is not there at first, so that the kernel faults in the middle. Its handler of that has the host send something,
of which a signal tells, and makes the page be there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from dilaton.host.here.memory.wire import AWAY, LEFT, RING_BYTES_MIN, Way, Wire
from tests.host.clock.small_kernel import output_of_kernel

STEP_NS = 10_000_000
"""After so much virtual time the kernel tells the others where it is."""

IN_BETWEEN = r"""
def pack(*parts):
    return b"".join(part if isinstance(part, bytes) else struct.pack("Q", part) for part in parts)
def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
def call(number, *arguments):
    registers = (b"\x48\xbf", b"\x48\xbe", b"\x48\xba")  # rdi, rsi, rdx
    return pack(*(part for pair in zip(registers, arguments) for part in pair), b"\x48\xb8", number, b"\x0f\x05")
middle = bytearray(8)
def has_input_come_at(page):
    '''At the first access to this page; what was counted of it right then is what `in_the_middle` returns.'''
    SYS_WRITE, SYS_MPROTECT, READ_WRITE = 1, 10, 3
    count_at = address_of(counts[signal.SIGIO]) + 64
    has_come = call(SYS_MPROTECT, page, mmap.PAGESIZE, READ_WRITE) + call(SYS_WRITE, host, count_at, 1)
    noted = pack(b"\xa1", count_at, b"\xa3", address_of(middle))  # mov eax, [count]; mov [middle], eax
    handle(signal.SIGSEGV, has_come + noted + b"\xc3")
    assert libc.mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, 0) == 0
def in_the_middle():
    return int.from_bytes(middle, "little")
"""

SENDS = r"""
TUNSETIFF = 0x400454CA
device = libc.open(b"/dev/net/tun", os.O_RDWR)
assert libc.ioctl(device, ctypes.c_ulong(TUNSETIFF), b"wire0".ljust(40, b"\0")) == 0
frame = mmap.mmap(-1, mmap.PAGESIZE)
has_input_come_at(address_of(frame))
assert libc.writev(device, pack(address_of(frame), 100), 1) == 100
print(in_the_middle(), count(signal.SIGIO))
"""

GOES = r"""
# The handler of input reads the clock, by which a kernel tells where it is: sub rsp, 8; mov rdi, CLOCK_MONOTONIC; mov rsi, now;
# mov rax, clock_gettime; call rax; add rsp, 8; and then it counts.
read_at = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value
now = bytearray(16)
reads = pack(b"\x48\x83\xec\x08\x48\xbf", 1, b"\x48\xbe", address_of(now), b"\x48\xb8", read_at)
reads += b"\xff\xd0\x48\x83\xc4\x08"
handle(signal.SIGIO, reads + b"\xff\x05" + struct.pack("i", 64 - len(reads) - 6) + b"\xc3")

# A program that asks something of the clock: mov rax, "DILATON\0"; mov rdi, ASKED; hlt; ret.
TRACEME, PEEKUSER, CONT = 0, 3, 7
program = os.fork()
if not program:
    asks = mmap.mmap(-1, mmap.PAGESIZE, prot=RUNS_CODE)
    asks.write(pack(b"\x48\xb8", b"DILATON\0", b"\x48\xbf", ASKED, b"\xf4\xc3"))
    SYS_PTRACE = 101
    libc.syscall(SYS_PTRACE, TRACEME, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    ctypes.CFUNCTYPE(None)(address_of(asks))()
    os._exit(0)
status = ctypes.c_int()
libc.waitpid(program, ctypes.byref(status), 0)
libc.ptrace(CONT, program, None, None)

# The kernel has turned to it. It works for longer than others are to be without word of it, and does not look at its clock.
libc.ptrace(PEEKUSER, program, None, None)
[shared] = [line for line in open("/proc/self/maps") if "dilaton-wire" in line]
until = sum(os.times()[:2]) + 0.1
while sum(os.times()[:2]) < until: pass
# No alarm is to come where the memory is not there.
SYS_RT_SIGPROCMASK = 14
libc.syscall(SYS_RT_SIGPROCMASK, signal.SIG_BLOCK, ALARM, None, 8)
has_input_come_at(int(shared.partition("-")[0], 16))
libc.waitpid(program, ctypes.byref(status), 0)
print(in_the_middle(), count(signal.SIGIO))
"""


@pytest.fixture
def wire() -> Iterator[Wire]:
    """One to a guest in which nothing happens, so that nobody waits for it."""
    with closing(Wire(2, [Way(*ends, 2 * STEP_NS, RING_BYTES_MIN) for ends in ((0, 1), (1, 0))])) as wire:
        wire._write("member", 1, "next_ns", 10**18)
        wire.begin({0: 0, 1: 0})
        yield wire


def test_none_runs_between_the_instant_of_a_frame_and_its_way(wire: Wire) -> None:
    assert output_of_kernel(IN_BETWEEN + SENDS, wire).split() == ["0", "1"]
    assert wire.counted().ways[0].sent == 1


@pytest.mark.parametrize(("asked", "state"), [(1, LEFT), (7, AWAY)], ids=["leaves", "hands-over"])
def test_none_runs_between_the_word_that_a_guest_goes_and_its_own_note_of_that(
    wire: Wire, asked: int, state: int
) -> None:
    assert output_of_kernel(f"ASKED = {asked}" + IN_BETWEEN + GOES, wire).split() == ["0", "1"]
    assert wire._read("member", 0, "state") == state
