"""What a program can do to the host where its kernel does not trace it: docs/security.md, "Programs that are not traced"."""

from __future__ import annotations

import json
import re

import pytest

from tests.conftest import PYTHON, RunLab

STUB = """
import ctypes, mmap, os, sys
PAGE = 4096
def status(act):
    child = os.fork()
    if child == 0:
        act()
        os._exit(0)
    return os.waitpid(child, 0)[1]
tops = [0x7FFFFFFFF000 - PAGE * number for number in range(1, 16)]
mapped = [page for page in tops if status(lambda: ctypes.string_at(page, 1)) == 0]
code = next(page for page in mapped if b"\\x0f\\x05\\xc3" in ctypes.string_at(page, PAGE))  # syscall; ret
memory = mmap.mmap(-1, PAGE, prot=7)
def call(gate, number):
    # With no arguments: xor rdi, rdi and so on; mov eax, number; mov r11, gate; jmp r11.
    zero = b"\\x31\\xff\\x31\\xf6\\x31\\xd2\\x4d\\x31\\xd2\\x4d\\x31\\xc0\\x4d\\x31\\xc9"
    memory[:80] = (zero + b"\\xb8" + number.to_bytes(4, "little") + b"\\x49\\xbb" + gate.to_bytes(8, "little")
                   + b"\\x41\\xff\\xe3").ljust(80, b"\\xcc")
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
gate = code + ctypes.string_at(code, PAGE).index(b"\\x0f\\x05\\xc3")
"""
"""Finds the page of the handler, which is near the end of a program's memory, and a way to call the host from it."""

CALLS = (
    STUB
    + """
X32 = 1 << 30
numbers = [*range(470), *(X32 + number for number in (0, 1, 2, 39, 59))]
print(*(number for number in numbers if status(lambda: call(gate, number)) == 0), flush=True)
print(status(lambda: call(gate, 39)), os.getppid() > 0)
"""
)

WRITES = (
    STUB
    + """
def write():
    there = (ctypes.c_char * 8).from_address(code + PAGE)
    there[:] = b"12345678"
print(status(write))
"""
)

ENDS = (
    STUB
    + """
BYTES = 1 << 24
room = mmap.mmap(-1, BYTES + PAGE)
start = ctypes.addressof(ctypes.c_char.from_buffer(room))
random = os.open("/dev/urandom", os.O_RDONLY)
# mov eax, edi; push rsi, rdx, rcx; no arguments, as above; mov r11, gate; call r11; pop rdx, rsi, rdi; xor eax, eax; syscall; ret
code = (b"\\x89\\xf8\\x56\\x52\\x51\\x31\\xff\\x31\\xf6\\x31\\xd2\\x4d\\x31\\xd2\\x4d\\x31\\xc0\\x4d\\x31\\xc9"
        b"\\x49\\xbb" + gate.to_bytes(8, "little") + b"\\x41\\xff\\xd3\\x5a\\x5e\\x5f\\x31\\xc0\\x0f\\x05\\xc3")
memory[:len(code)] = code
call_and_read = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 4)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
def end():
    ctypes.memset(start, 1, BYTES)
    call_and_read(202, random, start, 1)
    call_and_read(3, random, start + PAGE, BYTES)
print(*(status(end) for _ in range(3)), os.getppid() > 0)
"""
)
"""Programs that take the line to their kernel from their handler, and then ask for random bytes: that takes several ticks, each of
which wants to stop them, and the last of them need a new page, which the handler cannot map any more."""

RETURNING = {9: "mmap", 11: "munmap", 47: "recvmsg", 158: "arch_prctl", 202: "futex"}
"""Those after which a program goes on. After close of its line to the kernel, and rt_sigreturn without a frame, none does."""

UPROBE = 336
"""A call that hosts from Linux 6.18 exempt from all filters; they answer it where they have put it themselves."""


pytestmark = pytest.mark.usefixtures("untraced")


def said(run_lab: RunLab, program: str) -> list[str]:
    """What a program says in a run that ends as it should."""
    command = json.dumps([str(PYTHON), "-I", "-S", "-c", program])
    outcome = run_lab(f"name: stub\nnodes: {{a: {{}}}}\nrun: [{{on: a, name: ask, exec: {command}}}]\n")
    assert outcome.status == 0
    return outcome.stdout("a", "ask").splitlines()


def test_the_host_ends_a_program_that_asks_it_for_more_than_seven_calls(run_lab: RunLab) -> None:
    """Every number that the host has, each in a program of its own, and those of x32; the one that asks for them goes on."""
    returned, after = said(run_lab, CALLS)
    assert {int(number) for number in returned.split()} - {UPROBE} == set(RETURNING)
    ended, goes_on = after.split()
    assert (int(ended), goes_on) == (11, "True"), "ended as by a fault"


def test_a_program_that_cannot_be_mapped_its_pages_ends_alone(run_lab: RunLab) -> None:
    """Also where it was to be stopped before it would have gone on, so that its kernel has it map them all the same."""
    assert said(run_lab, ENDS) == ["11 11 11 True"]


def test_what_is_shared_with_the_kernel_is_the_programs_to_write(run_lab: RunLab) -> None:
    """A weakness that is documented: if this fails, kernels have become better, and the document may say so."""
    assert re.fullmatch("0", said(run_lab, WRITES)[0])
