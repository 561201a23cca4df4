"""Nothing in a guest tells the host's time: every time source that a program can find agrees with virtual time.

`what-time-is-it` reads the sources, each between two readings of the raw system call clock_gettime(2). That call is held
against the host's clock by `tests/fidelity/test_wall_drive.py`, so what agrees with it is virtual. The dilation factors
are such that a source that runs with the host's clock is off by far more than its granularity: 7 times too fast, or 3
times too slow, over seconds.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dilaton.host.here.uml import kernels
from tests.conftest import ROOT, RunLab

SOURCES = Path(__file__).with_name("what-time-is-it")
DOCUMENT = ROOT / "docs" / "time-sources.md"

CPU_SHARE_MIN = 0.8
"""What a spinning program has of its node's CPU, at least; the rest is the kernel's own work."""

NOT_IN_GUESTS = {
    "clock_gettime REALTIME_ALARM",
    "clock_gettime BOOTTIME_ALARM",
    "timer REALTIME_ALARM",
    "timer BOOTTIME_ALARM",
    "/dev/rtc0",
    "/sys/class/rtc",
    "/sys/kernel/debug/sched",
    "rdpmc",
    "rdpru",
    "perf cpu-clock",
    "perf task-clock",
}
"""Sources that a guest does not have; docs/time-sources.md says why."""

NOT_ON_SOME_KERNELS = {"/proc/self/sched"}
"""Those that Debian's Linux 6.1 has, and another kernel may lack by how it was configured."""


@dataclass(frozen=True)
class Source:
    """What the program printed about one source; times in nanoseconds."""

    name: str
    kind: str
    granularity_ns: int
    readings: list[tuple[int, int, int]]

    def error(self, wait_slack: float) -> str:
        """How it disagrees with the reference; empty when it agrees. Waits may take `wait_slack` times longer."""
        for low, value, high in self.bounds(wait_slack):
            if not low - self.granularity_ns <= value <= high + self.granularity_ns:
                return f"{self.name}: {value / 1e9:.6f} s is not within {low / 1e9:.6f} to {high / 1e9:.6f} s"
        return ""

    def bounds(self, wait_slack: float) -> Iterator[tuple[float, int, float]]:
        """The values, each between the least and the largest that are right."""
        if self.kind == "date":
            yield from self.readings
        elif self.kind == "wait":
            asked, took, _ = self.readings[0]
            yield asked, took, asked * (1 + wait_slack)
        else:
            (before, begin, after), (later_before, end, later_after) = self.readings
            share = CPU_SHARE_MIN if self.kind == "cpu" else 1
            yield (later_before - after) * share, end - begin, later_after - before

    @property
    def ticks_per_ns(self) -> float:
        """How fast a counter runs."""
        (before, begin, _), (later_before, end, _) = self.readings
        return (end - begin) / (later_before - before)


def parse(output: str) -> tuple[list[Source], set[str]]:
    """The sources that the program read, and the names of those that are absent."""
    rows = [json.loads(line) for line in output.splitlines()]
    absent = {row["source"] for row in rows if row["kind"] == "absent"}
    present = [
        Source(row["source"], row["kind"], row["granularity_ns"], row["readings"]) for row in rows if "readings" in row
    ]
    return present, absent


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, where nodes see it, and a killed test leaves nothing."""
    path = ROOT / "target" / "what-time-is-it"
    command = ["cc", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(path)]
    subprocess.run([*command, *map(str, sorted(SOURCES.glob("*.c")))], check=True)
    return path


@pytest.fixture(scope="module")
def native(program: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    """What the program says on the host, into a file: when that was written is one of the sources."""
    output = tmp_path_factory.mktemp("native") / "output"
    with output.open("w") as file:
        subprocess.run([program, "10", "1"], stdout=file, check=True)
    return parse(output.read_text())[0]


def counters(sources: list[Source]) -> dict[str, float]:
    """Speeds of the counters among the sources."""
    return {source.name: source.ticks_per_ns for source in sources if source.kind == "ticks"}


@pytest.mark.parametrize(
    ("drive", "tdf", "wait_ms", "span_s", "wait_slack"),
    [
        ("work", "7", 60, 3, 1.0),
        ("work", "1/3", 300, 3, 1.0),
        ("wall", "7", 20, 1, 1.5),
        ("wall", "1/3", 300, 4, 1.8),
        ("event", "1/7", 20, 1, 0.1),
    ],
)
def test_every_time_source_agrees_with_virtual_time(
    run_lab: RunLab,
    program: Path,
    native: list[Source],
    drive: str,
    tdf: str,
    wait_ms: int,
    span_s: int,
    wait_slack: float,
) -> None:
    # What a wait may take longer is what a host may take a core away for, 0.1 s and more; by its clock it would take three
    # times as long, or a seventh. The late start lets the guest's date and the host's go apart, on the work drive by all of it.
    command = f"[{program}, '{wait_ms}', '{span_s}', /tmp, /srv]"
    outcome = run_lab(
        f"""
