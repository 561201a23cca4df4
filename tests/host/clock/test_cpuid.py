"""What programs in a node are told of the processor: nothing that makes runs differ, nothing that guests cannot do."""

from __future__ import annotations

import errno
import json
import subprocess
import sys

import pytest

from dilaton.host.here.doctor.facts import gather
from tests.conftest import PYTHON, RunLab

# Prints [eax, ebx, ecx, edx] of some leaves, and then of one in a forked child and one in an executed program.
PROGRAM = """
import ctypes, json, mmap, os, subprocess, sys
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("53 89f8 89f1 4989d0 0fa2 418900 41895804 41894808 4189500c 5b c3"))
call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(
    ctypes.addressof(ctypes.c_char.from_buffer(code)))
def cpuid(leaf, subleaf):
    answer = (ctypes.c_uint32 * 4)()
    call(leaf, subleaf, ctypes.addressof(answer))
    return list(answer)
answers = [cpuid(leaf, subleaf) for leaf, subleaf in json.loads(sys.argv[1])]
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, json.dumps(cpuid(1, 0)).encode())
    os._exit(0)
answers.append(json.loads(os.read(reader, 1000)))
if len(sys.argv) == 2:
    answers += json.loads(subprocess.check_output([sys.executable, "-c", sys.orig_argv[2], "[[1, 0]]", "last"]))[:1]
print(json.dumps(answers))
"""

LEAVES = [(0, 0), (1, 0), (7, 0), (0xD, 0), (0x15, 0), (0x80000002, 0)]
RDRAND = 1 << 30
RDSEED, WAITPKG, AMX_TILE = 1 << 18, 1 << 5, 1 << 24
AVX_512 = sum(1 << bit for bit in (16, 17, 21, 26, 27, 28, 30, 31))
"""In EBX of leaf 7: F, DQ, IFMA, PF, ER, CD, BW, VL."""
EAX, EBX, ECX, EDX = range(4)


@pytest.mark.skipif(not gather().cpu_has_cpuid_faulting, reason="this CPU cannot make CPUID fault")
def test_random_numbers_and_what_guests_cannot_do_are_hidden_and_the_rest_is_the_host_s(run_lab: RunLab) -> None:
    command = ["-c", PROGRAM, json.dumps(LEAVES)]
    host = json.loads(subprocess.check_output([sys.executable, *command]))
    outcome = run_lab(
        f"name: cpuid\nnodes: {{a: {{}}}}\nrun:\n"
        f"  - {{on: a, name: ask, exec: {json.dumps([str(PYTHON), *command])}}}\n"
    )
    assert outcome.status == 0
    vendor, features, extended, state, counter, brand, forked, executed = json.loads(outcome.stdout("a", "ask"))
    assert [vendor, state[EBX:ECX], counter, brand] == [host[0], host[3][EBX:ECX], *host[4:6]]
    # A child and another program are told the same.
    assert forked == executed == features
    assert features[ECX] == host[1][ECX] & ~RDRAND
    assert features[EBX] >> 24 == 0, "the number of the core"
    assert (extended[EBX] & RDSEED, extended[ECX] & WAITPKG, extended[EDX] & AMX_TILE) == (0, 0, 0)
    assert extended[EBX] == host[2][EBX] & ~RDSEED & ~AVX_512, "the rest is the host's"


ANSWERING = """
import ctypes, os, struct, sys
# seccomp(2): arch_prctl(ARCH_SET_CPUID) is not made, but answered, libraries' and that of others; all other calls are made.
# Those of others are at low addresses, where programs are, or at the very end, where stubs are in seccomp mode.
errors = [0x50000 | int(error) for error in sys.argv[1:3]]
steps = [(0x20, 0, 0, 0), (0x15, 0, 8, 158), (0x20, 0, 0, 16), (0x15, 0, 6, 0x1012), (0x20, 0, 0, 12), (0x35, 0, 3, 0x7F00)]
steps += [(0x20, 0, 0, 8), (0x35, 1, 0, 0xFFFF0000)]
steps += [(6, 0, 0, errors[0]), (6, 0, 0, errors[1]), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Libraries are at the top of an address space, and stubs of Linux 7 far below."""


def answering(in_kernel: int, in_stubs: int) -> tuple[str, ...]:
    """What to put before a command, so that its request for CPUID faulting has these errors; 0: it seems to be done."""
    return (sys.executable, "-c", ANSWERING, str(in_kernel), str(in_stubs))


LOADER = "/lib64/ld-linux-x86-64.so.2"
HIDING = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"


@pytest.mark.skipif(not gather().cpu_has_avx512, reason="this CPU has no AVX-512")
def test_where_cpuid_cannot_fault_glibc_is_told_to_do_without_avx_512(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: glibc\nnodes: {a: {}}\nrun:\n"
        f"  - {{on: a, name: ask, exec: {json.dumps([str(PYTHON), '-c', PROGRAM, json.dumps([(7, 0)])])}}}\n"
        f"  - {{on: a, name: features, exec: {LOADER} --list-diagnostics}}\n"
        "  - {on: a, name: told, exec: printenv GLIBC_TUNABLES}\n"
        "  - {on: a, name: own, exec: printenv GLIBC_TUNABLES, env: {GLIBC_TUNABLES: glibc.malloc.check=1}}\n",
        wrapper=answering(errno.ENODEV, errno.ENODEV),
    )
    assert outcome.status == 0
    assert json.loads(outcome.stdout("a", "ask"))[0][EBX] & AVX_512, "CPUID does not fault"
    [used] = [line for line in outcome.stdout("a", "features").splitlines() if "features[0x1].active[0x1]" in line]
    # Of its own functions those need F, BW and VL.
    assert int(used.partition("=")[2], 16) & sum(1 << bit for bit in (16, 17, 28, 30, 31)) == 0
    assert outcome.stdout("a", "told") == f"{HIDING}\n"
    assert outcome.stdout("a", "own") == "glibc.malloc.check=1\n"


@pytest.mark.skipif(not gather().cpu_has_cpuid_faulting, reason="this CPU cannot make CPUID fault")
def test_where_avx_512_is_hidden_glibc_is_told_nothing(run_lab: RunLab) -> None:
    outcome = run_lab("name: glibc\nnodes: {a: {}}\nrun: [{on: a, name: told, exec: printenv, env: {A: b}}]\n")
    assert "GLIBC_TUNABLES" not in outcome.stdout("a", "told")
