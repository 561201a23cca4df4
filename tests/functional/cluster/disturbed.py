"""Random kills and stalls of what a run over two machines is made of, at any moment of it.

A round starts a run, waits until it has come to a moment, and kills a host agent, the relay of a machine or the hub, or
stops a relay for a while that is shorter than the limit (four seconds). The promise: a run that says that it is well has
the results of one that nobody has disturbed; any other says so, and nothing is left of either. The seed says all but the
host's scheduling. `PYTHONPATH=python:. python -m tests.functional.cluster.disturbed [ROUNDS [SEED]]` does many rounds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

from tests.conftest import ROOT, command_line, environment
from tests.host.processes import descendants

LAB = ROOT / "examples/two-sites/lab.yaml"
SAME = ("nodes/client/ping.stdout", "nodes/client/bulk.stdout", "captures/server.eth0.pcapng")

VICTIMS = {
    "agent": "dilaton.cluster.agent",
    "relay": "dilaton-relay machine",
    "hub": "dilaton-relay hub",
    "stalled relay": "dilaton-relay machine",
}
STALL_HOST_S = 2.5

END_HOST_S_MAX = 120.0
LEFT_HOST_S_MAX = 10.0


@dataclass(frozen=True)
class Disturbance:
    """What happens in a round, and at which part of the time that a run takes."""

    victim: str
    moment: float

    @classmethod
    def of(cls, seed: int) -> Disturbance:
        """That of a seed."""
        draw = random.Random(seed)
        return cls(draw.choice(list(VICTIMS)), draw.random())


def undisturbed(directory: Path) -> tuple[dict[str, bytes], float]:
    """What a run on one machine gives, and how many seconds of the host one over two takes from its agents' start on."""
    subprocess.run(
        command_line("run", LAB, "--out", directory / "one"), env=environment(), check=True, capture_output=True
    )
    with _started(directory / "two") as process:
        begin = _wait_for(process, "agent")
        process.wait(END_HOST_S_MAX)
    return _results(directory / "one"), time.monotonic() - begin


def do(disturbance: Disturbance, expected: dict[str, bytes], takes_host_s: float, out: Path) -> str:
    """Does a round; returns what became of the run.

    Raises:
        AssertionError: The run says that it is well and has other results, or fails without a reason, or leaves something.
    """
    with _started(out) as process:
        begin = _wait_for(process, "agent")
        time.sleep(max(0.0, begin + disturbance.moment * takes_host_s - time.monotonic()))
        everything = set(descendants(process.pid))
        found = [pid for pid in everything if VICTIMS[disturbance.victim] in _command(pid)]
        with contextlib.suppress(ProcessLookupError):
            for pid in found[:1]:
                os.kill(pid, SIGSTOP if "stalled" in disturbance.victim else SIGKILL)
                if "stalled" in disturbance.victim:
                    time.sleep(STALL_HOST_S)
                    os.kill(pid, SIGCONT)
        status = process.wait(END_HOST_S_MAX)
    end = time.monotonic() + LEFT_HOST_S_MAX
    while left := [pid for pid in everything if _command(pid)]:
        assert time.monotonic() < end, [_command(pid) for pid in left]
        time.sleep(0.05)
    assert not list(out.glob("machine*"))
    if status == 0:
        assert _results(out) == expected, "a run that says that it is well has other results"
        return "well"
    assert "stalled" not in disturbance.victim, "a short stall changes nothing"
    record = json.loads((out / "run.json").read_text())
    assert (record["state"], bool(record["reason"])) == ("failed", True)
    return "failed"


@contextlib.contextmanager
def _started(out: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command_line("run", LAB, "--out", out, "--machines", "2"),
        env=environment(),
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


def _wait_for(process: subprocess.Popen[bytes], victim: str) -> float:
    """Waits until there is such a process; returns when that was, of the host's clock."""
    while not any(VICTIMS[victim] in _command(pid) for pid in descendants(process.pid)):
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
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    became: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as text:
        expected, takes_host_s = undisturbed(Path(text))
        for number in range(seed, seed + rounds):
            disturbance = Disturbance.of(number)
            what = do(disturbance, expected, takes_host_s, Path(text) / f"run{number}")
            became[disturbance.victim, what] += 1
            print(f"seed {number}: {disturbance.victim} at {disturbance.moment:.2f}: {what}", flush=True)
    for (victim, what), count in sorted(became.items()):
        print(f"{victim}: {count} {what}")


if __name__ == "__main__":
    main()