name: time-sources
time: {{drive: {drive}, tdf: {tdf}}}
nodes: {{a: {{}}}}
run: [{{on: a, name: ask, exec: {command}, start: {span_s}s}}]
"""
    )
    assert outcome.status == 0
    present, absent = parse(outcome.stdout("a", "ask"))
    kept = [source for source in present if source.kind != "ticks"]
    assert [error for source in kept if (error := source.error(wait_slack))] == []
    may_lack = NOT_IN_GUESTS if kernels.chosen_name() == kernels.DEBIAN else NOT_IN_GUESTS | NOT_ON_SOME_KERNELS
    assert {name.removesuffix(" (system call)") for name in absent} <= may_lack
    speeds = {name: 1.0 if drive == "event" else counters(native)[name] for name in counters(present)}
    assert counters(present) == pytest.approx(speeds, rel=0.01)
    assert {"date", "elapsed", "cpu", "wait", "ticks"} == {source.kind for source in present}


def test_the_host_s_own_sources_agree_with_its_clock(native: list[Source]) -> None:
    # The program itself is right; CPU clocks and waits depend on what else the host does.
    assert [
        error for source in native if source.kind in ("date", "elapsed") and (error := source.error(math.inf))
    ] == []


def test_every_source_that_guests_lack_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert [name for name in sorted(NOT_IN_GUESTS | NOT_ON_SOME_KERNELS) if name not in text] == []


CPU_LIMIT = """
import resource, signal, sys, time
signal.signal(signal.SIGXCPU, lambda *_: print(time.process_time()) or sys.exit())
resource.setrlimit(resource.RLIMIT_CPU, (1, 60))
while True: pass
"""


def test_a_limit_of_cpu_time_is_one_of_virtual_time(run_lab: RunLab) -> None:
    outcome = run_lab(
        f"""
name: cpu-limit
time: {{drive: work, tdf: 1/5}}
nodes: {{a: {{}}}}
run: [{{on: a, name: spin, exec: {json.dumps(["python3", "-c", CPU_LIMIT])}}}]
"""
    )
    # The limit is whole seconds, looked at once a tick; by the host's clock it would come after five of them.
    assert 1.0 <= float(outcome.stdout("a", "spin")) <= 1.05


CPU_TIMERS = """
import signal, time
fired = {}
for which in ("VIRTUAL", "PROF"):
    signal.signal(signal.SIGVTALRM if which == "VIRTUAL" else signal.SIGPROF, lambda *_, of=which: fired.update({of: 1}))
    signal.setitimer(getattr(signal, "ITIMER_" + which), 0.02)
begin = time.monotonic()
sum(range(1_000_000))
print(time.process_time(), time.monotonic() - begin < 0.001, sorted(fired))
begin = time.monotonic()
while "PROF" not in fired: time.monotonic()
print(time.monotonic() - begin, sorted(fired))
"""


def test_on_the_event_drive_computing_uses_no_cpu_time_and_waiting_for_the_clock_does(run_lab: RunLab) -> None:
    outcome = run_lab(
        f"""
name: cpu-timers
time: {{drive: event}}
nodes: {{a: {{}}}}
run: [{{on: a, name: ask, exec: {json.dumps(["python3", "-c", CPU_TIMERS])}}}]
"""
    )
    computed, waited = outcome.stdout("a", "ask").splitlines()
    assert computed == "0.0 True []"
    took_s, fired = waited.split(maxsplit=1)
    # Up to two ticks late, and it is the kernel that was asked: no time of the program's own.
    assert 0.02 <= float(took_s) <= 0.04 and fired == "['PROF']"
