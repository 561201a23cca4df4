"""A kernel's own time-stamp counter, given up while programs run: the clock reads the same by system call, and whoever
reads the counter all the same gets it back.

The kernel is Python under the clock library, which takes it for one, with a traced child for a stub.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.errors import GuestError
from dilaton.host.files import CLOCK_LIBRARY
from dilaton.host.here.doctor import own_counter
from dilaton.host.here.memory.clock_page import OWN_COUNTER, ClockPage
from dilaton.host.orders import Drive, Orders
from tests.conftest import PATIENCE_HOST_S, ROOT, RunLab
from tests.functional.time.test_repeatable import left

EVENT_LAB = ROOT / "examples" / "asyncio-echo" / "lab.yaml"

KERNEL = """
import ctypes, json, mmap, os, signal, struct, time
libc = ctypes.CDLL(None)
NOTHING = ctypes.c_void_p()
TRACEME, CONT, SYSEMU, PR_GET_TSC = 0, 7, 31, 25

code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("c3" + 15 * "90" + "0f31c3"))  # a handler that returns; RDTSC
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
read_counter = ctypes.CFUNCTYPE(ctypes.c_uint32)(address + 16)
ON_STACK_WITH_INFO = 0x08000004
stack = ctypes.create_string_buffer(1 << 16)
libc.sigaltstack(struct.pack("QQQ", ctypes.addressof(stack), 0, len(stack)), None)
libc.sigaction(signal.SIGSEGV, struct.pack("Q128sQQ", address, bytes(128), ON_STACK_WITH_INFO, 0), None)

stub = os.fork()
if stub == 0:
    libc.ptrace(TRACEME, 0, NOTHING, NOTHING)
    while True:
        os.kill(os.getpid(), signal.SIGSTOP)
libc.waitpid(stub, None, 0)

def let_stub_run():
    libc.ptrace(CONT, stub, NOTHING, NOTHING)
    libc.waitpid(stub, None, 0)
def is_enabled():
    mode = ctypes.c_int()
    libc.prctl(PR_GET_TSC, ctypes.byref(mode))
    return mode.value == 1
def spin(clock, seconds):
    end = clock() + seconds
    while clock() < end:
        pass
"""


def output_of_kernel(does: str, wish: str, drive: Drive, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int, int]:
    """What a kernel prints that does this, how often it has given up its counter, and what it read the clock without."""
    monkeypatch.setenv(OWN_COUNTER, wish)
    with closing(ClockPage(0)) as page:
        page.command(Orders(Fraction(1), drive))
        variable = ",".join(map(str, (*page.guest_fds, -1, -1)))
        environment = {"LD_PRELOAD": str(CLOCK_LIBRARY), "DILATON_CLOCK": variable}
        # The clock watches for other programs on its core by what libc would use itself.
        environment["GLIBC_TUNABLES"] = "glibc.pthread.rseq=0"
        run = subprocess.run(
            [str(Path(sys.executable).resolve()), "-c", KERNEL + does],
            env=environment,
            pass_fds=page.guest_fds,
            stdout=subprocess.PIPE,
            check=True,
            timeout=PATIENCE_HOST_S,
        )
        return json.loads(run.stdout), page.read("counter_given_up"), page.read("counter_calls")


GIVES_UP = """
time.sleep(0.03)  # after which the counter has been measured
spin(time.thread_time, 0.03)
let_stub_run()
given_up = not is_enabled()
before = read_counter()
print(json.dumps([given_up, is_enabled(), read_counter() != before]))
"""


def test_it_is_given_up_when_a_program_runs_and_is_there_for_who_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, given_up, _ = output_of_kernel(GIVES_UP, "give-up", "work", monkeypatch)
    assert (answers, given_up) == ([True, True, True], 1)


def test_it_is_kept_where_the_host_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, given_up, calls = output_of_kernel(GIVES_UP, "keep", "work", monkeypatch)
    assert (answers, given_up, calls) == ([False, True, True], 0, 0)


READS = """
stub_clock = ~stub << 3 | 2  # clock_getcpuclockid(3)
def work():
    return time.thread_time_ns() + time.clock_gettime_ns(stub_clock)
spin(time.thread_time, 0.03)
time.monotonic()
rows = []
for round in range(400):
    let_stub_run()
    for reading in range(round % 60):
        time.monotonic()
    spin(time.thread_time, 0.0001)
    rows.append([work(), time.monotonic_ns(), work()])
print(json.dumps(rows))
"""

ERROR_NS = 1_000_000
"""What a clock may be off by after that. It takes tens of milliseconds, and many times as much by the host's clock where
there is other load."""


@pytest.mark.parametrize("wish", ["give-up", "keep"])
def test_without_it_work_is_metered_as_with_it(monkeypatch: pytest.MonkeyPatch, wish: str) -> None:
    """By turns without it and, after many readings, with it: the clock advances by the work of kernel and stub."""
    rows, given_up, calls = output_of_kernel(READS, wish, "work", monkeypatch)
    assert (given_up > 10 and calls > 400) == (wish == "give-up")
    readings = [now for _, now, _ in rows]
    assert readings == sorted(readings)
    (first_before, first, first_after), (last_before, last, last_after) = rows[0], rows[-1]
    assert last_before - first_after - ERROR_NS <= last - first <= last_after - first_before + ERROR_NS


def test_a_kernel_is_told_only_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_COUNTER, "sell")
    with pytest.raises(GuestError, match="DILATON_OWN_COUNTER=sell: not one of measure, keep, give-up"):
        ClockPage(0)


def test_on_the_event_drive_every_byte_is_the_same_with_and_without(
    run_lab: RunLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for wish in ("give-up", "keep"):
        monkeypatch.setenv(OWN_COUNTER, wish)
        outcome = run_lab(EVENT_LAB)
        assert outcome.record["fidelity"]["counter_given_up"] == (wish == "give-up")
        runs.append(left(outcome))
    assert runs[0] == runs[1]


def test_the_doctor_s_measurement_is_that_of_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_COUNTER, "give-up")
    found = own_counter.measure()
    assert found is not None and found.given_up


def test_on_the_wall_drive_it_may_be_given_up(run_lab: RunLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_COUNTER, "give-up")
    outcome = run_lab(
        "name: wall\ntime: {drive: wall}\nnodes: {a: {}}\nrun: [{on: a, name: nap, exec: sh -c 'sleep 1; sleep 1'}]"
    )
    begin_s, end_s = outcome.instant_s("started", "nap"), outcome.instant_s("exited", "nap")
    assert 2 <= end_s - begin_s < 10
    assert outcome.record["fidelity"]["counter_given_up"]
