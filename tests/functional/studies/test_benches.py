"""Benches: what they import and call is checked by mypy; one that talks to a guest by itself runs at its smallest size."""

from __future__ import annotations

import subprocess
import sys

from dilaton.host.here.doctor.facts import gather
from tests.conftest import PATIENCE_HOST_S, ROOT, environment, show


def rows_of(bench: str, *arguments: str) -> list[str]:
    """The lines that a bench prints, which count what tests count."""
    command = [sys.executable, str(ROOT / "benches" / bench), *arguments]
    done = subprocess.run(
        command,
        env=environment() | {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_HOST_S,
        check=False,
    )
    show(command, done)
    assert done.returncode == 0
    return done.stdout.splitlines()


def test_what_a_guest_takes_to_be_ready_is_a_row_for_each_size() -> None:
    said = rows_of("build.py", "2")
    *_, row = said
    nodes, *figures = [float(cell) for cell in row.strip("| ").split("|")]
    assert nodes == 2 and len(figures) == 4 and min(figures) > 0


def test_the_floor_has_a_row_for_each_way_to_stop_a_program_and_each_loop_of_a_guest() -> None:
    said = rows_of("floors.py", "debian", "--repeat", "1", "--stops", "500")
    rows = [line.strip("| ").split(" | ") for line in said if line.startswith("| ")]
    names = [row[0] for row in rows if len(row) == 2 and row[1][0].isdigit()]
    ways = ["traced", "metered", "trapped", "trapped-metered"]
    calls = ["map", "unmap", "touch", "reading", "timer", "process"]
    cpuids = ["cpuid-metered", "cpuid-trapped-metered"] if gather().cpu_has_cpuid_faulting else []
    assert names == ["switch", *ways, "fault-traced", *(f"fault-{way}" for way in ways[1:]), *calls, *cpuids]
    stops, *loops = [row[1:] for row in rows if row[0] == "debian"]
    assert all(int(count) > 0 for count in (stops[0], stops[2]))
    # perf(1) is not everywhere, and not everybody's.
    assert all(count == "not counted" or int(count) > 0 for count in stops[3:5])
    assert [loop[0] for loop in loops] == ["getppid", "page fault", "fork, exec, wait"]


def test_what_a_node_takes_is_a_row_for_each_kind_of_memory_and_for_cpu_time() -> None:
    said = rows_of("nodes.py", "--few", "2", "--many", "10", "--repeat", "1")
    head, *rows = [line.strip("| ").split(" | ") for line in said if "---" not in line]
    assert head == ["a node: kB", "loop", "line", "distance"]
    assert [row[0] for row in rows] == ["Slab", "KernelStack", "PageTables", "Percpu", "AnonPages", "all", "CPU, us"]
    slabs, _, _, _, _, whole, _ = [[float(cell.split(" to ")[0]) for cell in row[1:]] for row in rows]
    assert all(0 < slab < every for slab, every in zip(slabs[:2], whole[:2], strict=True))
