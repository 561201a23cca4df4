"""Nodes with kernels of their own go off and boot again and again, and the host holds no more of the run than before.

Five guests, each with one node; a seed draws which of three goes off, how, when and for how long, once in each period of
virtual time. At the end of each period the clock is held, all nodes are on, and what the run holds on the host is
counted: its processes, and of its own process the open files and the memory maps of files and shared memory. That has to be
what it was before the first boot. `./dev reboots` does a hundred cycles, twice, and compares the two to the byte.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dilaton
from tests.host.processes import descendants, name_of

PERIOD_MS = 400
"""Virtual time in which one node goes off and is back."""

NODES = ["b1", "b2", "b3"]
"""Those that do; a and c never do."""

PING_S = 0.1
"""Between requests of `a`."""

HELD_BEFORE_S = 0.04
"""How long before the end of a period the clock is held: ping spins for 10 ms before each request, until time has passed."""

LOOKS = 500
LOOK_HOST_S = 0.01


@dataclass(frozen=True)
class Cycle:
    """A node goes off, and boots."""

    node: str
    how: str
    at_ms: int
    for_ms: int

    @property
    def faults(self) -> list[dict[str, Any]]:
        """It as a lab has it."""
        if self.how == "reboot":
            return [{"at": f"{self.at_ms}ms", "reboot": self.node}]
        if self.how == "stop and start":
            start = {"at": f"{self.at_ms + self.for_ms}ms", "start": self.node}
            return [{"at": f"{self.at_ms}ms", "stop": self.node}, start]
        return [{"at": f"{self.at_ms}ms", "for": f"{self.for_ms}ms", self.how: self.node}]


def cycles(count: int, seed: int) -> list[Cycle]:
    """So many, drawn from the seed; the first is in the second period."""
    draw = random.Random(seed)
    hows = ["crash", "crash", "stop", "reboot", "stop and start"]
    return [
        Cycle(draw.choice(NODES), draw.choice(hows), number * PERIOD_MS + draw.randint(20, 200), draw.randint(10, 100))
        for number in range(1, count + 1)
    ]


def lab(drawn: list[Cycle], seed: int) -> dict[str, Any]:
    """The lab of these cycles: a asks c all the time, and one of those that go off."""
    lasts_s = (len(drawn) + 1) * PERIOD_MS / 1000
    pings = [
        {
            "on": "a",
            "name": f"to-{other}",
            "exec": f"ping -D -i {PING_S} -c {lasts_s / PING_S + 1:.0f} {other}",
            "expect_exit": "any",
        }
        for other in ("c", NODES[0])
    ]
    hello = "cat /proc/sys/kernel/random/boot_id; exec sleep 1000"
    programs = [
        {"on": node, "name": f"hello-{node}", "background": True, "exec": ["sh", "-c", hello]} for node in NODES
    ]
    return {
        "name": "reboots",
        "seed": seed,
        "time": {"drive": "event"},
        "guests": "per-node",
        "nodes": {name: {} for name in ["a", "c", *NODES]},
        "links": [{"endpoints": ["a", other], "delay": "5ms"} for other in ["c", *NODES]],
        "run": [*pings, *programs],
        "faults": [fault for cycle in drawn for fault in cycle.faults],
        "stop_after": f"{lasts_s:.1f}s",
    }


@dataclass(frozen=True)
class Held:
    """What a run holds on the host."""

    processes: Counter[str]
    """Below its own process, by program."""
    files: Counter[str]
    """That its own process has open, by kind."""
    maps: Counter[str]
    """That its own process has of files and shared memory."""
    anonymous_kb: int = field(compare=False)
    """Its own process's private memory, which Python takes and gives back as it likes."""

    @classmethod
    def settled(cls, pid: int, before: Held | None = None) -> Held:
        """What it holds once it has closed the connection of who has asked for something.

        That is when it holds no more than before, or the least of many looks where nothing is known of before.
        """
        held = cls.now(pid)
        for _ in range(LOOKS):
            if before is not None and held == before:
                break
            time.sleep(LOOK_HOST_S)
            now = cls.now(pid)
            held = min(held, now, key=lambda held: held.files.total()) if before is None else now
        return held

    @classmethod
    def now(cls, pid: int) -> Held:
        """What the process of a run holds now."""
        place = Path(f"/proc/{pid}")
        files = Counter(map(_kind, _links(place / "fd")))
        lines = [line.split(maxsplit=5) for line in (place / "maps").read_text().splitlines()]
        maps = Counter(_kind(words[5]) for words in lines if len(words) == 6 and not words[5].startswith("["))
        [anonymous] = re.findall(r"^RssAnon:\s+(\d+) kB", (place / "status").read_text(), re.MULTILINE)
        return cls(Counter(map(name_of, descendants(pid))), files, maps, int(anonymous))


