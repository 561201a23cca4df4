"""Random kills: whatever of Dilaton is killed, at whatever moment, five seconds later nothing is left.

A round starts a command in a guest, a lab of two guests, or one without a jail, whose programs fork all the time; waits
for a stage of its start, and a little longer; kills one of its processes; and where the rest may go on, after a moment
the command line too. Every other round, two busy loops beside it keep the host's cores from it. The seed says all but the
host's scheduling. `./dev kills` does 2,000 rounds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import PATIENCE_HOST_S, command_line, environment
from tests.host.processes import children, descendants, guards, kernels, name_of

LEFT_HOST_S_MAX = 5.0
"""After which nothing may be left."""

GOES_ON_HOST_S_MAX = 0.2
"""How long what is left after a kill may go on, before the command line is killed too."""

AFTER_STAGE_HOST_S_MAX = 0.4

PR_SET_CHILD_SUBREAPER = 36

FORKING = "echo ready; while :; do /bin/true; done"

LAB = """
name: kills
time: {tdf: 1}
guests: per-node
nodes: {a: {}, b: {}}
links: [{endpoints: "a -- b", delay: 5ms}]
run:
  - {on: a, name: left, exec: [sh, -c, "while :; do /bin/true; done"]}
  - {on: b, name: right, exec: [sh, -c, "while :; do /bin/true; done"]}
"""


VICTIMS: dict[str, Callable[[int], list[int]]] = {
    "command line": lambda pid: [pid],
    "bubblewrap": lambda pid: [below for below in descendants(pid) if name_of(below) == "bwrap"],
    "warden": lambda pid: [below for below in descendants(pid) if name_of(below) == "dilaton-warden"],
    "guard": guards,
    "kernel": kernels,
    "stub": lambda pid: [below for kernel in kernels(pid) for below in descendants(kernel)],
    "any": lambda pid: [pid, *descendants(pid)],
}
"""What is killed, below a command line."""

STAGES: dict[str, Callable[[int], object]] = {
    "at its start": lambda _: True,
    "with a jail": VICTIMS["bubblewrap"],
    "with a kernel": kernels,
    "with a stub": VICTIMS["stub"],
    "with many": lambda pid: len(VICTIMS["stub"](pid)) > 3,
}
"""How far a run has to have come."""


@dataclass(frozen=True)
class Kill:
    """A round."""

    way: str
    stage: str
    victim: str
    after_host_s: float
    is_loaded: bool

    @classmethod
    def of(cls, seed: int) -> Kill:
        """The round of that seed."""
        draw = random.Random(seed)
        way = draw.choices(["exec", "run", "run --no-jail"], [6, 2, 2])[0]
        stages = [stage for stage in STAGES if (way, stage) != ("run --no-jail", "with a jail")]
        victims = [victim for victim in VICTIMS if way != "run --no-jail" or victim not in ("warden", "bubblewrap")]
        after_s = AFTER_STAGE_HOST_S_MAX * draw.random() ** 2
        return cls(way, draw.choice(stages), draw.choice(victims), after_s, bool(seed % 2))

    def command(self, directory: Path) -> list[str]:
        """The command line that is to be killed."""
        if self.way == "exec":
            return command_line("exec", "--max-speed", "1", "--", "sh", "-c", FORKING)
        lab = directory / "lab.yaml"
        lab.write_text(LAB)
        return command_line(*self.way.split()[:1], lab, "--out", directory / "run", *self.way.split()[1:])


def do(kill: Kill, patience_host_s: float = LEFT_HOST_S_MAX) -> tuple[str, float, list[str]]:
    """Does a round; returns what was killed, host seconds until nothing was left, and what is left after too long."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as text, _load(kill.is_loaded) as beside:
        directory = Path(text)
        places = {name: directory / name for name in ("HOME", "TMPDIR")}
        for place in places.values():
            place.mkdir()
        process = subprocess.Popen(
            kill.command(directory),
            env=environment() | {name: str(place) for name, place in places.items()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + PATIENCE_HOST_S
        while process.poll() is None and not STAGES[kill.stage](process.pid):
            assert time.monotonic() < deadline, f"it never came {kill.stage}"
            time.sleep(0.002)
        time.sleep(kill.after_host_s)
        assert process.poll() is None, f"it ended by itself, with status {process.returncode}"
        killed, is_vital = _kill_one(kill, process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_HOST_S if is_vital else GOES_ON_HOST_S_MAX)
        process.kill()
        begin = time.monotonic()
        process.wait()
        left = _remaining(beside)
        while left and time.monotonic() < begin + patience_host_s:
            time.sleep(0.005)
            left = _remaining(beside)
        taken_s = time.monotonic() - begin
        found = [_portrait(pid) for pid in left]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        found += [str(path) for place in places.values() for path in place.iterdir()]
        return killed, taken_s, found


def _kill_one(kill: Kill, process: subprocess.Popen[bytes]) -> tuple[str, bool]:
    """Kills what was to be killed, or, where there is none of it, anything; returns its name.

    And whether the run has to end by itself then.
    """
    draw = random.Random(kill.after_host_s)
    for victim in (kill.victim, "any"):
        found = VICTIMS[victim](process.pid)
        if found:
            target = draw.choice(found)
            # Before a run, bubblewrap also examines whether a jail can be made.
            is_vital = "linux.uml" in _command_of(target) and target not in VICTIMS["stub"](process.pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)
                return victim, is_vital
    return "nothing", False


@contextlib.contextmanager
def _load(is_loaded: bool) -> Iterator[set[int]]:
    """Two busy loops; gives the processes that are no leftovers."""
    loops = [subprocess.Popen(["nice", "sh", "-c", "while :; do :; done"]) for _ in range(2 * is_loaded)]
    try:
        yield {loop.pid for loop in loops}
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _remaining(beside: set[int]) -> list[int]:
    """What lives below us; what is dead is buried."""
    for pid in set(children(os.getpid())) - beside:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return [pid for pid in descendants(os.getpid()) if pid not in beside]


def _command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    return ""


def _portrait(pid: int) -> str:
    """What a process is, and what it waits for."""

    def read(name: str) -> str:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
        return ""

    shown = ("State", "PPid", "TracerPid")
    status = [" ".join(line.split()) for line in read("status").splitlines() if line.startswith(shown)]
    return f"{pid} {name_of(pid)} {_command_of(pid)[:60]!r} {status} {read('wchan')}"


def main() -> int:
    """Does COUNT rounds from seed FIRST on; the status is 1 when one left something."""
    count, first = map(int, [*sys.argv[1:], "2000", "0"][:2] if len(sys.argv) != 2 else [sys.argv[1], "0"])
    # Nothing that a kill leaves can hide from us.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    failed: list[int] = []
    victims: Counter[str] = Counter()
    slowest_s = 0.0
    for seed in range(first, first + count):
        kill = Kill.of(seed)
        killed, taken_s, left = do(kill)
        victims[killed] += 1
        slowest_s = max(slowest_s, taken_s)
        if left:
            failed.append(seed)
            print(f"seed {seed}: {kill}: {'; '.join(left)}", flush=True)
        if (seed - first) % 50 == 49:
            print(f"{seed - first + 1} rounds, {len(failed)} failed, slowest end {slowest_s:.2f} s", flush=True)
    shown = ", ".join(f"{number} {victim}" for victim, number in victims.most_common())
    print(f"{count} kills ({shown}), {len(failed)} left something{': ' if failed else ''}{', '.join(map(str, failed))}")
    print(f"the slowest end took {slowest_s:.2f} s")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
