"""The time-stamp counter, which user code reads without asking the kernel, runs with virtual time."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from tests.conftest import RunLab

# Prints the ticks per second by RDTSC and RDTSCP: in the main thread, in another one, and in a forked child.
PROGRAM = """
import ctypes, json, mmap, os, threading, time
rates = []
def measure(instruction):
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(instruction + bytes.fromhex("48c1e2204809d0c3"))
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    def both():
        # Again where something came between the two readings.
        begin, ticks, end = time.monotonic(), read(), time.monotonic()
        return (begin, ticks) if end - begin < 2e-3 else both()
    begin, ticks = both()
    time.sleep(0.4)
    end, more = both()
    rates.append((more - ticks) / (end - begin))
RDTSC, RDTSCP = bytes.fromhex("0f31"), bytes.fromhex("0f01f9")
measure(RDTSC)
measure(RDTSCP)
thread = threading.Thread(target=measure, args=[RDTSC])
thread.start()
thread.join()
reader, writer = os.pipe()
if os.fork() == 0:
    measure(RDTSCP)
    os.write(writer, json.dumps(rates).encode())
    os._exit(0)
print(os.read(reader, 1000).decode())
"""

LAB = """
name: counter
time: {{drive: {drive}, tdf: {tdf}}}
nodes: {{a: {{}}}}
run:
  - on: a
    name: counter
    exec:
      - python3
      - -c
      - |
{program}
"""


@pytest.mark.parametrize(("drive", "tdf"), [("wall", "4"), ("wall", "1/4"), ("work", "10")])
def test_the_counter_has_the_host_s_frequency_in_virtual_time(run_lab: RunLab, drive: str, tdf: str) -> None:
    native = json.loads(subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout)
    outcome = run_lab(LAB.format(drive=drive, tdf=tdf, program=textwrap.indent(PROGRAM, " " * 8)))
    dilated = json.loads(outcome.stdout("a", "counter"))
    # An untouched counter would be off by the TDF.
    assert dilated == pytest.approx(native, rel=0.03)


def test_the_counter_repeats_on_the_event_drive(run_lab: RunLab) -> None:
    lab = LAB.format(drive="event", tdf="3", program=textwrap.indent(PROGRAM, " " * 8))
    first, second = (run_lab(lab).stdout("a", "counter") for _ in range(2))
    assert first == second
    assert json.loads(first) == pytest.approx([1e9] * 4, rel=0.03)  # it ticks in nanoseconds


def test_the_counter_is_read_from_code_that_cannot_be(run_lab: RunLab) -> None:
    """So the kernel maps code while it looks for memory to free. One instruction lies across two words."""
    program = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code[:10] = bytes.fromhex("0f3148c1e2204809d0c3")
code[22:33] = bytes.fromhex("0f01f948c1e2204809d0c3")
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
rdtsc, rdtscp = (ctypes.CFUNCTYPE(ctypes.c_uint64)(address + offset) for offset in (0, 22))
madvise = ctypes.CDLL(None).madvise
madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
rdtsc()
MADV_COLD = 20
assert madvise(address, 4096, MADV_COLD) == 0
print(rdtsc() < rdtscp())
"""
    lab = {"name": "cold", "nodes": {"a": {}}, "run": [{"on": "a", "name": "cold", "exec": ["python3", "-c", program]}]}
    assert run_lab(json.dumps(lab)).stdout("a", "cold") == "True\n"


def test_a_real_fault_is_still_one(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: fault
nodes: {a: {}}
run: [{on: a, name: fault, exec: [python3, -c, "import ctypes; ctypes.string_at(8)"]}]
"""
    )
    assert outcome.process("fault")["signal"] == 11
