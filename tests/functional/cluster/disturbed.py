"""Random deaths, stops and stalls of what a run over two machines is made of, at any moment of it.

A round starts a run, waits until it has come to a moment, and kills a host agent, the relay of a machine or the hub, stops
one of them, for good or for three seconds, which is shorter than any limit, or disturbs a connection: cuts it, or has
nothing pass, on both ways or on one. The promise: a run that says that it is well has the results of one that nobody
has disturbed; any other says so, with the machine and the virtual instant, and nothing is left of either. The seed says
all but the host's scheduling. `./dev kills --machines` does a hundred rounds, and `./dev kills --machines 40 60` the last forty
of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGUSR1

from tests.conftest import ROOT, environment
from tests.functional.cluster.connections import CUT, DISTURBANCES, LATE, STALL_S
from tests.host.processes import descendants

LAB = ROOT / "examples/two-sites/lab.yaml"
SAME = ("nodes/client/ping.stdout", "nodes/client/bulk.stdout", "captures/server.eth0.pcapng")

REASON = r"machine[01]|\bhub\b"
"""What a reason names."""

AGENT = "dilaton.cluster.host_agent"
PARTS = {"agent": AGENT, "relay": "dilaton-relay machine", "hub": "dilaton-relay hub"}
ACTS = ("killed", "stopped", "stalled")

CONNECTION = "connection"

ROUNDS = [
    *((part, act) for part in PARTS for act in ACTS),
    *((CONNECTION, what) for what in DISTURBANCES if what != LATE),
]
"""What is disturbed, and how."""

END_HOST_S_MAX = 120.0
LEFT_HOST_S_MAX = 10.0


@dataclass(frozen=True)
class Disturbance:
    """What happens in a round, and at which part of the time for which there are agents."""

    victim: str
    act: str
    moment: float

    @classmethod
    def of(cls, seed: int) -> Disturbance:
        """That of a seed."""
        draw = random.Random(seed)
        return cls(*draw.choice(ROUNDS), draw.random())

    @property
    def is_short(self) -> bool:
        """Whether it is to change nothing."""
        return self.act.startswith("stall")

    def happen(self, process: subprocess.Popen[bytes]) -> None:
        """Disturbs a run; what is over by then is not disturbed."""
        if self.victim == CONNECTION:
            process.send_signal(SIGUSR1)
            return
        # Beside other load an agent is there for a while before what it starts.
        while not (found := _with(PARTS[self.victim], process)) and _with(AGENT, process):
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            for pid in found[:1]:
                os.kill(pid, SIGKILL if self.act == "killed" else SIGSTOP)
                if self.is_short:
                    time.sleep(STALL_S)
                    os.kill(pid, SIGCONT)


@dataclass(frozen=True)
class Became:
    """What became of a run: whether it was well, and for how long something of it was left, seconds of the host."""

    is_well: bool
    left_host_s: float


def undisturbed(directory: Path) -> tuple[dict[str, bytes], float]:
    """What a run on one machine gives, and for how many seconds of the host one over two has agents."""
    with _started(directory / "one", CUT) as process:
        assert process.wait(END_HOST_S_MAX) == 0
    with _started(directory / "two", CUT, "--machines", "2") as process:
        begin = _wait_for_agent(process)
        while _with(AGENT, process):
            time.sleep(0.01)
        takes_host_s = time.monotonic() - begin
        assert process.wait(END_HOST_S_MAX) == 0
    return _results(directory / "one"), takes_host_s


def do(disturbance: Disturbance, expected: dict[str, bytes], takes_host_s: float, out: Path) -> Became:
    """Does a round.

    Raises:
        AssertionError: The run says that it is well and has other results, or fails without a reason, or leaves something.
    """
    way = disturbance.act if disturbance.victim == CONNECTION else CUT
    with _started(out, way, "--machines", "2") as process:
        begin = _wait_for_agent(process)
        time.sleep(max(0.0, begin + disturbance.moment * takes_host_s - time.monotonic()))
        everything = {pid: _command(pid) for pid in descendants(process.pid)}
        disturbance.happen(process)
        left_host_s = _until_nothing_is_left(process, everything)
        status = process.wait(END_HOST_S_MAX)
    assert not list(out.glob("machine*"))
    if status == 0:
        assert _results(out) == expected, "a run that says that it is well has other results"
        return Became(is_well=True, left_host_s=left_host_s)
    assert not disturbance.is_short, f"a short stall changes nothing: {(out / 'run.json').read_text()[:2000]}"
    record = json.loads((out / "run.json").read_text())
    assert record["state"] == "failed"
    assert re.search(REASON, record["reason"]), record["reason"]
    return Became(is_well=False, left_host_s=left_host_s)


def _until_nothing_is_left(process: subprocess.Popen[bytes], everything: dict[int, str]) -> float:
    """Waits until a run has ended all that it has started; returns for how many seconds of the host."""
    begin = time.monotonic()
    end = begin + END_HOST_S_MAX
    while left := [command for pid, command in everything.items() if command and _command(pid) == command]:
        if process.poll() is not None:
            end = min(end, time.monotonic() + LEFT_HOST_S_MAX)
        assert time.monotonic() < end, left
        time.sleep(0.02)
    return time.monotonic() - begin


@contextlib.contextmanager
def _started(out: Path, disturbance: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.functional.cluster.connections", disturbance, "run", LAB, "--out", out]
    process = subprocess.Popen(
        [*map(str, command), *arguments],
        env=environment() | {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _with(words: str, process: subprocess.Popen[bytes]) -> list[int]:
    return [pid for pid in descendants(process.pid) if words in _command(pid)]


def _wait_for_agent(process: subprocess.Popen[bytes]) -> float:
    """Waits until there is one; returns when that was, of the host's clock."""
    while not _with(AGENT, process):
        assert process.poll() is None, "it ended before"
        time.sleep(0.01)
    return time.monotonic()


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _results(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in SAME}


def main() -> None:
    """Does rounds, and says what became of them."""
    rounds, seed = map(int, [*sys.argv[1:], *("100", "0")[len(sys.argv) - 1 :]])
    became: Counter[tuple[str, str, str]] = Counter()
    slowest_host_s = 0.0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as text:
        expected, takes_host_s = undisturbed(Path(text))
        for number in range(seed, seed + rounds):
            disturbance = Disturbance.of(number)
            try:
                what = do(disturbance, expected, takes_host_s, Path(text) / f"run{number}")
            except AssertionError:
                print(f"seed {number}: {disturbance}; once more: ./dev kills --machines 1 {number}", flush=True)
                raise
            shown = "well" if what.is_well else f"failed, and nothing was left after {what.left_host_s:.1f} s"
            became[disturbance.victim, disturbance.act, "well" if what.is_well else "failed"] += 1
            if not what.is_well:
                slowest_host_s = max(slowest_host_s, what.left_host_s)
            print(
                f"seed {number}: {disturbance.victim} {disturbance.act} at {disturbance.moment:.2f}: {shown}",
                flush=True,
            )
    for (victim, act, what), count in sorted(became.items()):
        print(f"{victim} {act}: {count} {what}")
    print(f"{rounds} rounds; the slowest end took {slowest_host_s:.1f} s")


if __name__ == "__main__":
    main()