def _links(directory: Path) -> Iterator[str]:
    for entry in os.scandir(directory):
        try:
            yield os.readlink(entry.path)
        except OSError:
            continue


def _kind(target: str) -> str:
    """What a descriptor or map is of, without the numbers in which one differs from the next."""
    return re.sub(r"\d+", "N", target)


@dataclass
class Result:
    """What became of a run with many boots."""

    held: list[Held]
    """Before the first boot and after each."""
    left: list[str]
    """Processes and files after the end."""
    kernels: int
    """Those that nodes have booted with, without the first of each."""
    output: dict[str, bytes]
    """What programs have printed, and the events, by file."""


def run(count: int, seed: int, directory: Path) -> Result:
    """Does so many cycles."""
    with _temporary(directory / "tmp") as temporary:
        beside = _below_us()
        first, *later = [number * PERIOD_MS / 1000 - HELD_BEFORE_S for number in range(1, count + 2)]
        with dilaton.start(lab(cycles(count, seed), seed), out=directory / "run", hold_at=first) as live:
            pid = (_below_us() - beside).pop()
            held = [Held.settled(pid)]
            for at_s in later:
                live.until(at_s)
                held.append(Held.settled(pid, held[0]))
            live.release()
            outcome = live.wait()
        left = [f"{pid} {name_of(pid)}" for pid in _below_us() - beside]
        left += [str(path) for path in temporary.rglob("*")]
    place = outcome.path
    left += [str(path) for path in (place / "guest").iterdir() if path.suffix != ".log"]
    written = [place / "events.jsonl", *(file for file in (place / "nodes").rglob("*") if file.is_file())]
    output = {str(file.relative_to(place)): file.read_bytes() for file in written}
    identities = [line for node in NODES for line in outcome.output(f"hello-{node}").splitlines()]
    assert outcome.record.state == "finished", outcome.record.reason
    return Result(held, left, len(set(identities)) - len(NODES), output)


def _below_us() -> set[int]:
    """Our children, whichever thread has made them."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A directory of its own for what is temporary."""
    path.mkdir(parents=True)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(path)
    try:
        yield path
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before


def main() -> int:
    """Does COUNT cycles from a SEED, twice; the status is 1 when a boot left something, or the two differ."""
    count, seed = map(int, [*sys.argv[1:], *["100", "1"][len(sys.argv) - 1 :]])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        first, second = (run(count, seed, Path(directory) / name) for name in ("first", "second"))
    before, last = first.held[0], first.held[-1]
    more = [held for one in (first, second) for held in one.held if held != one.held[0]]
    left = first.left + second.left
    differ = [name for name in first.output if first.output[name] != second.output.get(name)]
    lines = first.output["nodes/a/to-c.stdout"].decode().splitlines()
    times_ms = [float(line.split("time=")[1].split()[0]) for line in lines if "time=" in line]
    hows = Counter(cycle.how for cycle in cycles(count, seed)).most_common()
    print(f"{count} cycles ({', '.join(f'{number} {how}' for how, number in hows)}), {first.kernels} boots, twice")
    print(f"held: {dict(before.processes)}, {before.files.total()} files, {before.maps.total()} maps")
    print(f"times that it held anything else after a cycle: {len(more)}; left at the end: {left or 'nothing'}")
    print(f"private memory of the run's process: {before.anonymous_kb} kB, and after all cycles {last.anonymous_kb} kB")
    print(f"answers of a node that stays on: {len(times_ms)}, in {min(times_ms)} to {max(times_ms)} ms")
    print(f"files that differ between the two runs: {differ or 'none'}, of {len(first.output)}")
    return int(bool(more or differ or left or {first.kernels, second.kernels} != {count}))


if __name__ == "__main__":
    sys.exit(main())
