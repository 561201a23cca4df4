"""`benches/distances.py`: the floor of a work, of what was counted and of what each call of the host takes."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHES = Path(__file__).parents[3] / "benches"
CLOCK = {
    "stub_stops": 100,
    "faults_told": 10,
    "faults_asked": 5,
    "cpuids": 20,
    "cpu_clock_calls": 320,
    "host_timers_armed": 7,
    "python_faults": 1000,
}
HOST = {
    "page-faults": 1100,
    "syscalls:sys_enter_mmap": 40,
    "syscalls:sys_enter_munmap": 3,
    "sched:sched_process_fork": 2,
}
BEYOND = {"process": 2, "map": 25, "unmap": 3, "touch": 70, "reading": 20, "timer": 7}
"""How often each loop is in the floor of that, with and without tracing."""


@pytest.fixture
def distances(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The bench's module."""
    for path in (BENCHES, BENCHES / "peers"):
        monkeypatch.syspath_prepend(path)
    for module in ("meter", "works", "distances"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return importlib.import_module("distances")


@pytest.mark.parametrize(
    ("kernel", "stops"),
    [
        # A fault is two stops.
        pytest.param("debian", {"metered": 50, "fault-metered": 15, "cpuid-metered": 20}, id="traced"),
        pytest.param(
            "7.2.7+seccomp",
            {"trapped-metered": 65, "fault-trapped-metered": 15, "cpuid-trapped-metered": 20},
            id="not traced",
        ),
    ],
)
def test_a_floor_is_what_guests_compute_and_each_call_at_what_its_loop_takes(
    distances: ModuleType, kernel: str, stops: dict[str, int]
) -> None:
    counted = distances.Counted(0.25, CLOCK, HOST)
    loops = stops | BEYOND
    nothing = dict.fromkeys(loops, 0.0)
    assert counted.floor_s(kernel, nothing, 8.0) == 2.0
    assert {name: round(counted.floor_s(kernel, nothing | {name: 1e6}, 0.0)) for name in loops} == loops, (
        "a second for each of a kind, and nothing for the others"
    )
