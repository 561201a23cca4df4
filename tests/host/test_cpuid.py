"""What programs in a node are told of the processor: nothing that makes runs differ, nothing that guests cannot do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dilaton.host.facts import gather
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
    # An AVX-512 guest computes as its host does.
    assert extended[EBX] == host[2][EBX] & ~RDSEED
